//! The events of contacts.

use super::consent::ContactConsent;
use super::contact::Contact;
use super::print::APP_URL;
use model::{ContactId, Result};
use operation::Event;
use records::activity::{Action, Changes};
use records::print::Printer;
use records::rows::ItemRow;
use records::shape::{RecordChange, Shape, Shown};
use serde::ser::Error;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// An event of a contact.
#[derive(Event)]
#[event(scope = "conversations:read", subject = "contact", id = "contact_id", contact = "contact_id")]
pub(crate) enum ContactEvent<'a> {
    /// A contact was created.
    #[event(name = "contact.created")]
    Created(ContactChanged<'a>),
    /// A contact was changed. `changed` has the old and new values.
    #[event(name = "contact.updated")]
    Updated(ContactChanged<'a>),
    /// A contact was moved to the trash.
    #[event(name = "contact.trashed")]
    Trashed(ContactChanged<'a>),
    /// A contact was permanently deleted.
    #[event(name = "contact.deleted")]
    Deleted(ContactChanged<'a>),
}

impl<'a> ContactEvent<'a> {
    /// Builds the event of a change.
    pub(crate) fn of(change: &RecordChange<'a>) -> Self {
        let data = ContactChanged {
            contact_id: change.row.id.into(),
            app_url: APP_URL,
            contact: StoredContact { shape: change.shape, row: change.row },
            changed: change.changed,
        };
        match change.action {
            Action::Created => Self::Created(data),
            Action::Trashed => Self::Trashed(data),
            Action::Deleted => Self::Deleted(data),
            _ => Self::Updated(data),
        }
    }
}

// A doc comment here would be published as the schema's description; the variants have the text that callers read.
#[derive(Serialize, ToSchema)]
pub(crate) struct ContactChanged<'a> {
    /// The id of the contact.
    contact_id: ContactId,
    /// Where the dashboard shows the contact. `null` as long as there is no dashboard.
    app_url: Option<String>,
    #[schema(value_type = Contact, inline)]
    contact: StoredContact<'a>,
    /// The changes by field, each with `old` and `new`.
    #[schema(value_type = Object)]
    changed: &'a Changes,
}

/// A contact as it is stored, printed when the event is serialized.
#[derive(Clone, Copy)]
struct StoredContact<'a> {
    shape: &'a Shape,
    row: &'a ItemRow,
}

impl Serialize for StoredContact<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let data = Printer::whole(self.shape).values(self.row).map_err(S::Error::custom)?;
        let shown = Shown { row: self.row, data: &data, expanded: None };
        Contact::of(&shown).map_err(S::Error::custom)?.serialize(serializer)
    }
}

/// An event of what a contact said about broadcasts.
#[derive(Event)]
#[event(scope = "conversations:read", subject = "contact", id = "contact_id", contact = "contact_id")]
pub(crate) enum ConsentEvent {
    /// A contact that got broadcasts wants none.
    #[event(name = "contact.opted_out")]
    OptedOut(ConsentChanged),
    /// A contact that wanted no broadcasts wants them again.
    #[event(name = "contact.opted_in")]
    OptedIn(ConsentChanged),
}

/// What a contact said about broadcasts changed.
#[derive(Serialize, ToSchema)]
pub(crate) struct ConsentChanged {
    /// The id of the contact.
    pub(crate) contact_id: ContactId,
    /// Where the dashboard shows the contact. `null` as long as there is no dashboard.
    pub(crate) app_url: Option<String>,
    /// What the contact said.
    pub(crate) consent: ContactConsent,
}

/// The event of contacts that were merged.
#[derive(Event)]
#[event(scope = "conversations:read", subject = "contact", id = "contact_id", contact = "contact_id")]
pub(crate) enum MergeEvent {
    /// A contact was merged into another, which its id finds from now on.
    #[event(name = "contact.merged")]
    Merged(ContactsMerged),
}

/// A contact was merged into another.
#[derive(Serialize, ToSchema)]
pub(crate) struct ContactsMerged {
    /// The id of the contact that remains.
    pub(crate) contact_id: ContactId,
    /// Where the dashboard shows it. `null` as long as there is no dashboard.
    pub(crate) app_url: Option<String>,
    /// The id of the contact that was merged into it.
    pub(crate) merged_id: ContactId,
}
