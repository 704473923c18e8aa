//! The detail view of a contact.

use super::consent::{self, ContactConsent};
use super::contact::Contact;
use super::merges;
use super::system_fields::{AUTOPILOT_CONFIG, ROUTING_CONFIG};
use diesel::dsl::exists;
use diesel::prelude::*;
use model::{Actor, ContactId, Error, ItemId, RawMembers, Result, Timestamp};
use operation::{RawJson, With};
use records::print::Printer;
use records::rows::ItemRow;
use records::shape::{Shape, Shown};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use store::Read;
use utoipa::ToSchema;

/// A contact with all that is known about it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "merged_ids": [1043] }))]
pub struct ContactDetail<'a> {
    /// The contact.
    #[serde(flatten)]
    pub contact: Contact<'a>,
    /// What the contact said about broadcasts, the newest first, at most 100.
    pub consents: Vec<ContactConsent>,
    /// The ids of the contacts that were merged into this one. They find it.
    #[schema(value_type = Vec<ContactId>)]
    pub merged_ids: Vec<ItemId>,
    /// How the autopilot was switched. `null` if it never was.
    #[schema(value_type = Option<AutopilotConfig>)]
    pub autopilot_config: Option<&'a RawValue>,
    /// How the conversation was assigned. `null` if it never was.
    #[schema(value_type = Option<RoutingConfig>)]
    pub routing_config: Option<&'a RawValue>,
}

/// How the autopilot was switched.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "epoch": 3 }))]
pub struct AutopilotConfig {
    /// How often the conversation was handed over. Work of the agent that began at a lower number has no effect.
    pub epoch: i64,
    /// Who switched it last.
    pub changed_by: Actor,
    /// When it was switched.
    pub changed_at: Timestamp,
}

/// How the conversation was assigned.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({}))]
pub struct RoutingConfig {
    /// Who assigned it last, or took the assignment off.
    pub assigned_by: Actor,
    /// When that was.
    pub assigned_at: Timestamp,
}

/// Builds the response with the detail view of a contact.
///
/// # Errors
/// `internal_error` if stored JSON is damaged.
pub(crate) fn answer(
    read: &mut Read,
    shape: &Shape,
    row: &ItemRow,
) -> Result<With<RawJson<ContactDetail<'static>>>> {
    let values = RawMembers::of(row.data.as_str())?;
    let data = Printer::whole(shape).values(row)?;
    let (consents, merged_ids) = history(read, row)?;
    let detail = ContactDetail {
        contact: Contact::of(&Shown { row, data: &data, expanded: None })?,
        consents,
        merged_ids,
        autopilot_config: values.raw(AUTOPILOT_CONFIG),
        routing_config: values.raw(ROUTING_CONFIG),
    };
    Ok(With::etag(row.version, RawJson::new(serde_json::to_string(&detail).map_err(Error::internal)?)))
}

/// Returns the consents of a contact, and the contacts that were merged into it. Most contacts have neither, so one
/// query first checks which of the two lists have to be read.
fn history(read: &mut Read, row: &ItemRow) -> Result<(Vec<ContactConsent>, Vec<ItemId>)> {
    let (workspace, id) = (row.workspace_id, row.id);
    let has = diesel::select((exists(consent::of(id)), exists(merges::into(id))));
    let (has_consents, has_merged): (bool, bool) = has.get_result(read.connection())?;
    let consents = if has_consents { consent::of_contact(read, workspace, id)? } else { Vec::new() };
    let merged = if has_merged { merges::merged_into(read, workspace, &[id])? } else { Vec::new() };
    Ok((consents, merged))
}
