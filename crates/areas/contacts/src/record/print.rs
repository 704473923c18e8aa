//! Serialization of contacts as JSON.

use super::contact::{
    Autopilot, Contact, ContactAssignee, ContactData, ContactIdentity, ContactStatus, IdentityKind,
};
use super::system_fields::{ALIASES, PAUSED_UNTIL};
use model::{RawMembers, Result};
use records::print::Printer;
use records::rows::ItemRow;
use records::shape::{Shape, Shown, push_json};
use serde_json::value::RawValue;

/// Returns a contact as JSON.
///
/// # Errors
/// `internal_error` if stored JSON is damaged.
pub(crate) fn printed(shape: &Shape, row: &ItemRow) -> Result<String> {
    let mut out = String::with_capacity(row.data.as_str().len() + 768);
    Printer::whole(shape).print(row, &mut out)?;
    Ok(out)
}

/// The URL of a contact in the dashboard: `None` until there is a dashboard.
pub(crate) const APP_URL: Option<String> = None;

impl<'a> Contact<'a> {
    /// A contact that is stored, with what is shown of it. Stored values that are damaged count as missing.
    pub(crate) fn of(shown: &Shown<'a>) -> Result<Self> {
        let row = shown.row;
        let values = RawMembers::of(row.data.as_str())?;
        let is_set = |key: &str, default| values.read(key).unwrap_or(default);
        let assignees: Vec<i64> = values.read("$assignee").unwrap_or_default();
        Ok(Self {
            id: row.id.into(),
            object: "contact",
            external_id: row.external_key.as_deref(),
            name: &row.title,
            tags: values.read("$tags").unwrap_or_default(),
            identities: identities(&values),
            status: values.read("$status").unwrap_or(ContactStatus::Active),
            autopilot: Autopilot {
                enabled: is_set("$autopilot", true),
                paused_until: values.raw(PAUSED_UNTIL).filter(is_text),
            },
            assignee: assignees.first().map(|id| ContactAssignee { kind: "user", id: *id }),
            opted_out: is_set("$opted_out", false),
            app_url: APP_URL,
            version: row.version,
            created_by: &row.created_by,
            updated_by: &row.updated_by,
            created_at: row.created_at,
            updated_at: row.updated_at,
            trashed_at: row.trashed_at,
            data: ContactData(if shown.data.get() == row.data.as_str() {
                values
            } else {
                RawMembers::of(shown.data.get())?
            }),
        })
    }
}

/// Returns the identities of a contact: its own, and those of contacts that were merged into it.
fn identities<'a>(values: &RawMembers<'a>) -> Vec<ContactIdentity<'a>> {
    let aliases: RawMembers<'_> = values.read(ALIASES).unwrap_or_default();
    let mut identities = Vec::new();
    for (kind, key) in IdentityKind::FIELDS {
        let own = values.raw(key).filter(is_text);
        identities.extend(own.map(|value| ContactIdentity { kind, value, primary: true }));
        let others: Vec<&RawValue> = aliases.read(key).unwrap_or_default();
        let others = others.into_iter().filter(|other| own.is_none_or(|own| own.get() != other.get()));
        identities.extend(others.map(|value| ContactIdentity { kind, value, primary: false }));
    }
    identities
}

/// Returns whether a JSON value is a string.
fn is_text(value: &&RawValue) -> bool {
    value.get().starts_with('"')
}

/// Prints a contact as JSON.
pub(crate) fn print(shown: Shown<'_>, out: &mut String) -> Result<()> {
    push_json(out, &Contact::of(&shown)?)
}
