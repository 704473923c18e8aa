//! Whether contacts want broadcasts, with the proof of what they said.

use super::events::ConsentEvent;
use super::find::{ContactRef, editor};
use super::operations::{ContactAnswer, set_managed, shown};
use super::print::app_url;
use crate::schema::contact_consents;
use diesel::prelude::*;
use model::{
    Actor, Caller, ConsentId, ContactId, ItemId, JsonText, Result, Timestamp, WorkspaceId, text_enum,
};
use operation::{Body, Path, State, operation};
use records::shape::Shapes;
use serde::{Deserialize, Serialize};
use store::{Read, Tx};
use utoipa::ToSchema;

/// The most consents that a contact shows.
const MOST_SHOWN: i64 = 100;

text_enum! {
    /// What a contact said about broadcasts.
    pub enum ConsentState {
        /// The contact wants broadcasts.
        OptedIn = "opted_in",
        /// The contact wants no broadcasts.
        OptedOut = "opted_out",
    }
}

text_enum! {
    /// How a contact said so.
    pub enum ConsentSource {
        /// In a request to the API, for another system.
        Api = "api",
        /// By a form, such as one on a website.
        Form = "form",
        /// By a message.
        Message = "message",
        /// By telephone or in person.
        InPerson = "in_person",
        /// In a contract or another document.
        Document = "document",
        /// By an imported list.
        Import = "import",
    }
}

/// What a contact said about broadcasts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "state": "opted_out", "source": "message", "proof": "STOP" }))]
pub struct ContactConsent {
    /// The id of the entry.
    pub id: ConsentId,
    /// Always `contact_consent`.
    pub object: &'static str,
    /// What the contact said.
    pub state: ConsentState,
    /// How the contact said so.
    pub source: ConsentSource,
    /// What proves it, such as the text of the message or the address of the form.
    pub proof: Option<String>,
    /// Who recorded it.
    pub actor: Actor,
    /// When it was recorded.
    pub created_at: Timestamp,
}

/// How a contact said that it wants broadcasts, or none.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "source": "form", "proof": "https://example.com/newsletter?id=4711" }))]
pub struct NewConsent {
    /// How the contact said so.
    #[serde(default = "by_api")]
    #[schema(default = "api")]
    pub source: ConsentSource,
    /// What proves it, such as the text of the message or the address of the form.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 2_000, pattern = r"\S")]
    pub proof: Option<String>,
}

fn by_api() -> ConsentSource {
    ConsentSource::Api
}

#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = contact_consents)]
struct ConsentRow {
    id: ConsentId,
    state: ConsentState,
    source: ConsentSource,
    proof: Option<String>,
    actor: JsonText,
    created_at: Timestamp,
}

impl ConsentRow {
    fn consent(self) -> Result<ContactConsent> {
        Ok(ContactConsent {
            id: self.id,
            object: "contact_consent",
            state: self.state,
            source: self.source,
            proof: self.proof,
            actor: self.actor.parse()?,
            created_at: self.created_at,
        })
    }
}

/// What a contact said, the newest first.
///
/// # Errors
/// When the database fails.
pub(super) fn of_contact(
    read: &mut Read,
    workspace: WorkspaceId,
    contact: ItemId,
) -> Result<Vec<ContactConsent>> {
    let rows: Vec<ConsentRow> = contact_consents::table
        .filter(contact_consents::contact_id.eq(contact.0))
        .filter(contact_consents::workspace_id.eq(workspace))
        .order(contact_consents::id.desc())
        .limit(MOST_SHOWN)
        .select(ConsentRow::as_select())
        .load(read.connection())?;
    rows.into_iter().map(ConsentRow::consent).collect()
}

/// Record that the contact wants no broadcasts
///
/// The contact is left out of broadcasts from now on. Each request is kept with its proof; the contact lists them as
/// `consents`.
#[operation(post "/contacts/{contactId}/opt-out", scope = "contacts:write")]
pub fn opt_out_contact(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Body(consent): Body<NewConsent>,
    shapes: State<Shapes>,
) -> Result<ContactAnswer> {
    record(tx, caller, &contact_id, ConsentState::OptedOut, consent, &shapes.0)
}

/// Record that the contact wants broadcasts again
///
/// Each request is kept with its proof; the contact lists them as `consents`.
#[operation(post "/contacts/{contactId}/opt-in", scope = "contacts:write")]
pub fn opt_in_contact(
    tx: &mut Tx,
    caller: &Caller,
    Path(contact_id): Path<ContactRef>,
    Body(consent): Body<NewConsent>,
    shapes: State<Shapes>,
) -> Result<ContactAnswer> {
    record(tx, caller, &contact_id, ConsentState::OptedIn, consent, &shapes.0)
}

fn record(
    tx: &mut Tx,
    caller: &Caller,
    contact: &ContactRef,
    state: ConsentState,
    new: NewConsent,
    shapes: &Shapes,
) -> Result<ContactAnswer> {
    let editor = editor(tx, shapes, caller)?;
    let row = contact.locked(tx, &editor.shape)?;
    let (now, actor) = (tx.now(), caller.cause().actor);
    let id: ConsentId = diesel::insert_into(contact_consents::table)
        .values((
            contact_consents::workspace_id.eq(row.workspace_id),
            contact_consents::contact_id.eq(row.id.0),
            contact_consents::state.eq(state),
            contact_consents::source.eq(new.source),
            contact_consents::proof.eq(&new.proof),
            contact_consents::actor.eq(&actor),
            contact_consents::created_at.eq(now),
        ))
        .returning(contact_consents::id)
        .get_result(tx.connection())?;
    let consent = ConsentRow { id, state, source: new.source, proof: new.proof, actor, created_at: now };
    let is_out = state == ConsentState::OptedOut;
    let written = set_managed(tx, &editor, row, |data| {
        data.insert("$opted_out".to_owned(), is_out.into());
    })?;
    if written.changed {
        let changed = super::events::ConsentChanged {
            contact_id: ContactId::from(written.row.id),
            app_url: app_url(&editor.shape, &written.row),
            consent: consent.consent()?,
        };
        let event = if is_out { ConsentEvent::OptedOut(changed) } else { ConsentEvent::OptedIn(changed) };
        tx.emit(editor.shape.workspace, &caller.cause(), true, &event)?;
    }
    shown(&editor.shape, &written.row)
}
