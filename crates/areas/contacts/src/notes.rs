//! Notes on contacts: what the team writes about a person, who never sees it.

use crate::record::find::{FindContact, contacts, editor};
use crate::schema::contact_notes;
use diesel::prelude::*;
use model::{Actor, Caller, ContactId, Error, JsonText, NoteId, Result, Timestamp, WorkspaceId};
use operation::{
    Body, Created, Deleted, Event, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, State, operation,
};
use ports::ContactRef;
use records::shape::Shapes;
use serde::{Deserialize, Serialize};
use store::{Read, Tx};
use utoipa::ToSchema;

/// A note on a contact.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "body": "Prefers to be called in the morning.", "version": 1 }))]
pub struct ContactNote {
    /// The id of the note.
    pub id: NoteId,
    /// Always `contact_note`.
    pub object: &'static str,
    /// The id of the contact.
    pub contact_id: ContactId,
    /// The text in Markdown.
    pub body: String,
    /// Whether the note is shown before the others.
    pub pinned: bool,
    /// Who wrote the note.
    pub author: Actor,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// A note to write.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "body": "Prefers to be called in the morning." }))]
pub struct NewContactNote {
    /// The text in Markdown.
    #[schema(min_length = 1, max_length = 20_000, pattern = r"\S")]
    pub body: String,
    /// Whether the note is shown before the others.
    #[serde(default)]
    pub pinned: bool,
}

/// A change of a note. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "pinned": true }))]
pub struct ContactNotePatch {
    /// The text in Markdown.
    #[schema(min_length = 1, max_length = 20_000, pattern = r"\S")]
    #[serde(default)]
    pub body: Option<String>,
    /// Whether the note is shown before the others.
    #[serde(default)]
    pub pinned: Option<bool>,
    /// The expected version, like `If-Match`. If the note has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// An event of a note.
#[derive(Event)]
#[event(scope = "conversations:read", subject = "contact", id = "contact_id", contact = "contact_id")]
pub(super) enum NoteEvent {
    /// A note was written on a contact.
    #[event(name = "contact.note.created")]
    Created(NoteChanged),
    /// A note was changed.
    #[event(name = "contact.note.updated")]
    Updated(NoteChanged),
    /// A note was deleted.
    #[event(name = "contact.note.deleted")]
    Deleted(NoteChanged),
}

/// A note was written, changed or deleted.
#[derive(Serialize, ToSchema)]
pub(super) struct NoteChanged {
    /// The id of the contact.
    contact_id: ContactId,
    /// The note after the change.
    note: ContactNote,
}

#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = contact_notes)]
struct NoteRow {
    id: NoteId,
    workspace_id: WorkspaceId,
    contact_id: ContactId,
    body: String,
    pinned: bool,
    author: JsonText,
    version: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl NoteRow {
    fn note(&self) -> Result<ContactNote> {
        Ok(ContactNote {
            id: self.id,
            object: "contact_note",
            contact_id: self.contact_id,
            body: self.body.clone(),
            pinned: self.pinned,
            author: self.author.parse()?,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

/// Notes
///
/// Lists the notes on the contact, newest first.
#[operation(get "/contacts/{contactId}/notes", scope = "contacts:read", ceiling = 200)]
pub fn list_contact_notes(
    read: &mut Read,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<ContactNote>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let contact = contact_id.live(read, &shape)?;
    let mut query = contact_notes::table
        .filter(contact_notes::contact_id.eq(contact.id.0))
        .filter(contact_notes::workspace_id.eq(contact.workspace_id))
        .order(contact_notes::id.desc())
        .limit(page.page().fetch())
        .select(NoteRow::as_select())
        .into_boxed();
    if let Some(after) = page.page().after::<NoteId>()? {
        query = query.filter(contact_notes::id.lt(after));
    }
    let rows = query.load(read.connection())?;
    let notes = rows.iter().map(NoteRow::note).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(notes, |note| note.id.to_string()))
}

/// Write a note
///
/// Notes are seen by the team, never by the contact.
#[operation(post "/contacts/{contactId}/notes", scope = "contacts:write")]
pub fn create_contact_note(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Body(new): Body<NewContactNote>,
    shapes: State<Shapes>,
) -> Result<Created<ContactNote>> {
    let editor = editor(tx, &shapes.0, caller)?;
    let contact = contact_id.locked(tx, &editor.shape)?;
    let now = tx.now();
    let row: NoteRow = diesel::insert_into(contact_notes::table)
        .values((
            contact_notes::workspace_id.eq(contact.workspace_id),
            contact_notes::contact_id.eq(contact.id.0),
            contact_notes::body.eq(new.body),
            contact_notes::pinned.eq(new.pinned),
            contact_notes::author.eq(&editor.author.cause.actor),
            contact_notes::version.eq(1),
            contact_notes::created_at.eq(now),
            contact_notes::updated_at.eq(now),
        ))
        .returning(contact_notes::all_columns)
        .get_result(tx.connection())?;
    let note = row.note()?;
    publish(tx, caller, NoteEvent::Created, &row, &note)?;
    Ok(Created(note))
}

/// Change a note
///
/// Changes the text, or whether the note is pinned.
#[operation(patch "/contacts/{contactId}/notes/{noteId}", scope = "contacts:write")]
pub fn update_contact_note(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Path(note_id): Path<NoteId>,
    Body(patch): Body<ContactNotePatch>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Json<ContactNote>> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let row = locked(tx, caller, &shapes, &contact_id, note_id)?;
    expected.check(row.version)?;
    let body = patch.body.unwrap_or_else(|| row.body.clone());
    let pinned = patch.pinned.unwrap_or(row.pinned);
    if body == row.body && pinned == row.pinned {
        return Ok(Json(row.note()?));
    }
    let now = tx.now();
    let row: NoteRow = diesel::update(contact_notes::table.find(row.id))
        .set((
            contact_notes::body.eq(body),
            contact_notes::pinned.eq(pinned),
            contact_notes::version.eq(row.version + 1),
            contact_notes::updated_at.eq(now),
        ))
        .returning(contact_notes::all_columns)
        .get_result(tx.connection())?;
    let note = row.note()?;
    publish(tx, caller, NoteEvent::Updated, &row, &note)?;
    Ok(Json(note))
}

/// Delete a note
///
/// Deletes the note permanently.
#[operation(delete "/contacts/{contactId}/notes/{noteId}", scope = "contacts:write")]
pub fn delete_contact_note(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Path(note_id): Path<NoteId>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Deleted<ContactNote>> {
    let row = locked(tx, caller, &shapes, &contact_id, note_id)?;
    ExpectedVersion::from(if_match).check(row.version)?;
    diesel::delete(contact_notes::table.find(row.id)).execute(tx.connection())?;
    publish(tx, caller, NoteEvent::Deleted, &row, &row.note()?)?;
    Ok(Deleted::of("contact_note", note_id))
}

/// Finds a note and locks its contact until the transaction ends.
fn locked(
    tx: &mut Tx,
    caller: &Caller,
    shapes: &State<Shapes>,
    contact: &ContactRef,
    note: NoteId,
) -> Result<NoteRow> {
    let editor = editor(tx, &shapes.0, caller)?;
    let contact = contact.locked(tx, &editor.shape)?;
    let row = contact_notes::table
        .filter(contact_notes::id.eq(note))
        .filter(contact_notes::contact_id.eq(contact.id.0))
        .filter(contact_notes::workspace_id.eq(contact.workspace_id))
        .select(NoteRow::as_select())
        .get_result(tx.connection())
        .optional()?;
    row.ok_or_else(|| Error::not_found("note"))
}

fn publish(
    tx: &mut Tx,
    caller: &Caller,
    event: fn(NoteChanged) -> NoteEvent,
    row: &NoteRow,
    note: &ContactNote,
) -> Result<()> {
    let changed = NoteChanged { contact_id: note.contact_id, note: note.clone() };
    tx.emit(row.workspace_id, &caller.cause(), true, &event(changed))?;
    Ok(())
}
