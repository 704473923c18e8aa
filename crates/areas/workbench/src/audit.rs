//! The audit log: who changed what about access.

use accounts::audit::{self, Recorded, Search};
use model::{AccountId, AuditId, Caller, JsonText, Result, Timestamp};
use operation::{OptIn, OptInList, Query, operation};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use store::Read;
use utoipa::{IntoParams, ToSchema};

/// Returns the operations on the audit log.
pub(crate) fn operations() -> operation::Operations {
    vec![Box::new(ListAuditEntries)]
}

/// What is looked for in the audit log.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct AuditQuery {
    /// Changes that this account made.
    #[serde(default)]
    pub account_id: Option<AccountId>,
    /// Changes of this kind.
    #[param(max_length = 60, example = "key.created")]
    #[serde(default)]
    pub action: Option<String>,
    /// Changes of this object, by its id.
    #[param(max_length = 80)]
    #[serde(default)]
    pub target: Option<String>,
}

/// A change that was made to access.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "action": "key.created", "target": "key_01m7w4n5e0k3p8r2v6x9b1d4f7", "account_name": "Marta Ruiz",
    "details": { "name": "Shop", "env": "live", "scopes": ["contacts:read"] },
}))]
pub struct AuditEntry {
    /// The id of the entry.
    pub id: AuditId,
    /// Always `audit_entry`.
    pub object: &'static str,
    /// What was done, such as `key.created`.
    pub action: String,
    /// The id of the object.
    pub target: String,
    /// The account that did it. `null` for the command line and the service.
    pub account_id: Option<AccountId>,
    /// The name of the account now.
    pub account_name: Option<String>,
    /// From where it was done: an address, or `command line`.
    pub address: Option<String>,
    /// What was before and what is after, without secrets.
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>)]
    pub details: JsonText,
    /// When it was done.
    pub created_at: Timestamp,
}

/// The audit log of the workspace
///
/// Lists the changes to access in the workspace, newest first: keys, members, roles, invitations, apps. They are kept for a
/// year.
#[operation(get "/dashboard/audit", session = "audit:read")]
pub fn list_audit_entries(
    read: &mut Read,
    caller: &Caller,
    page: OptIn,
    Query(query): Query<AuditQuery>,
) -> Result<OptInList<AuditEntry>> {
    let search = Search {
        before: page.page().after::<AuditId>()?,
        account: query.account_id,
        action: query.action,
        target: query.target,
    };
    let found = audit::search(read, caller.workspace_id(), &search, page.page().fetch())?;
    let mut names = HashMap::new();
    for id in found.iter().filter_map(|entry| entry.account_id.as_ref()) {
        if !names.contains_key(id) {
            names.insert(id.clone(), accounts::account::find(read, id)?.name);
        }
    }
    let shown = |entry: Recorded| AuditEntry {
        id: entry.id,
        object: "audit_entry",
        action: entry.action,
        target: entry.target,
        account_name: entry.account_id.as_ref().and_then(|id| names.get(id).cloned()),
        account_id: entry.account_id,
        address: entry.address,
        details: entry.details,
        created_at: entry.created_at,
    };
    let rows = found.into_iter().map(shown).collect();
    Ok(page.answer(rows, |entry: &AuditEntry| entry.id.to_string()))
}
