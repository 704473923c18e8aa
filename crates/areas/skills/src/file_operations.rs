//! Operations on the files of a skill.

use crate::draft::row::{SkillRow, VersionRow};
use crate::draft::write::files_changed;
use crate::files::contents::{self, DOCUMENT, DRAFT, NewContent, SkillFileRow};
use crate::files::scripts::{self, Fault, runs};
use crate::model::{SkillFile, SkillFileContent};
use ::files::{Files, composed};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{Caller, Code, Error, Result, SkillId, WorkspaceId};
use operation::{
    Body, Cx, Deleted, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, Query, Resource, State,
    Update, Version, operation,
};
use sandbox::Sandbox;
use serde::Deserialize;
use skill_packages::{Limits, check_path};
use store::{Read, Tx};
use utoipa::{IntoParams, ToSchema};

/// Which version's files to read.
#[derive(Debug, Clone, Copy, Deserialize, IntoParams)]
pub struct FileQuery {
    /// The number of a published version. The draft if not given.
    #[param(minimum = 1)]
    #[serde(default)]
    pub(crate) version: Option<i64>,
}

impl FileQuery {
    /// Makes sure that the skill and its version exist, and returns the number by which files are found.
    ///
    /// # Errors
    /// `not_found`.
    pub(crate) fn of(self, read: &mut Read, workspace: WorkspaceId, skill: SkillId) -> Result<i64> {
        SkillRow::find(read, workspace, &skill)?;
        let Some(version) = self.version else { return Ok(DRAFT) };
        Ok(VersionRow::find(read, workspace, &skill, version)
            .map_err(|error| error.param("version"))?
            .version)
    }
}

/// Reference texts and scripts of the skill
///
/// Lists the files next to SKILL.md in the order of their paths: those of the draft, or of the published version in `version`.
#[operation(get "/skills/{skillId}/files", scope = "skills:read")]
pub fn list_skill_files(
    read: &mut Read,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
    Query(query): Query<FileQuery>,
    page: OptIn,
) -> Result<OptInList<SkillFile>> {
    let version = query.of(read, caller.workspace_id(), skill_id)?;
    let rows = contents::page(read, skill_id, version, page.page())?;
    let files = rows.into_iter().map(SkillFileRow::skill_file).collect();
    Ok(page.answer(files, |file: &SkillFile| file.path.clone()))
}

/// One file with its content
///
/// Text is returned in `content`, anything else in `content_base64`. The path can contain slashes, which may be encoded as
/// `%2F`. `SKILL.md` is the document itself, with its front matter.
#[operation(get "/skills/{skillId}/files/{path}", scope = "skills:read")]
pub async fn get_skill_file(
    cx: &Cx,
    Path(skill_id): Path<SkillId>,
    Path(path): Path<String>,
    Query(query): Query<FileQuery>,
    State(objects): State<Files>,
) -> Result<Json<SkillFileContent>> {
    let workspace = cx.caller.workspace_id();
    let found = cx.db.read(move |read| {
        let version = query.of(read, workspace, skill_id)?;
        let row = contents::one(read, skill_id, version, &path)?.ok_or_else(|| Error::not_found("file"))?;
        let content = contents::content(read, skill_id, &row.sha256)?;
        Ok((row, content))
    });
    let (row, content) = found.await?;
    let bytes = content.load(&objects).await?;
    let (content, content_base64) = match String::from_utf8(bytes) {
        // JSON can carry NUL, but most programs that read it cannot.
        Ok(text) if !text.contains('\0') => (Some(text), None),
        Ok(text) => (None, Some(STANDARD.encode(text))),
        Err(error) => (None, Some(STANDARD.encode(error.as_bytes()))),
    };
    Ok(Json(SkillFileContent { file: row.skill_file(), content, content_base64 }))
}

/// The content of a file.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "content": "# Returns\n\nGoods can be returned within 30 days.\n" }))]
pub struct NewSkillFile {
    /// The content of a text.
    #[serde(default)]
    content: Option<String>,
    /// The content of anything else, in Base64. Exactly one of the two is required.
    #[serde(default)]
    content_base64: Option<String>,
    /// The media type. That of the path's ending if not given.
    #[schema(min_length = 3, max_length = 127)]
    #[serde(default)]
    media_type: Option<String>,
}

impl NewSkillFile {
    /// The bytes, and the field that has them.
    fn bytes(&mut self) -> Result<(&'static str, Vec<u8>)> {
        match (self.content.take(), self.content_base64.take()) {
            (Some(text), None) => Ok(("content", text.into_bytes())),
            (None, Some(encoded)) => {
                let bytes = STANDARD.decode(encoded);
                let bytes = bytes.map_err(|_| Error::invalid("content_base64", "must be Base64"))?;
                Ok(("content_base64", bytes))
            }
            (None, None) => Err(Error::invalid("content", "is required, or `content_base64`")),
            (Some(_), Some(_)) => Err(Error::invalid("content_base64", "cannot be combined with `content`")),
        }
    }
}

/// Add or replace a file
///
/// Puts a file next to SKILL.md in the draft. The path can contain slashes, which may be encoded as `%2F`. JavaScript in
/// `scripts/` must compile and have a default function: otherwise the response is a 400 with the line and the column in
/// `details`. A skill has at most 200 files and 10 MiB.
#[operation(put "/skills/{skillId}/files/{path}", scope = "skills:manage", body_mib = 16)]
pub async fn put_skill_file(
    cx: &Cx,
    Path(skill_id): Path<SkillId>,
    Path(path): Path<String>,
    Body(new): Body<NewSkillFile>,
    if_match: IfMatch,
    State(sandbox): State<Sandbox>,
    State(objects): State<Files>,
) -> Result<Json<SkillFile>> {
    let (workspace, mut new, expected) = (cx.caller.workspace_id(), new, ExpectedVersion::from(if_match));
    if cx.made::<String>()?.is_none() {
        let row = cx.db.read(move |read| SkillRow::find(read, workspace, &skill_id)).await?;
        expected.check(row.version)?;
    }
    let path = checked(path)?;
    if new.media_type.as_deref().is_some_and(|kind| !is_media_type(kind)) {
        return Err(Error::invalid("media_type", "must be a media type, such as `text/markdown`"));
    }
    let (param, bytes) = new.bytes()?;
    let most = Limits::default().bytes;
    if bytes.len() > most {
        return Err(too_large(param, most));
    }
    if runs(&path) {
        match scripts::check(&sandbox, workspace, param, &path, &bytes).await? {
            None => {}
            Some(Fault::Source(error)) => return Err(error),
            Some(Fault::Program(why)) => {
                return Err(Error::invalid(param, format!("must be a script that can be called: {why}")));
            }
        }
    }
    let content = NewContent::new(path.clone(), new.media_type, bytes);
    let (content, put) = (content.stored(&cx.db, &objects, workspace).await?, path.clone());
    cx.change(move |tx| {
        let mut update = Update::<SkillRow>::begin(tx, workspace, &skill_id, expected)?;
        expect_room(tx, skill_id, &content)?;
        contents::put(tx, skill_id, std::slice::from_ref(&content))?;
        files_changed(tx, &mut update.row)?;
        if update.is_change() {
            update.store(tx)?;
        }
        Ok(put.clone())
    })
    .await?;
    let found = cx.db.read(move |read| contents::one(read, skill_id, DRAFT, &path)).await?;
    Ok(Json(found.ok_or_else(|| Error::not_found("file"))?.skill_file()))
}

fn is_media_type(text: &str) -> bool {
    let is_word = |word: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        !word.is_empty() && word.bytes().all(fits)
    };
    text.split_once('/').is_some_and(|(kind, rest)| is_word(kind) && is_word(rest))
}

fn checked(path: String) -> Result<String> {
    match check_path(&path) {
        Ok(()) => Ok(composed(&path)),
        Err(fault) => Err(Error::new(Code::ValidationError, fault.message()).param("path")),
    }
}

fn too_large(param: &str, most: usize) -> Error {
    let message = format!("The files of a skill have at most {} MiB together.", most >> 20);
    Error::new(Code::PackageTooLarge, message).param(param)
}

/// Makes sure that a file can be put next to the others.
fn expect_room(tx: &mut Tx, skill: SkillId, new: &NewContent) -> Result<()> {
    let Limits { files, bytes, .. } = Limits::default();
    let folded = new.path().to_lowercase();
    let (mut count, mut size) = (0, new.size());
    for file in contents::all(tx, skill, DRAFT)? {
        if file.path == new.path() {
            continue;
        }
        size += file.size;
        count += usize::from(file.path != DOCUMENT);
        let other = file.path.to_lowercase();
        let is_within = |one: &str, folder: &str| {
            one.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if is_within(&other, &folded) || is_within(&folded, &other) {
            let message = format!(
                "The skill has the file `{}`, which many systems cannot tell from this path.",
                file.path
            );
            return Err(Error::new(Code::ValidationError, message).param("path"));
        }
    }
    if count >= files {
        return Err(Error::new(Code::LimitReached, format!("A skill has at most {files} files.")));
    }
    if usize::try_from(size).unwrap_or(usize::MAX) > bytes {
        return Err(too_large("content", bytes));
    }
    Ok(())
}

/// Delete a file
///
/// Removes the file from the draft. Published versions keep theirs.
#[operation(delete "/skills/{skillId}/files/{path}", scope = "skills:manage")]
pub fn delete_skill_file(
    tx: &mut Tx,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
    Path(path): Path<String>,
    if_match: IfMatch,
) -> Result<Deleted<SkillFile>> {
    let expected = ExpectedVersion::from(if_match);
    let mut update = Update::<SkillRow>::begin(tx, caller.workspace_id(), &skill_id, expected)?;
    if path == DOCUMENT {
        return Err(Error::invalid("path", "must not be SKILL.md: a skill has always one"));
    }
    if !contents::remove(tx, skill_id, &path)? {
        return Err(Error::not_found("file"));
    }
    files_changed(tx, &mut update.row)?;
    update.store(tx)?;
    Ok(Deleted::of("skill_file", path))
}
