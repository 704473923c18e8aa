//! `GET /billing/energy/ledger`.

use crate::ledger::{EntryKind, UNMETERED};
use crate::schema::energy_entries;
use diesel::prelude::*;
use model::{AgentId, Caller, KeyId, LedgerId, RequestId, Result, RunId, Timestamp, WorkspaceId};
use operation::{OptIn, OptInList, operation};
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// A change of the Energy balance. It never changes.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "type": "debit", "amount": -12, "balance_after": 17988, "metered": true, "usd_micros": -12000,
    "run_id": "run_01m7w4n5e0k3p8r2v6x9b1d4f7", "step": 1, "key_id": "key_01m7w4n5e0k3p8r2v6x9b1d4f7",
    "agent_id": 1, "request_id": "req_01m7w4n5e0k3p8r2v6x9b1d4f7", "operation": "run", "model": "balanced",
}))]
pub struct LedgerEntry {
    /// Always `ledger_entry`.
    object: &'static str,
    /// The id.
    id: LedgerId,
    /// The type of entry.
    #[serde(rename = "type")]
    kind: EntryKind,
    /// The change of the balance. Negative for debits.
    amount: i64,
    /// The balance after the entry.
    balance_after: i64,
    /// Whether the balance changed. `false` for the cost of work on a plan that does not meter Energy.
    metered: bool,
    /// The value in millionths of a US dollar, with the sign of `amount`.
    usd_micros: i64,
    /// The run that caused it, or `null`.
    run_id: Option<RunId>,
    /// The step of the run, or `null`.
    step: Option<i64>,
    /// The key that caused it, or `null`.
    key_id: Option<KeyId>,
    /// The id of the agent, or `null`.
    agent_id: Option<AgentId>,
    /// The request that caused it, or `null`.
    request_id: Option<RequestId>,
    /// The type of work, such as `run`, the type of grant, or `adjustment`.
    operation: String,
    /// The model that was used, or `null`.
    model: Option<String>,
    /// When the entry was recorded.
    created_at: Timestamp,
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = energy_entries)]
struct StoredEntry {
    id: LedgerId,
    kind: EntryKind,
    amount: i64,
    balance_after: i64,
    counter_account: String,
    usd_micros: i64,
    source_type: String,
    source_id: String,
    step: i64,
    key_id: Option<KeyId>,
    agent_id: Option<AgentId>,
    request_id: Option<RequestId>,
    operation: String,
    model: Option<String>,
    created_at: Timestamp,
}

impl StoredEntry {
    fn show(self) -> LedgerEntry {
        let run_id = (self.source_type == "run").then(|| RunId::parse(&self.source_id)).flatten();
        LedgerEntry {
            object: "ledger_entry",
            kind: self.kind,
            id: self.id,
            amount: self.amount,
            balance_after: self.balance_after,
            metered: self.counter_account != UNMETERED,
            usd_micros: self.usd_micros,
            step: run_id.as_ref().map(|_| self.step),
            run_id,
            key_id: self.key_id,
            agent_id: self.agent_id,
            request_id: self.request_id,
            operation: self.operation,
            model: self.model,
            created_at: self.created_at,
        }
    }
}

/// Every grant, recharge, debit and refund
///
/// Lists the ledger's entries, newest first, including corrections and expired grants. Entries that the platform pays
/// itself are not listed.
#[operation(get "/billing/energy/ledger", scope = "billing:read")]
pub fn list_energy_ledger(read: &mut Read, caller: &Caller, page: OptIn) -> Result<OptInList<LedgerEntry>> {
    use energy_entries as e;
    let mut query = e::table
        .filter(e::workspace_id.eq(caller.workspace_id()))
        .filter(e::kind.ne(EntryKind::Absorb))
        .order(e::id.desc())
        .limit(page.page().fetch())
        .select(StoredEntry::as_select())
        .into_boxed();
    if let Some(after) = page.page().after::<LedgerId>()? {
        query = query.filter(e::id.lt(after));
    }
    let rows: Vec<StoredEntry> = query.load(read.connection())?;
    let entries = rows.into_iter().map(StoredEntry::show).collect();
    Ok(page.answer(entries, |entry| entry.id.to_string()))
}

/// The entries of one run's steps from `first` to `last`, in their order.
pub(super) fn of_run(
    read: &mut Read,
    workspace: WorkspaceId,
    run: &str,
    (first, last): (i64, i64),
) -> Result<Vec<LedgerEntry>> {
    use energy_entries as e;
    let rows: Vec<StoredEntry> = e::table
        .filter(e::source_type.eq("run"))
        .filter(e::source_id.eq(run))
        .filter(e::step.between(first, last))
        .filter(e::workspace_id.eq(workspace))
        .filter(e::kind.ne(EntryKind::Absorb))
        .order((e::step.asc(), e::kind.asc()))
        .select(StoredEntry::as_select())
        .load(read.connection())?;
    Ok(rows.into_iter().map(StoredEntry::show).collect())
}
