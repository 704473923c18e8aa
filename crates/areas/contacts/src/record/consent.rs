//! Consents: statements of contacts about broadcasts, with their proof.

use crate::schema::contact_consents;
use diesel::prelude::*;
use model::{Actor, ConsentId, ItemId, JsonText, Result, Timestamp, WorkspaceId, text_enum};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// The most consents in the detail view of a contact.
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
    /// When the contact said so. The latest statement counts, whenever it was recorded.
    pub stated_at: Timestamp,
    /// When it was recorded.
    pub created_at: Timestamp,
}

/// A row of `contact_consents`.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = contact_consents)]
pub(crate) struct ConsentRow {
    pub(crate) id: ConsentId,
    pub(crate) state: ConsentState,
    pub(crate) source: ConsentSource,
    pub(crate) proof: Option<String>,
    pub(crate) actor: JsonText,
    pub(crate) created_at: Timestamp,
    /// The time by the clock of the sender, which can be ahead of the service's clock.
    pub(crate) stated_at: Timestamp,
}

impl ConsentRow {
    /// Converts the row to the object that callers see.
    pub(crate) fn consent(self) -> Result<ContactConsent> {
        Ok(ContactConsent {
            id: self.id,
            object: "contact_consent",
            state: self.state,
            source: self.source,
            proof: self.proof,
            actor: self.actor.parse()?,
            stated_at: self.stated_at.min(self.created_at),
            created_at: self.created_at,
        })
    }
}

/// Selects the ids of the consents of a contact.
#[diesel::dsl::auto_type(no_type_alias)]
pub(crate) fn of(contact: ItemId) -> _ {
    let contact: i64 = contact.0;
    contact_consents::table.filter(contact_consents::contact_id.eq(contact)).select(contact_consents::id)
}

/// Returns the consents of a contact, newest first.
pub(crate) fn of_contact(
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
