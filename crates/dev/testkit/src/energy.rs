//! Energy as the ledger keeps it, for tests of groups that spend it and know it by its port only.

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
    /// How many holds are open.
    pub async fn open_holds(&self) -> i64 {
        self.ledger_number("SELECT COUNT(*) AS n FROM energy_holds WHERE state = 'open'").await
    }

    /// How many steps were debited.
    pub async fn debits(&self) -> i64 {
        self.ledger_number("SELECT COUNT(*) AS n FROM energy_entries WHERE kind = 'debit'").await
    }

    /// What was debited and not given back.
    pub async fn energy_spent(&self) -> i64 {
        let sum = "CAST(COALESCE(-SUM(amount), 0) AS BIGINT)";
        self.ledger_number(&format!(
            "SELECT {sum} AS n FROM energy_entries WHERE kind IN ('debit', 'refund')"
        ))
        .await
    }

    /// What steps cost beyond what was held for them.
    pub async fn energy_absorbed(&self) -> i64 {
        let sum = "CAST(COALESCE(SUM(amount), 0) AS BIGINT)";
        let absorbed = "counter_account = 'platform_absorbed'";
        self.ledger_number(&format!("SELECT {sum} AS n FROM energy_entries WHERE {absorbed}")).await
    }

    /// What the only agent has spent in the only month.
    pub async fn agent_month(&self) -> i64 {
        self.ledger_number("SELECT spent AS n FROM agent_months").await
    }

    /// What the only workspace owns.
    pub async fn energy_balance(&self) -> i64 {
        self.ledger_number("SELECT balance AS n FROM energy_accounts").await
    }

    /// Sets all of a workspace's Energy aside but `left`, as other work would.
    pub async fn reserve_all_but(&self, workspace: WorkspaceId, left: i64) {
        let set = format!("reserved = balance - {left}");
        self.sql(format!("UPDATE energy_accounts SET {set} WHERE workspace_id = {workspace}")).await;
    }

    /// Ends what [`reserve_all_but`](Self::reserve_all_but) set aside.
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
