//! What happened with a contact, and the files that it has.

use super::find::{FindContact, contacts};
use super::merges;
use fields::FieldType;
use files::{File, Files};
use model::{Actor, Caller, ContactId, FileId, JsonText, Result, Timestamp};
use operation::ports::ContactRef;
use operation::{OptIn, OptInList, Path, State, operation};
use records::Source;
use records::activity::{self, Action, ActivityRow};
use records::rows::ItemRow;
use records::shape::{Shape, Shapes};
use serde::Serialize;
use serde_json::Value;
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
    let mut ids = merges::merged_into(read, shape.workspace, contact.id)?;
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
/// Lists the files in the contact's own fields, in the order in which they were uploaded.
#[operation(get "/contacts/{contactId}/files", scope = "contacts:read", ceiling = 100)]
pub fn list_contact_files(
    read: &mut Read,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    page: OptIn,
    shapes: State<Shapes>,
    store: State<Files>,
) -> Result<OptInList<File>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let contact = contact_id.live(read, &shape)?;
    let mut rows = files::among(read, shape.workspace, &named_files(&shape, &contact)?)?;
    rows.sort_by_key(|row| row.id);
    let after = page.page().after::<FileId>()?.unwrap_or(FileId(0));
    let most = usize::try_from(page.page().fetch()).unwrap_or(usize::MAX);
    let now = read.now();
    let shown = rows.iter().filter(|row| row.id > after && row.is_ready()).take(most);
    let files = shown.map(|row| store.0.show(row, now)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(files, |file| file.id.to_string()))
}

/// The files that the values of a contact name.
fn named_files(shape: &Shape, contact: &ItemRow) -> Result<Vec<FileId>> {
    let values = contact.values()?;
    let fields = shape.fields.iter().filter(|field| field.kind == FieldType::File);
    let named = fields.filter_map(|field| values.get(&field.key)).filter_map(Value::as_array).flatten();
    Ok(named.filter_map(Value::as_i64).map(FileId).collect())
}
