//! Saving, changing and deleting quick replies.

use super::body::{Part, Source, parts, unknown};
use super::model::{
    NewQuickReply, QuickReply, QuickReplyChanged, QuickReplyEvent, QuickReplyPatch, QuickReplyScope,
};
use super::row::{QuickReplyRow, files_of, locked};
use crate::schema::{quick_replies, quick_reply_files};
use chatnet::MessageButton;
use diesel::prelude::*;
use files::FileRow;
use model::{Caller, Code, Env, Error, FileId, JsonText, QuickReplyId, Result, WorkspaceId};
use operation::{
    Body, Created, Deleted, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, State, operation,
};
use ports::{People, WorkspaceVariables};
use std::collections::BTreeSet;
use store::{Read, Tx, each};

/// The most buttons of a message.
const MOST_BUTTONS: usize = 3;

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
    let shortcode = new.shortcode.to_ascii_lowercase();
    let now = tx.now();
    let row = (
        quick_replies::workspace_id.eq(workspace),
        quick_replies::shortcode.eq(&shortcode),
        quick_replies::title.eq(new.title),
        quick_replies::body.eq(new.body),
        quick_replies::buttons.eq(JsonText::of(&new.buttons)),
        quick_replies::language.eq(new.language),
        quick_replies::scope.eq(new.scope),
        quick_replies::key_id.eq(&caller.key.id),
        quick_replies::usage_count.eq(0),
        quick_replies::version.eq(1),
        quick_replies::created_at.eq(now),
        quick_replies::updated_at.eq(now),
    );
    // A request at the same time may have taken the shortcode.
    let added = each!(tx.connection(), |connection| diesel::insert_into(quick_replies::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    let holder: QuickReplyRow = quick_replies::table
        .filter(quick_replies::workspace_id.eq(workspace))
        .filter(quick_replies::shortcode.eq(&shortcode))
        .select(QuickReplyRow::as_select())
        .first(tx.connection())?;
    if added == 0 {
        return Err(duplicate(&shortcode, holder.id));
    }
    put_files(tx, &holder, &new.attachments)?;
    let reply = holder.quick_reply(new.attachments)?;
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
    let before = locked(tx, workspace, &caller.key.id, quick_reply_id)?;
    expected.check(before.version)?;
    let files_before = files_of(tx, &[before.id])?.remove(&before.id).unwrap_or_default();
    let mut row = before.clone();
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
        // Who makes it personal keeps it.
        if scope == QuickReplyScope::Personal && before.scope != scope {
            row.key_id = Some(caller.key.id.clone());
        }
    }
    let files = patch.attachments.unwrap_or_else(|| files_before.clone());
    if files != files_before {
        expect_files(tx, workspace, &files)?;
    }
    let unchanged = before.quick_reply(files_before.clone())?;
    if same(&row, &before) && files == files_before {
        return Ok(Json(unchanged));
    }
    if row.shortcode != before.shortcode {
        expect_free(tx, &row)?;
    }
    if files != files_before {
        let of = quick_reply_files::table.filter(quick_reply_files::quick_reply_id.eq(row.id));
        diesel::delete(of).execute(tx.connection())?;
        put_files(tx, &row, &files)?;
    }
    let row = store_row(tx, &row)?;
    let reply = row.quick_reply(files)?;
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
    let of = quick_reply_files::table.filter(quick_reply_files::quick_reply_id.eq(row.id));
    diesel::delete(of).execute(tx.connection())?;
    diesel::delete(quick_replies::table.find(row.id)).execute(tx.connection())?;
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
    if buttons.len() > MOST_BUTTONS {
        let message = format!("A message has at most {MOST_BUTTONS} buttons.");
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

fn expect_free(read: &mut Read, row: &QuickReplyRow) -> Result<()> {
    let holder: Option<QuickReplyId> = quick_replies::table
        .filter(quick_replies::workspace_id.eq(row.workspace_id))
        .filter(quick_replies::shortcode.eq(&row.shortcode))
        .filter(quick_replies::id.ne(row.id))
        .select(quick_replies::id)
        .first(read.connection())
        .optional()?;
    holder.map_or(Ok(()), |holder| Err(duplicate(&row.shortcode, holder)))
}

fn duplicate(shortcode: &str, holder: QuickReplyId) -> Error {
    Error::duplicate("shortcode", format!("The shortcode `{shortcode}` is in use."), holder)
}

fn same(one: &QuickReplyRow, other: &QuickReplyRow) -> bool {
    one.shortcode == other.shortcode
        && one.title == other.title
        && one.body == other.body
        && one.buttons == other.buttons
        && one.language == other.language
        && one.scope == other.scope
}

fn put_files(tx: &mut Tx, reply: &QuickReplyRow, files: &[FileId]) -> Result<()> {
    for (file, place) in files.iter().zip(0_i64..) {
        diesel::insert_into(quick_reply_files::table)
            .values((
                quick_reply_files::quick_reply_id.eq(reply.id),
                quick_reply_files::place.eq(place),
                quick_reply_files::file_id.eq(file),
                quick_reply_files::workspace_id.eq(reply.workspace_id),
            ))
            .execute(tx.connection())?;
    }
    Ok(())
}

fn store_row(tx: &mut Tx, row: &QuickReplyRow) -> Result<QuickReplyRow> {
    let now = tx.now();
    Ok(diesel::update(quick_replies::table.find(row.id))
        .set((
            quick_replies::shortcode.eq(&row.shortcode),
            quick_replies::title.eq(&row.title),
            quick_replies::body.eq(&row.body),
            quick_replies::buttons.eq(&row.buttons),
            quick_replies::language.eq(&row.language),
            quick_replies::scope.eq(row.scope),
            quick_replies::key_id.eq(&row.key_id),
            quick_replies::version.eq(row.version + 1),
            quick_replies::updated_at.eq(now),
        ))
        .returning(quick_replies::all_columns)
        .get_result(tx.connection())?)
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
