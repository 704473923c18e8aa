//! Operations that create, read, change and delete contacts.

use super::model::{
    ContactBulkUpsert, ContactDeletion, ContactPatch, ContactQuery, ContactUpsert, NewContact,
    OnContactMatch, UpsertedContact,
};
use crate::record::contact::{Contact, ContactStatus};
use crate::record::detail::{self, ContactDetail};
use crate::record::find::{FindContact, editor};
use crate::record::kind::CONTACTS;
use crate::record::print::printed;
use fields::Data;
use fields::value::Mode;
use model::{Caller, Error, Patch, Result};
use operation::{
    Body, Deleted, ExpectedVersion, IfMatch, Input, Json, Path, Prepare, PreparedBody, Query, RawCreated,
    RawJson, State, With, operation,
};
use ports::ContactRef;
use records::bulk::{self, BulkReport, PreparedMatch, Row};
use records::links;
use records::print::Printer;
use records::rows::matching::OnMatch;
use records::rows::values::{self, Missing};
use records::rows::{self, Draft, Editor, ItemChange, ItemRow, PreparedItem, Written};
use records::shape::{Shape, Shapes, Shown};
use store::{Read, Tx};

/// The response with a contact, with its version as `ETag`.
pub(crate) type ContactAnswer = With<RawJson<Contact<'static>>>;

/// The value of `match_on` that matches rows by any identity.
pub(crate) const MATCH_ON: &str = "identity";

/// Builds the response with a contact.
pub(crate) fn shown(shape: &Shape, row: &ItemRow) -> Result<ContactAnswer> {
    Ok(With::etag(row.version, RawJson::new(printed(shape, row)?)))
}

/// Adds the tags of a body to its values, as the field `$tags`.
fn with_tags(mut data: Data, tags: Option<Vec<String>>) -> Data {
    if let Some(tags) = tags {
        data.insert("$tags".to_owned(), tags.into());
    }
    data
}

fn mode(typecast: bool) -> Mode {
    if typecast { Mode::Typecast } else { Mode::Strict }
}

impl From<OnContactMatch> for OnMatch {
    fn from(on_match: OnContactMatch) -> Self {
        match on_match {
            OnContactMatch::Update => Self::Update,
            OnContactMatch::Skip => Self::Skip,
            OnContactMatch::Error => Self::Error,
        }
    }
}

impl NewContact {
    /// Builds the draft of the contact.
    fn draft(&self, shape: &Shape) -> Result<Draft> {
        let given = with_tags(self.data.clone(), self.tags.clone());
        let data = values::merge(shape, None, &given, Missing::Default, mode(self.typecast), "")?;
        Ok(Draft { data, external_key: self.external_id.clone(), position: None })
    }
}

impl Prepare for NewContact {
    type Prepared = PreparedItem;

    fn prepare(&self, input: &Input<'_>) -> Option<PreparedItem> {
        let (shapes, set) =
            (input.services.get::<Shapes>().ok()?, CONTACTS.set_of(input.caller.workspace_id()));
        PreparedItem::of(&shapes, input.caller, set, |shape| self.draft(shape))
    }
}

/// Changes fields of a live, locked contact that bodies cannot contain, because other operations set them.
pub(crate) fn set_managed(
    tx: &mut Tx,
    editor: &Editor<'_>,
    row: ItemRow,
    change: impl FnOnce(&mut Data),
) -> Result<Written> {
    let mut data = row.values()?;
    change(&mut data);
    fields::computed::order(&editor.shape, &mut data);
    let draft = Draft { data, external_key: row.external_key.clone(), position: row.position.clone() };
    editor.writer().update(tx, row, draft)
}

/// Create a contact
///
/// A telephone number, e-mail address, user name, chat user id or external id that another contact has is a 409
/// `duplicate_value` with the id of that contact. To change such a contact instead, use `POST /contacts/upsert`.
#[operation(post "/contacts", scope = "contacts:write")]
pub fn create_contact(
    tx: &mut Tx,
    caller: &Caller,
    new: PreparedBody<NewContact>,
    shapes: State<Shapes>,
) -> Result<With<RawCreated<Contact<'static>>>> {
    let editor = editor(tx, &shapes.0, caller)?;
    let creation = PreparedItem::or_draft(new.take(), &editor.shape, |shape| new.body.draft(shape))?;
    let row = editor.writer().create(tx, creation)?;
    Ok(With::etag(row.version, RawCreated::new(printed(&editor.shape, &row)?)))
}

/// One contact
///
/// The path names the contact by its id, or by `phone:`, `email:` or `external:` and its telephone number, e-mail
/// address or external id: `GET /contacts/phone:+5511987654321`. The id of a contact that was merged into another finds
/// the other, in every operation but deletion.
#[operation(get "/contacts/{contactId}", scope = "contacts:read")]
pub fn get_contact(
    read: &mut Read,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Query(query): Query<ContactQuery>,
    shapes: State<Shapes>,
) -> Result<With<RawJson<ContactDetail<'static>>>> {
    let (shape, row) = contact_id.with_shape(read, &shapes.0, caller.workspace_id())?;
    if row.trashed_at.is_some() && !query.trashed {
        return Err(Error::not_found("contact"));
    }
    detail::answer(read, &shape, &row)
}

/// Change a contact
///
/// Fields that are not sent stay unchanged; `null` clears a field. A request that changes nothing leaves the version
/// unchanged. `trashed: false` restores a contact from the trash; if another contact has one of its identities since, that
/// is a 409 `duplicate_value` with the id of the other.
#[operation(patch "/contacts/{contactId}", scope = "contacts:write")]
pub fn update_contact(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Body(patch): Body<ContactPatch>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<ContactAnswer> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let editor = editor(tx, &shapes.0, caller)?;
    let expected = match patch.trashed {
        Some(true) => {
            let rule = "must be false; delete the contact to move it to the trash";
            return Err(Error::invalid("trashed", rule));
        }
        // Restoring increments the version.
        Some(false) if restore(tx, &editor, &shapes.0, &contact_id, expected)? => ExpectedVersion::default(),
        _ => expected,
    };
    let given = with_tags(patch.data, patch.tags);
    let change = ItemChange {
        data: &given,
        missing: Missing::Keep,
        mode: mode(patch.typecast),
        external_key: patch.external_id,
        expected,
        path: "",
    };
    let row = contact_id.locked_by(tx, &editor.shape, |tx, id| change.locked(tx, &editor, id))?;
    rows::expect_version(&editor.shape, &row, expected)?;
    let draft = change.draft(&editor, &row)?;
    let draft = match patch.status {
        Some(status) => with_status(&editor.shape, draft, status),
        None => draft,
    };
    shown(&editor.shape, &editor.writer().update(tx, row, draft)?.row)
}

/// Restores a contact from the trash. Returns `false` if it is not in the trash.
fn restore(
    tx: &mut Tx,
    editor: &Editor<'_>,
    shapes: &Shapes,
    contact: &ContactRef,
    expected: ExpectedVersion,
) -> Result<bool> {
    let shape = &editor.shape;
    let id = match contact.any(tx, shape)? {
        row if row.trashed_at.is_some() => row.id,
        _ => return Ok(false),
    };
    links::hold_returning(tx, shapes, shape.workspace, id)?;
    let row = rows::find_locked(tx, shape, id)?.filter(|row| row.trashed_at.is_some());
    let Some(row) = row else { return Ok(false) };
    rows::expect_version(shape, &row, expected)?;
    editor.writer().restore(tx, &row)?;
    Ok(true)
}

fn with_status(shape: &Shape, mut draft: Draft, status: ContactStatus) -> Draft {
    draft.data.insert("$status".to_owned(), status.as_str().into());
    fields::computed::order(shape, &mut draft.data);
    draft
}

/// Delete a contact
///
/// Moves the contact to the trash, where it stays for 30 days. With `erase=true` it is deleted permanently, even from
/// the trash, with everything that it contains; its conversations, with their messages and the files that it sent, are
/// deleted shortly afterwards.
#[operation(delete "/contacts/{contactId}", scope = "contacts:write")]
pub fn delete_contact(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Query(query): Query<ContactDeletion>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Deleted<Contact<'static>>> {
    let editor = editor(tx, &shapes.0, caller)?;
    let row = to_delete(tx, &editor.shape, &shapes.0, &contact_id, query.erase)?;
    let id = row.id;
    rows::expect_version(&editor.shape, &row, if_match.into())?;
    if query.erase {
        editor.writer().destroy(tx, &row)?;
    } else {
        editor.writer().trash(tx, &row)?;
    }
    Ok(Deleted::of("contact", id))
}

/// Locks a contact for deletion, together with the targets of its links. A contact in the trash is found only if it
/// is to be erased.
fn to_delete(
    tx: &mut Tx,
    shape: &Shape,
    shapes: &Shapes,
    contact: &ContactRef,
    erase: bool,
) -> Result<ItemRow> {
    let mut last = None;
    loop {
        // The identity is resolved again in each round, because a concurrent merge can move it to another contact.
        let id = contact.id(tx, shape)?;
        if last == Some(id) {
            return Err(Error::not_found("contact"));
        }
        let hold = if erase { links::hold_purged } else { links::hold_leaving };
        hold(tx, shapes, shape.workspace, &[id])?;
        let row = rows::find_locked(tx, shape, id)?.filter(|row| erase || row.trashed_at.is_none());
        match row {
            Some(row) => return Ok(row),
            // The contact is gone. If the next round resolves to the same id, it was deleted; a different id is the
            // survivor of a merge.
            None => last = Some(id),
        }
    }
}

/// Create or change a contact by phone, email or external id
///
/// The contact that has one of the identities in the request is changed; without such a contact, a new one is created.
/// Identities of several contacts are a 409 `ambiguous_match`. A new `external_id` with an identity of a contact that has another
/// `external_id` is a 409 `duplicate_value`. The same number in different spellings is one identity.
#[operation(post "/contacts/upsert", scope = "contacts:write")]
pub fn upsert_contact(
    tx: &mut Tx,
    caller: &Caller,
    new: PreparedBody<ContactUpsert>,
    shapes: State<Shapes>,
) -> Result<RawJson<UpsertedContact<'static>>> {
    let editor = editor(tx, &shapes.0, caller)?;
    let upsert = &*new.body;
    let data = with_tags(upsert.data.clone(), upsert.tags.clone());
    let row = Row { data: &data, external_key: upsert.external_id.as_deref() };
    let (match_on, on_match) = ([MATCH_ON.to_owned()], upsert.on_match.into());
    let mode = mode(upsert.typecast);
    let (status, contact) = bulk::upsert_one(tx, &editor, mode, &match_on, on_match, row, new.take())?;
    let data = Printer::whole(&editor.shape).values(&contact)?;
    let contact = Contact::of(&Shown { row: &contact, data: &data, expanded: None })?;
    let upserted = UpsertedContact { object: "contact_upsert", status, contact };
    Ok(RawJson::new(serde_json::to_string(&upserted).map_err(Error::internal)?))
}

impl Prepare for ContactUpsert {
    type Prepared = PreparedMatch;

    fn prepare(&self, input: &Input<'_>) -> Option<PreparedMatch> {
        let shapes = input.services.get::<Shapes>().ok()?;
        let workspace = input.caller.workspace_id();
        let by = (&[MATCH_ON.to_owned()][..], mode(self.typecast));
        let row = Row { data: &self.data, external_key: self.external_id.as_deref() };
        PreparedMatch::of(&shapes, workspace, CONTACTS.set_of(workspace), by, row)
    }
}

/// Create or change up to 1,000 contacts
///
/// Each row is for the contact that has one of its identities, as in `POST /contacts/upsert`. In the mode `atomic`, one
/// invalid row rejects the whole request; in the mode `partial`, valid rows are stored and the others are reported. A row
/// that changes nothing is `unchanged`.
#[operation(post "/contacts/bulk-upsert", scope = "contacts:write", body_mib = 16)]
pub fn bulk_upsert_contacts(
    tx: &mut Tx,
    caller: &Caller,
    Body(bulk): Body<ContactBulkUpsert>,
    shapes: State<Shapes>,
) -> Result<Json<BulkReport>> {
    let editor = editor(tx, &shapes.0, caller)?.in_bulk(caller);
    let ContactBulkUpsert { mode: bulk_mode, on_match, typecast, rows } = bulk;
    let rows: Vec<(Data, Option<String>)> =
        rows.into_iter().map(|row| (with_tags(row.data, row.tags), row.external_id)).collect();
    let rows: Vec<Row<'_>> =
        rows.iter().map(|(data, key)| Row { data, external_key: key.as_deref() }).collect();
    let match_on = [MATCH_ON.to_owned()];
    Ok(Json(bulk::upsert(tx, &editor, bulk_mode, mode(typecast), &match_on, on_match.into(), &rows)?))
}

/// Changes values of a live, locked contact.
///
/// # Errors
/// `item_locked`, `version_conflict`.
pub(crate) fn change_data(tx: &mut Tx, editor: &Editor<'_>, row: ItemRow, data: &Data) -> Result<Written> {
    let change = ItemChange {
        data,
        missing: Missing::Keep,
        mode: Mode::Strict,
        external_key: Patch::Keep,
        expected: ExpectedVersion::default(),
        path: "",
    };
    change.make(tx, editor, row)
}
