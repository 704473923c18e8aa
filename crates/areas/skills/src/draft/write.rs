//! Changes of drafts: everything that creates or changes a skill ends here.

use super::facts::{Facts, free_name, is_name, stored};
use super::row::SkillRow;
use crate::files::contents::{self, DRAFT, NewContent};
use crate::model::{Skill, SkillSource, SkillStatus};
use crate::schema::skills;
use diesel::prelude::*;
use model::{Error, FieldError, JsonText, Result, SkillId, WorkspaceId};
use operation::{Json, Resource, Update, With};
use ports::SkillActivation;
use skill_packages::{Limits, Mistake, SkillDocument};
use std::collections::BTreeSet;
use store::{Read, Tx};

/// What a new skill has besides its files.
#[derive(Debug, Clone)]
pub(crate) struct NewDraft {
    pub(crate) name: String,
    pub(crate) display_name: Option<String>,
    pub(crate) activation: SkillActivation,
    pub(crate) variables: Vec<String>,
    pub(crate) source: SkillSource,
}

/// Inserts a skill with its files, one of which is SKILL.md.
///
/// # Errors
/// `duplicate_value`, `limit_reached`.
pub(crate) fn create(
    tx: &mut Tx,
    workspace: WorkspaceId,
    draft: NewDraft,
    document: &SkillDocument,
    files: &[NewContent],
) -> Result<SkillRow> {
    let now = tx.now();
    let row = SkillRow {
        id: SkillId(0),
        workspace_id: workspace,
        name: draft.name,
        display_name: draft.display_name,
        activation: draft.activation,
        variables: JsonText::of(&draft.variables),
        source: draft.source,
        status: SkillStatus::Draft,
        fields: JsonText::of(&Facts::of(document)),
        files_digest: contents::digest_of(files),
        published_version: None,
        published_digest: None,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let row = row.create(tx)?;
    contents::put(tx, row.id, files)?;
    Ok(row)
}

/// Notes that the files of the draft changed, and deletes bytes that nothing refers to any more.
///
/// # Errors
/// `internal_error`.
pub(crate) fn files_changed(tx: &mut Tx, row: &mut SkillRow) -> Result<()> {
    row.files_digest = contents::digest(&contents::all(tx, row.id, DRAFT)?);
    contents::drop_unused(tx, row.id)
}

/// Makes a document that of the draft.
///
/// # Errors
/// `internal_error`.
pub(crate) fn set_document(tx: &mut Tx, row: &mut SkillRow, document: &SkillDocument) -> Result<()> {
    contents::put(tx, row.id, &[NewContent::document(document.bytes())])?;
    row.fields = JsonText::of(&Facts::of(document));
    if let Some(name) = document.name().filter(|name| is_name(name)) {
        name.clone_into(&mut row.name);
    }
    files_changed(tx, row)
}

/// The response with a skill and its instructions.
///
/// # Errors
/// `internal_error`.
pub(crate) fn shown(read: &mut Read, row: SkillRow) -> Result<Skill> {
    let document = stored(&contents::document(read, row.id, DRAFT)?)?;
    row.skill(Some(document.body().to_owned()))
}

/// Stores a change, if there is one, and returns the response.
///
/// # Errors
/// `duplicate_value`.
pub(crate) fn finished(tx: &mut Tx, update: Update<SkillRow>) -> Result<Skill> {
    let row = if update.is_change() { update.store(tx)? } else { update.row };
    shown(tx, row)
}

/// The names of the workspace's skills.
fn names(read: &mut Read, workspace: WorkspaceId) -> Result<BTreeSet<String>> {
    let names: Vec<String> = skills::table
        .filter(skills::workspace_id.eq(workspace))
        .select(skills::name)
        .load(read.connection())?;
    Ok(names.into_iter().collect())
}

/// The name, or the first of the same with a number that no skill has.
///
/// # Errors
/// `internal_error`.
pub(crate) fn unused_name(read: &mut Read, workspace: WorkspaceId, name: &str) -> Result<String> {
    let taken = names(read, workspace)?;
    Ok(free_name(name, |name| taken.contains(name)))
}

/// The error for fields from which no document can be written.
pub(crate) fn unwritable(param: &str, mistake: Mistake) -> Error {
    Error::invalid(param, format!("cannot be written into SKILL.md: {}", mistake.message))
}

/// Checks what the schema of the contract cannot express.
///
/// # Errors
/// `validation_error` for all that is wrong.
pub(crate) fn check_fields(
    instructions: Option<&str>,
    allowed_tools: Option<&[String]>,
    variables: Option<&[String]>,
) -> Result<()> {
    let mut errors = Vec::new();
    if instructions.is_some_and(|text| text.len() > Limits::default().instructions) {
        errors.push(FieldError::new("instructions", "must have at most 64 KiB"));
    }
    let is_tool = |name: &str| {
        (1..=128).contains(&name.len())
            && !name.chars().any(|letter| letter.is_whitespace() || letter.is_control() || letter == ',')
    };
    let is_variable = |key: &str| {
        let is_rest = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.".contains(&byte);
        key.len() <= 63
            && key.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase())
            && key.bytes().all(is_rest)
    };
    for (place, name) in allowed_tools.unwrap_or_default().iter().enumerate() {
        if !is_tool(name) {
            let rule = "must be the name of a tool: up to 128 characters without spaces and commas";
            errors.push(FieldError::new(format!("allowed_tools.{place}"), rule));
        }
    }
    for (place, key) in variables.unwrap_or_default().iter().enumerate() {
        if !is_variable(key) {
            errors.push(FieldError::new(format!("variables.{place}"), "must be the key of a variable"));
        }
    }
    Error::all_invalid(errors).map_or(Ok(()), Err)
}

/// Builds the response with a skill and its version as `ETag`.
pub(crate) fn tagged(skill: Skill) -> With<Json<Skill>> {
    With::etag(skill.version, Json(skill))
}
