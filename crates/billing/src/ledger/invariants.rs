//! What must be true of a workspace's Energy after every transaction.

use super::account::{self};
use super::hold;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{Result, WorkspaceId};
use store::Read;
use store::schema::energy_accounts;

/// Sentences about what is wrong with a workspace's Energy: none when the books are right. It reads everything
/// that the workspace ever did, so it is for tests and for the night.
///
/// # Errors
/// When the database fails.
pub fn check_invariants(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<String>> {
    let row: Option<(i64, i64)> = energy_accounts::table
        .find(workspace)
        .select((energy_accounts::balance, energy_accounts::reserved))
        .first(read.connection())
        .optional()?;
    let Some((balance, reserved)) = row else {
        return Ok(vec![format!("workspace {workspace} has no account")]);
    };
    let mut wrong = Vec::new();
    if !(0..=balance).contains(&reserved) || balance > account::MOST_BALANCE {
        wrong.push(format!("balance {balance} and reserved {reserved} do not fit together"));
    }
    for (what, sql, expected) in [
        (
            "what is left of the grants",
            "SELECT CAST(COALESCE(SUM(remaining), 0) AS BIGINT) AS number FROM energy_grants WHERE workspace_id = {w}",
            balance,
        ),
        (
            "the entries",
            "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) AS number FROM energy_entries \
             WHERE workspace_id = {w} AND counter_account <> 'platform_absorbed'",
            balance,
        ),
        (
            "what open holds have unused",
            "SELECT CAST(COALESCE(SUM(amount - used), 0) AS BIGINT) AS number FROM energy_holds \
             WHERE workspace_id = {w} AND state = '{open}'",
            reserved,
        ),
        (
            "the number of grants that differ from their burns",
            "SELECT COUNT(*) AS number FROM energy_grants g WHERE g.workspace_id = {w} AND g.remaining <> \
             -COALESCE((SELECT SUM(b.amount) FROM grant_burns b WHERE b.grant_id = g.id), 0)",
            0,
        ),
        (
            "the number of entries that differ from their burns",
            "SELECT COUNT(*) AS number FROM energy_entries e WHERE e.workspace_id = {w} AND e.kind <> 'absorb' \
             AND e.amount <> -COALESCE((SELECT SUM(b.amount) FROM grant_burns b WHERE b.entry_id = e.id), 0)",
            0,
        ),
        (
            "the number of keys whose reserved money differs from their holds",
            "SELECT COUNT(*) AS number FROM key_months k WHERE k.lineage_id IN \
             (SELECT h.key_lineage FROM energy_holds h WHERE h.workspace_id = {w}) AND k.reserved_micros <> \
             COALESCE((SELECT SUM(h.reserved_micros) FROM energy_holds h WHERE h.key_lineage = k.lineage_id \
             AND h.month = k.month AND h.state = '{open}'), 0)",
            0,
        ),
        (
            "the number of negative months",
            "SELECT COUNT(*) AS number FROM key_months k WHERE k.lineage_id IN \
             (SELECT h.key_lineage FROM energy_holds h WHERE h.workspace_id = {w}) AND k.spent_micros < 0",
            0,
        ),
    ] {
        let sql = sql.replace("{w}", &workspace.0.to_string()).replace("{open}", hold::OPEN);
        let found = number(read, &sql)?;
        if found != expected {
            wrong.push(format!("{what}: {found} instead of {expected}"));
        }
    }
    Ok(wrong)
}

fn number(read: &mut Read, sql: &str) -> Result<i64> {
    #[derive(QueryableByName)]
    struct Number {
        #[diesel(sql_type = BigInt)]
        number: i64,
    }
    Ok(diesel::sql_query(sql).get_result::<Number>(read.connection())?.number)
}
