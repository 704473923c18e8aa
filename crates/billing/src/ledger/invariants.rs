//! What must be true of a workspace's Energy after every transaction.

use super::account::MOST_BALANCE;
use super::hold;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{Result, WorkspaceId};
use store::Read;

/// Everything in one statement, because one statement sees one moment.
const NUMBERS: &str = "\
SELECT a.balance, a.reserved, \
  (SELECT CAST(COALESCE(SUM(g.remaining), 0) AS BIGINT) FROM energy_grants g \
    WHERE g.workspace_id = {w}) AS granted, \
  (SELECT CAST(COALESCE(SUM(e.amount), 0) AS BIGINT) FROM energy_entries e \
    WHERE e.workspace_id = {w} AND e.counter_account <> 'platform_absorbed') AS entered, \
  (SELECT CAST(COALESCE(SUM(h.amount - h.used), 0) AS BIGINT) FROM energy_holds h \
    WHERE h.workspace_id = {w} AND h.state = '{open}') AS held, \
  (SELECT COUNT(*) FROM energy_grants g WHERE g.workspace_id = {w} AND g.remaining <> \
    -COALESCE((SELECT SUM(b.amount) FROM grant_burns b WHERE b.grant_id = g.id), 0)) AS wrong_grants, \
  (SELECT COUNT(*) FROM energy_entries e \
    WHERE e.workspace_id = {w} AND e.counter_account <> 'platform_absorbed' AND e.amount <> \
    -COALESCE((SELECT SUM(b.amount) FROM grant_burns b WHERE b.entry_id = e.id), 0)) AS wrong_entries, \
  (SELECT COUNT(*) FROM key_months k WHERE k.lineage_id IN \
    (SELECT h.key_lineage FROM energy_holds h WHERE h.workspace_id = {w}) AND (k.spent_micros < 0 OR \
    k.reserved_micros <> COALESCE((SELECT SUM(h.reserved_micros) FROM energy_holds h \
      WHERE h.key_lineage = k.lineage_id AND h.month = k.month AND h.state = '{open}'), 0))) AS wrong_months, \
  (SELECT COUNT(*) FROM (SELECT u.agent_id FROM \
    (SELECT m.agent_id, m.spent AS energy FROM agent_months m WHERE m.workspace_id = {w} \
      UNION ALL SELECT e.agent_id, e.amount FROM energy_entries e WHERE e.workspace_id = {w} \
        AND e.agent_id IS NOT NULL AND e.kind IN ('debit', 'refund')) u \
    GROUP BY u.agent_id HAVING SUM(u.energy) <> 0) wrong) AS wrong_agents \
FROM energy_accounts a WHERE a.workspace_id = {w}";

#[derive(QueryableByName)]
struct Numbers {
    #[diesel(sql_type = BigInt)]
    balance: i64,
    #[diesel(sql_type = BigInt)]
    reserved: i64,
    #[diesel(sql_type = BigInt)]
    granted: i64,
    #[diesel(sql_type = BigInt)]
    entered: i64,
    #[diesel(sql_type = BigInt)]
    held: i64,
    #[diesel(sql_type = BigInt)]
    wrong_grants: i64,
    #[diesel(sql_type = BigInt)]
    wrong_entries: i64,
    #[diesel(sql_type = BigInt)]
    wrong_months: i64,
    #[diesel(sql_type = BigInt)]
    wrong_agents: i64,
}

/// Sentences about what is wrong with a workspace's Energy: none when the books are right. It reads everything
/// that the workspace ever did, so it is for tests and for the night.
///
/// # Errors
/// When the database fails.
pub fn check_invariants(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<String>> {
    let sql = NUMBERS.replace("{w}", &workspace.0.to_string()).replace("{open}", hold::OPEN);
    let numbers: Option<Numbers> = diesel::sql_query(sql).get_result(read.connection()).optional()?;
    let Some(n) = numbers else { return Ok(vec![format!("workspace {workspace} has no account")]) };
    let (balance, reserved) = (n.balance, n.reserved);
    let mut wrong = Vec::new();
    if !(0..=balance).contains(&reserved) || balance > MOST_BALANCE {
        wrong.push(format!("a balance of {balance} does not fit {reserved} reserved"));
    }
    for (what, found, expected) in [
        ("what is left of the grants, against the balance", n.granted, balance),
        ("the sum of all entries, against the balance", n.entered, balance),
        ("what open holds have unused, against what is reserved", n.held, reserved),
        ("grants that differ from what was put in and taken out", n.wrong_grants, 0),
        ("entries that differ from what they took of grants", n.wrong_entries, 0),
        ("months of keys that are negative or differ from their holds", n.wrong_months, 0),
        ("agents whose months differ from what they were debited", n.wrong_agents, 0),
    ] {
        if found != expected {
            wrong.push(format!("{what}: {found} instead of {expected}"));
        }
    }
    Ok(wrong)
}
