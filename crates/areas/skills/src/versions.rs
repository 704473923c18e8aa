//! Operations on the versions of a skill.

use crate::draft::facts::stored;
use crate::draft::row::{SkillRow, VersionRow};
use crate::draft::write;
use crate::draft::write::tagged;
use crate::files::contents::{self, DOCUMENT, DRAFT, SkillFileRow};
use crate::model::{Skill, SkillVersion};
use model::{Caller, Code, Error, Result, SkillId};
use operation::{ExpectedVersion, Json, OptIn, OptInList, Path, Resource, Update, Version, With, operation};
use store::{Read, Tx};

/// Published versions
///
/// Lists the versions of the skill, newest first, without their instructions and files.
#[operation(get "/skills/{skillId}/versions", scope = "skills:read")]
pub fn list_skill_versions(
    read: &mut Read,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
    page: OptIn,
) -> Result<OptInList<SkillVersion>> {
    let workspace = caller.workspace_id();
    SkillRow::find(read, workspace, &skill_id)?;
    let rows = VersionRow::list(read, workspace, &skill_id, page.page())?;
    let versions = rows.into_iter().map(VersionRow::skill_version).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(versions, |version| version.version.to_string()))
}

/// One published version
///
/// Returns the version with its instructions and the list of its files. Versions never change.
#[operation(get "/skills/{skillId}/versions/{version}", scope = "skills:read")]
pub fn get_skill_version(
    read: &mut Read,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
    Path(version): Path<i64>,
) -> Result<Json<SkillVersion>> {
    let row = VersionRow::find(read, caller.workspace_id(), &skill_id, version)?;
    let document = stored(&contents::document(read, skill_id, version)?)?;
    let files = contents::all(read, skill_id, version)?.into_iter().filter(|file| file.path != DOCUMENT);
    Ok(Json(SkillVersion {
        instructions: Some(document.body().to_owned()),
        files: Some(files.map(SkillFileRow::skill_file).collect()),
        ..row.skill_version()?
    }))
}

/// Bring a published version back into the draft
///
/// Replaces the draft, with its files, by the version. Agents see it after the next `publish`. A name that another skill has
/// meanwhile is a 409 `duplicate_value`.
#[operation(post "/skills/{skillId}/versions/{version}/restore", scope = "skills:manage")]
pub fn restore_skill_version(
    tx: &mut Tx,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
    Path(version): Path<i64>,
) -> Result<With<Json<Skill>>> {
    let expected = ExpectedVersion::default();
    let mut update = Update::<SkillRow>::begin(tx, caller.workspace_id(), &skill_id, expected)?;
    update.restore(tx, version)?;
    if update.is_change() {
        contents::clear(tx, skill_id)?;
        contents::copy(tx, skill_id, version, DRAFT)?;
        contents::drop_unused(tx, skill_id)?;
    }
    let restored = write::finished(tx, update).map_err(|error| match error.code() {
        Code::DuplicateValue => Error::new(
            Code::DuplicateValue,
            "Another skill of the workspace has the name that this version had.",
        )
        .param("version"),
        _ => error,
    })?;
    Ok(tagged(restored))
}
