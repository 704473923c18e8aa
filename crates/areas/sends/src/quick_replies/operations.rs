//! Saving, changing and deleting quick replies.

use super::body::{Part, Source, parts, unknown};
use super::model::{
    NewQuickReply, QuickReply, QuickReplyChanged, QuickReplyEvent, QuickReplyPatch, QuickReplyScope,
};
use super::row::{QuickReplyRow, files_of, locked};
use crate::schema::quick_replies;
use chatnet::MessageButton;
use diesel::prelude::*;
use files::FileRow;
use model::{Caller, Code, Env, Error, FileId, JsonText, QuickReplyId, Result, WorkspaceId};
use operation::{
    Body, Created, Deleted, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, Resource, State, Update,
    operation,
};
use ports::{People, WorkspaceVariables};
use std::collections::BTreeSet;
use store::{Read, Tx};

/// The most buttons of a message.
const MAX_BUTTONS: usize = 3;

/// Saved answers
///
/// Lists the answers that the key can use: those of the workspace and its own, newest first.
#[operation(get "/quick-replies", scope = "conversations:read", ceiling = 100)]
pub fn list_quick_replies(read: &mut Read, caller: &Caller, page: OptIn) -> Result<OptInList<QuickReply>> {
    let is_own = quick_replies::key_id.eq(&caller.key.id);
    let mut query = quick_replies::table
        .filter(quick_replies::workspace_id.eq(caller.workspace_id()))
        .filter(quick_replies::scope.eq(QuickReplyScope::Workspace).nullable().or(is_own))
        .order(quick_replies::id.desc())
        .limit(page.page().fetch())
        .select(QuickReplyRow::as_select())
        .into_boxed();
    if let Some(after) = page.page().after::<QuickReplyId>()? {
        query = query.filter(quick_replies::id.lt(after));
    }
    let rows: Vec<QuickReplyRow> = query.load(read.connection())?;
    let ids: Vec<QuickReplyId> = rows.iter().map(|row| row.id).collect();
    let mut files = files_of(read, &ids)?;
    let shown = rows.iter().map(|row| row.quick_reply(files.remove(&row.id).unwrap_or_default()));
    let shown = shown.collect::<Result<Vec<_>>>()?;
    Ok(page.answer(shown, |reply| reply.id.to_string()))
}

/// Save an answer
///
/// Saves an answer that is given often, with placeholders for values of the contact. A placeholder for a field or variable
/// that does not exist is a 400 `unknown_variable`, a shortcode that is in use a 409 `duplicate_value`.
#[operation(post "/quick-replies", scope = "conversations:write")]
pub fn create_quick_reply(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewQuickReply>,
    people: State<People>,
    variables: State<WorkspaceVariables>,
) -> Result<Created<QuickReply>> {
    let workspace = caller.workspace_id();
    expect_values(tx, &people.0, &variables.0, workspace, &new.body)?;
    expect_buttons(&new.buttons)?;
    expect_files(tx, workspace, &new.attachments)?;
    let now = tx.now();
    let row = QuickReplyRow {
        id: QuickReplyId(0),
        workspace_id: workspace,
        shortcode: new.shortcode.to_ascii_lowercase(),
        title: new.title,
        body: new.body,
        buttons: JsonText::of(&new.buttons),
        language: new.language,
        scope: new.scope,
        key_id: Some(caller.key.id.clone()),
        usage_count: 0,
        last_used_at: None,
        version: 1,
        created_at: now,
        updated_at: now,
    };
    let row = row.create(tx)?;
    row.add_files(tx, &new.attachments)?;
    let reply = row.quick_reply(new.attachments)?;
    publish(tx, caller, QuickReplyEvent::Created, &reply)?;
    Ok(Created(reply))
}

/// Change a saved answer
///
/// Changes the answer. Lists that are sent replace those that it has.
#[operation(patch "/quick-replies/{quickReplyId}", scope = "conversations:write")]
pub fn update_quick_reply(
    tx: &mut Tx,
    caller: &Caller,
    Path(quick_reply_id): Path<QuickReplyId>,
    Body(patch): Body<QuickReplyPatch>,
    if_match: IfMatch,
    people: State<People>,
    variables: State<WorkspaceVariables>,
) -> Result<Json<QuickReply>> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let workspace = caller.workspace_id();
    QuickReplyRow::lock_set(tx, workspace)?;
    let mut update = Update::of(locked(tx, workspace, &caller.key.id, quick_reply_id)?, expected)?;
    let was_personal = update.row.scope == QuickReplyScope::Personal;
    let files_before = files_of(tx, &[quick_reply_id])?.remove(&quick_reply_id).unwrap_or_default();
    let row = &mut update.row;
    if let Some(shortcode) = patch.shortcode {
        row.shortcode = shortcode.to_ascii_lowercase();
    }
    if let Some(title) = patch.title {
        row.title = title;
    }
    if let Some(body) = patch.body {
        expect_values(tx, &people.0, &variables.0, workspace, &body)?;
        row.body = body;
    }
    if let Some(buttons) = patch.buttons {
        expect_buttons(&buttons)?;
        row.buttons = JsonText::of(&buttons);
    }
    patch.language.apply(&mut row.language);
    if let Some(scope) = patch.scope {
        row.scope = scope;
        // A personal reply belongs to the key that made it personal.
        if scope == QuickReplyScope::Personal && !was_personal {
            row.key_id = Some(caller.key.id.clone());
        }
    }
    let files = patch.attachments.unwrap_or_else(|| files_before.clone());
    if files != files_before {
        expect_files(tx, workspace, &files)?;
        row.replace_files(tx, &files)?;
        update.touch();
    }
    if !update.is_change() {
        return Ok(Json(update.row.quick_reply(files)?));
    }
    let reply = update.store(tx)?.quick_reply(files)?;
    publish(tx, caller, QuickReplyEvent::Updated, &reply)?;
    Ok(Json(reply))
}

/// Delete a saved answer
///
/// Deletes the answer permanently. Its files are kept.
#[operation(delete "/quick-replies/{quickReplyId}", scope = "conversations:write")]
pub fn delete_quick_reply(
    tx: &mut Tx,
    caller: &Caller,
    Path(quick_reply_id): Path<QuickReplyId>,
    if_match: IfMatch,
) -> Result<Deleted<QuickReply>> {
    let row = locked(tx, caller.workspace_id(), &caller.key.id, quick_reply_id)?;
    ExpectedVersion::from(if_match).check(row.version)?;
    let files = files_of(tx, &[row.id])?.remove(&row.id).unwrap_or_default();
    row.drop_files(tx)?;
    row.delete(tx)?;
    publish(tx, caller, QuickReplyEvent::Deleted, &row.quick_reply(files)?)?;
    Ok(Deleted::of("quick_reply", quick_reply_id))
}

/// Makes sure that the placeholders of a text have values to stand for.
fn expect_values(
    read: &mut Read,
    people: &People,
    variables: &WorkspaceVariables,
    workspace: WorkspaceId,
    body: &str,
) -> Result<()> {
    let (mut fields, mut keys) = (BTreeSet::new(), BTreeSet::new());
    for part in parts(body)? {
        let Part::Value { source, .. } = part else { continue };
        match source {
            Source::Contact(key) => drop(fields.insert(key)),
            Source::Variable(key) => drop(keys.insert(key)),
            Source::Ask(_) => {}
        }
    }
    for key in fields {
        if !people.has_field(read, workspace, key)? {
            return Err(unknown(&format!("contact.{key}")));
        }
    }
    let keys: Vec<&str> = keys.into_iter().collect();
    if keys.is_empty() {
        return Ok(());
    }
    if let Some(key) = variables.secrets(read, workspace, &keys)?.first() {
        return Err(Error::invalid("body", format_args!("must not refer to the secret `{key}`")));
    }
    // A variable can have its value for test keys only.
    let mut known = variables.values(read, workspace, Env::Live, &keys)?;
    known.extend(variables.values(read, workspace, Env::Test, &keys)?);
    match keys.iter().find(|key| !known.contains_key(**key)) {
        Some(key) => Err(unknown(&format!("vars.{key}"))),
        None => Ok(()),
    }
}

fn expect_buttons(buttons: &[MessageButton]) -> Result<()> {
    if buttons.len() > MAX_BUTTONS {
        let message = format!("A message has at most {MAX_BUTTONS} buttons.");
        return Err(Error::new(Code::TooManyButtons, message).param("buttons"));
    }
    let mut ids = BTreeSet::new();
    match buttons.iter().position(|button| !ids.insert(&button.id)) {
        Some(place) => Err(Error::invalid(format!("buttons[{place}].id"), "must be unique")),
        None => Ok(()),
    }
}

fn expect_files(tx: &mut Tx, workspace: WorkspaceId, ids: &[FileId]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let found = files::held(tx, workspace, ids)?;
    let is_there = |id: &FileId| found.iter().any(|file: &FileRow| file.id == *id);
    for (place, id) in ids.iter().enumerate() {
        let param = format!("attachments[{place}]");
        if !is_there(id) {
            return Err(Error::not_found("file").param(param));
        }
        if ids.iter().take(place).any(|before| before == id) {
            return Err(Error::invalid(param, "must be unique"));
        }
    }
    Ok(())
}

fn publish(
    tx: &mut Tx,
    caller: &Caller,
    event: fn(QuickReplyChanged) -> QuickReplyEvent,
    reply: &QuickReply,
) -> Result<()> {
    let changed = QuickReplyChanged { quick_reply: reply.clone() };
    tx.emit(caller.workspace_id(), &caller.cause(), true, &event(changed))?;
    Ok(())
}
