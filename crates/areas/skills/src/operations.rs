//! Operations on skills: list, create, read, update, delete, duplicate.

use crate::draft::facts::stored;
use crate::draft::row::SkillRow;
use crate::draft::write::{self, NewDraft, tagged};
use crate::files::contents::{self, DRAFT, NewContent};
use crate::model::{NewSkill, NewSkillStatus, Skill, SkillAgent, SkillPatch, SkillSource, SkillStatus};
use crate::publish::{self, Publishing};
use crate::schema::{skill_versions, skills};
use diesel::prelude::*;
use model::{Caller, Patch, Result, SkillId};
use operation::{
    Body, Created, Deleted, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, Query, Resource, Rows,
    State, Update, With, operation,
};
use ports::{AgentDirectory, ObjectUses, UsedObject, in_use};
use serde::Deserialize;
use skill_packages::{DocumentChange, Fields, SkillDocument};
use store::{Read, Tx};
use utoipa::{IntoParams, ToSchema};

/// Which skills to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct SkillQuery {
    /// Only skills in this state.
    #[serde(default)]
    status: Option<SkillStatus>,
}

/// List skills
///
/// Lists the workspace's skills, newest first, without their instructions. Send `status` for the skills in one state.
#[operation(get "/skills", scope = "skills:read")]
pub fn list_skills(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<SkillQuery>,
    page: OptIn,
) -> Result<OptInList<Skill>> {
    let mut rows = skills::table
        .filter(skills::workspace_id.eq(caller.workspace_id()))
        .order(skills::id.desc())
        .limit(page.page().fetch())
        .select(SkillRow::as_select())
        .into_boxed();
    if let Some(status) = query.status {
        rows = rows.filter(skills::status.eq(status));
    }
    if let Some(after) = page.page().after::<SkillId>()? {
        rows = rows.filter(skills::id.lt(after));
    }
    let rows: Vec<SkillRow> = rows.load(read.connection())?;
    let skills = rows.into_iter().map(|row| row.skill(None)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(skills, |skill| skill.id.to_string()))
}

/// Create a skill
///
/// Writes SKILL.md with these fields. The skill is created as a `draft`, which no agent loads, unless `publish` is `true` or
/// `status` is `active`: then it must pass the checks of publishing. A name that another skill has is a 409
/// `duplicate_value`.
#[operation(post "/skills", scope = "skills:manage")]
pub fn create_skill(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewSkill>,
    publishing: Publishing,
) -> Result<Created<Skill>> {
    write::check_fields(Some(&new.instructions), new.allowed_tools.as_deref(), Some(&new.variables))?;
    let is_published = new.publish || new.status == NewSkillStatus::Active;
    let fields = Fields {
        name: new.name.clone(),
        description: new.description,
        license: new.license,
        compatibility: new.compatibility,
        metadata: new.metadata,
        allowed_tools: new.allowed_tools,
    };
    let document = SkillDocument::new(&fields, &new.instructions)
        .map_err(|mistake| write::unwritable("description", mistake))?;
    let draft = NewDraft {
        name: new.name,
        display_name: new.display_name,
        activation: new.activation,
        variables: new.variables,
        source: SkillSource::Custom,
    };
    let files = [NewContent::document(document.bytes())];
    let row = write::create(tx, caller.workspace_id(), draft, &document, &files)?;
    if !is_published {
        return Ok(Created(write::shown(tx, row)?));
    }
    let update = Update::of(row, ExpectedVersion::default())?;
    Ok(Created(publish::publish(tx, caller, update, &publishing)?))
}

/// Skill detail
///
/// Returns the draft of the skill with its instructions. The `ETag` header is its version. Send it as `If-Match` with a
/// change to prevent overwriting changes by others.
#[operation(get "/skills/{skillId}", scope = "skills:read")]
pub fn get_skill(
    read: &mut Read,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
) -> Result<With<Json<Skill>>> {
    let row = SkillRow::find(read, caller.workspace_id(), &skill_id)?;
    Ok(tagged(write::shown(read, row)?))
}

/// Change the draft of a skill
///
/// Fields that are not sent stay unchanged, and so do the lines of SKILL.md that hold them. Agents see the change after the
/// next `publish`. With `version` or `If-Match`, the request is rejected with 409 `version_conflict` if the skill was changed
/// in the meantime.
#[operation(patch "/skills/{skillId}", scope = "skills:manage")]
pub fn update_skill(
    tx: &mut Tx,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
    Body(patch): Body<SkillPatch>,
    if_match: IfMatch,
) -> Result<With<Json<Skill>>> {
    let tools = match &patch.allowed_tools {
        Patch::Set(tools) => Some(tools.as_slice()),
        Patch::Keep | Patch::Clear => None,
    };
    write::check_fields(patch.instructions.as_deref(), tools, patch.variables.as_deref())?;
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let mut update = Update::<SkillRow>::begin(tx, caller.workspace_id(), &skill_id, expected)?;
    let row = &mut update.row;
    patch.display_name.apply(&mut row.display_name);
    if let Some(activation) = patch.activation {
        row.activation = activation;
    }
    if let Some(variables) = &patch.variables {
        row.variables = model::JsonText::of(variables);
    }
    let change = DocumentChange {
        name: patch.name,
        description: patch.description,
        license: patch.license.given(),
        compatibility: patch.compatibility.given(),
        metadata: patch.metadata,
        allowed_tools: patch.allowed_tools.given(),
        body: patch.instructions,
    };
    if change != DocumentChange::default() {
        let before = stored(&contents::document(tx, skill_id, DRAFT)?)?;
        let document =
            before.with(&change).map_err(|mistake| write::unwritable(field_of(&change), mistake))?;
        if document.bytes() != before.bytes() {
            write::set_document(tx, row, &document)?;
        }
    }
    Ok(tagged(write::finished(tx, update)?))
}

/// The first field that a change names.
fn field_of(change: &DocumentChange) -> &'static str {
    let named = [
        (change.description.is_some(), "description"),
        (!change.metadata.is_empty(), "metadata"),
        (change.license.is_some(), "license"),
        (change.compatibility.is_some(), "compatibility"),
        (change.allowed_tools.is_some(), "allowed_tools"),
        (change.body.is_some(), "instructions"),
    ];
    named.iter().find(|(is_named, _)| *is_named).map_or("name", |(_, field)| field)
}

/// Delete a skill
///
/// Deletes the skill with its versions and files. A skill that agents have is a 409 `resource_in_use`: `details.used_by` lists
/// them.
#[operation(delete "/skills/{skillId}", scope = "skills:manage")]
pub fn delete_skill(
    tx: &mut Tx,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
    if_match: IfMatch,
    uses: State<ObjectUses>,
) -> Result<Deleted<Skill>> {
    let workspace = caller.workspace_id();
    SkillRow::lock_set(tx, workspace)?;
    let row = SkillRow::find_locked(tx, workspace, &skill_id)?;
    ExpectedVersion::from(if_match).check(row.version)?;
    let used_by = uses.0.of(tx, workspace, UsedObject::Skill(skill_id))?;
    if !used_by.is_empty() {
        return Err(in_use("Agents have the skill. Take it from them first.", &used_by));
    }
    contents::drop_all(tx, skill_id)?;
    let versions = skill_versions::table.filter(skill_versions::skill_id.eq(skill_id));
    diesel::delete(versions).execute(tx.connection())?;
    row.delete(tx)?;
    Ok(Deleted::of("skill", skill_id))
}

/// How the copy differs from the original.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "returns-wholesale" }))]
pub struct SkillCopy {
    /// The copy's name; the original's name with a number if not given.
    #[schema(max_length = 64, pattern = "^[a-z0-9]+(-[a-z0-9]+)*$")]
    #[serde(default)]
    name: Option<String>,
    /// The copy's name for people; that of the original if not given.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    display_name: Option<String>,
}

/// Copy a skill
///
/// Copies the draft of the skill with its files. The copy is a `draft` without versions.
#[operation(post "/skills/{skillId}/duplicate", scope = "skills:manage")]
pub fn duplicate_skill(
    tx: &mut Tx,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
    Body(copy): Body<SkillCopy>,
) -> Result<Created<Skill>> {
    let workspace = caller.workspace_id();
    SkillRow::lock_set(tx, workspace)?;
    let original = SkillRow::find_locked(tx, workspace, &skill_id)?;
    let name = match copy.name {
        Some(name) => name,
        None => write::unused_name(tx, workspace, &original.name)?,
    };
    let before = stored(&contents::document(tx, skill_id, DRAFT)?)?;
    let renamed = DocumentChange { name: Some(name.clone()), ..DocumentChange::default() };
    let document = before.with(&renamed).map_err(|mistake| write::unwritable("name", mistake))?;
    let draft = NewDraft {
        name,
        display_name: copy.display_name.or(original.display_name),
        activation: original.activation,
        variables: original.variables.parse()?,
        source: original.source,
    };
    let row = write::create(tx, workspace, draft, &document, &[])?;
    contents::duplicate(tx, skill_id, row.id)?;
    let mut update = Update::of(row, ExpectedVersion::default())?;
    write::set_document(tx, &mut update.row, &document)?;
    let row = update.row;
    row.write(tx)?;
    Ok(Created(write::shown(tx, row)?))
}

/// The agents that have the skill
///
/// Lists the agents in the order of their ids, with the version that each pins.
#[operation(get "/skills/{skillId}/agents", scope = "skills:read")]
pub fn list_skill_agents(
    read: &mut Read,
    caller: &Caller,
    Path(skill_id): Path<SkillId>,
    agents: State<AgentDirectory>,
) -> Result<Rows<SkillAgent>> {
    let workspace = caller.workspace_id();
    SkillRow::find(read, workspace, &skill_id)?;
    let all = agents.0.skills(read, workspace)?;
    let having = all.into_iter().filter(|agent| agent.pin.skill == skill_id).map(|agent| SkillAgent {
        id: agent.agent,
        object: "agent",
        name: agent.name,
        is_active: agent.is_active,
        version: agent.pin.version,
    });
    Ok(Rows(having.collect()))
}
