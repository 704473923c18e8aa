//! The activity and the files of a contact.

use crate::record::find::{FindContact, contacts};
use crate::record::merges;
use fields::FieldType;
use files::{File, FileRow, Files};
use model::{Actor, Caller, ContactId, FileId, JsonText, Result, Timestamp};
use operation::{OptIn, OptInList, Path, State, operation};
use ports::{ContactRef, ContactUses};
use records::Source;
use records::activity::{self, Action, ActivityRow};
use records::rows::ItemRow;
use records::shape::{Shape, Shapes};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use store::Read;
use utoipa::ToSchema;

/// Something that happened with a contact.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "id": 1042, "action": "updated", "changed": { "$stage": { "old": "new", "new": "qualified" } },
    "source": { "request_id": "req_01m7w4n5e0k3p8r2v6x9b1d4f7" },
}))]
pub struct ContactActivity {
    /// The id of the entry.
    pub id: i64,
    /// Always `contact_activity`.
    pub object: &'static str,
    /// The id of the contact: that of a contact which was merged into it, for what happened with that one before.
    pub contact_id: ContactId,
    /// The type of activity.
    pub action: Action,
    /// The changes by field key, each with `old` and `new`.
    #[schema(value_type = Object)]
    pub changed: JsonText,
    /// Who performed the action.
    pub actor: Actor,
    /// What caused the change.
    pub source: Source,
    /// When the action was performed.
    pub created_at: Timestamp,
}

/// What happened with the contact
///
/// Lists changes of the contact, newest first, with those of contacts that were merged into it. Notes are listed by
/// `GET /contacts/{contactId}/notes`.
#[operation(get "/contacts/{contactId}/activity", scope = "contacts:read", ceiling = 100)]
pub fn list_contact_activity(
    read: &mut Read,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<ContactActivity>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let contact = contact_id.any(read, &shape)?;
    let mut ids = merges::merged_into(read, shape.workspace, &[contact.id])?;
    ids.push(contact.id);
    let rows = activity::of_items(read, shape.workspace, &ids, page.page())?;
    let entry = |row: ActivityRow| {
        let entry = row.entry()?;
        Ok(ContactActivity {
            id: entry.id,
            object: "contact_activity",
            contact_id: entry.item_id.unwrap_or(contact.id).into(),
            action: entry.action,
            changed: entry.changed,
            actor: entry.actor,
            source: entry.source,
            created_at: entry.created_at,
        })
    };
    let entries = rows.into_iter().map(entry).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(entries, |entry| entry.id.to_string()))
}

/// Files that the contact sent or was sent
///
/// Lists the files of its messages and those in the contact's own fields, in the order in which they were uploaded.
#[operation(get "/contacts/{contactId}/files", scope = "contacts:read", ceiling = 100)]
pub fn list_contact_files(
    read: &mut Read,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    page: OptIn,
    shapes: State<Shapes>,
    store: State<Files>,
    uses: State<ContactUses>,
) -> Result<OptInList<File>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let contact = contact_id.live(read, &shape)?;
    let after = page.page().after::<FileId>()?.unwrap_or(FileId(0));
    let rows = files_of(read, &uses.0, &shape, &contact, after, page.page().fetch())?;
    let now = read.now();
    let files = rows.iter().map(|row| store.0.show(row, now)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(files, |file| file.id.to_string()))
}

/// Returns the next files of a contact after the file `after`, at most `most`.
fn files_of(
    read: &mut Read,
    uses: &ContactUses,
    shape: &Shape,
    contact: &ItemRow,
    mut after: FileId,
    most: i64,
) -> Result<Vec<FileRow>> {
    let own = named_files(shape, contact)?;
    let mut rows = Vec::new();
    loop {
        let exchanged = uses.files(read, shape.workspace, contact.id.into(), after, most)?;
        // If the page of exchanged files is full, files after its last one have not been read yet, so this round ends
        // there.
        let last = exchanged.last().copied().filter(|_| is_full(exchanged.len(), most));
        let is_next = |id: &FileId| *id > after && last.is_none_or(|last| *id <= last);
        let ids: BTreeSet<FileId> =
            own.iter().copied().filter(is_next).chain(exchanged.iter().copied()).collect();
        let mut found = files::among(read, shape.workspace, &ids.into_iter().collect::<Vec<_>>())?;
        found.retain(FileRow::is_ready);
        found.sort_by_key(|row| row.id);
        rows.append(&mut found);
        match last {
            Some(last) if !is_full(rows.len(), most) => after = last,
            _ => break,
        }
    }
    rows.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    Ok(rows)
}

fn is_full(rows: usize, most: i64) -> bool {
    i64::try_from(rows).is_ok_and(|rows| rows >= most)
}

/// Returns the ids of the files in the values of a contact.
fn named_files(shape: &Shape, contact: &ItemRow) -> Result<Vec<FileId>> {
    let values = contact.values()?;
    let fields = shape.fields.iter().filter(|field| field.kind == FieldType::File);
    let named = fields.filter_map(|field| values.get(&field.key)).filter_map(Value::as_array).flatten();
    Ok(named.filter_map(Value::as_i64).map(FileId).collect())
}
