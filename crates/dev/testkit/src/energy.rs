//! The state of the Energy ledger, for tests of crates that use it only by its port.

use crate::TestApp;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::WorkspaceId;

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

impl TestApp {
    /// Returns the number of open holds.
    pub async fn open_holds(&self) -> i64 {
        self.ledger_number("SELECT COUNT(*) AS n FROM energy_holds WHERE state = 'open'").await
    }

    /// Returns the number of debits, one per step.
    pub async fn debits(&self) -> i64 {
        self.ledger_number("SELECT COUNT(*) AS n FROM energy_entries WHERE kind = 'debit'").await
    }

    /// Returns the amount debited and not refunded.
    pub async fn energy_spent(&self) -> i64 {
        let sum = "CAST(COALESCE(-SUM(amount), 0) AS BIGINT)";
        self.ledger_number(&format!(
            "SELECT {sum} AS n FROM energy_entries WHERE kind IN ('debit', 'refund')"
        ))
        .await
    }

    /// Returns the amount that steps cost beyond their holds.
    pub async fn energy_absorbed(&self) -> i64 {
        let sum = "CAST(COALESCE(SUM(amount), 0) AS BIGINT)";
        let absorbed = "counter_account = 'platform_absorbed'";
        self.ledger_number(&format!("SELECT {sum} AS n FROM energy_entries WHERE {absorbed}")).await
    }

    /// Returns the amount spent by the only agent in the only month.
    pub async fn agent_month(&self) -> i64 {
        self.ledger_number("SELECT spent AS n FROM agent_months").await
    }

    /// Returns the balance of the only workspace.
    pub async fn energy_balance(&self) -> i64 {
        self.ledger_number("SELECT balance AS n FROM energy_accounts").await
    }

    /// Reserves all but `left` of a workspace's Energy, as other work would.
    pub async fn reserve_all_but(&self, workspace: WorkspaceId, left: i64) {
        let set = format!("reserved = balance - {left}");
        self.sql(format!("UPDATE energy_accounts SET {set} WHERE workspace_id = {workspace}")).await;
    }

    /// Releases the reservation of [`reserve_all_but`](Self::reserve_all_but).
    pub async fn free_energy(&self, workspace: WorkspaceId) {
        self.sql(format!("UPDATE energy_accounts SET reserved = 0 WHERE workspace_id = {workspace}")).await;
    }

    async fn ledger_number(&self, query: &str) -> i64 {
        let query = query.to_owned();
        let found = self
            .db()
            .read(move |read| Ok(diesel::sql_query(&query).get_result::<Number>(read.connection())?.n));
        found.await.unwrap()
    }
}
