//! What must be true of the books after every transaction.

use super::account::MOST_BALANCE;
use super::hold::HoldState;
use auth::{keys, partners, workspaces};
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{KeyOwner, PartnerId, Result, WorkspaceId};
use store::{Db, Read};

/// A workspace's Energy. Everything in one statement, because one statement sees one moment. What was burnt is summed
/// up from the workspace's own entries, because `grant_burns` knows its rows by entry only.
const NUMBERS: &str = "\
SELECT a.balance, a.reserved, \
  (SELECT CAST(COALESCE(SUM(g.remaining), 0) AS BIGINT) FROM energy_grants g \
    WHERE g.workspace_id = {w}) AS granted, \
  (SELECT CAST(COALESCE(SUM(e.amount), 0) AS BIGINT) FROM energy_entries e \
    WHERE e.workspace_id = {w} AND e.counter_account NOT IN ('platform_absorbed', 'unmetered')) AS entered, \
  (SELECT CAST(COALESCE(SUM(h.amount - h.used), 0) AS BIGINT) FROM energy_holds h \
    WHERE h.workspace_id = {w} AND h.state = '{open}' AND h.metered) AS held, \
  (SELECT COUNT(*) FROM energy_grants g LEFT JOIN \
      (SELECT b.grant_id AS id, SUM(b.amount) AS burnt FROM energy_entries e \
        JOIN grant_burns b ON b.entry_id = e.id WHERE e.workspace_id = {w} GROUP BY b.grant_id) s ON s.id = g.id \
    WHERE g.workspace_id = {w} AND g.remaining <> -COALESCE(s.burnt, 0)) AS wrong_grants, \
  (SELECT COUNT(*) FROM energy_entries e \
    WHERE e.workspace_id = {w} AND e.counter_account NOT IN ('platform_absorbed', 'unmetered') AND e.amount <> \
    -COALESCE((SELECT SUM(b.amount) FROM grant_burns b WHERE b.entry_id = e.id), 0)) AS wrong_entries, \
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
    wrong_agents: i64,
}

/// The money of keys: in each month, what is written as spent less what the entries of the month's runs say, and what
/// is written as reserved less what open holds say, are nothing.
const MONTHS: &str = "\
SELECT COUNT(*) AS wrong FROM (SELECT m.lineage FROM (\
    SELECT k.lineage_id AS lineage, k.month AS month, k.spent_micros AS spent, k.spent_micros AS least, \
        k.reserved_micros AS reserved \
      FROM key_months k WHERE k.lineage_id IN ({lineages}) \
    UNION ALL \
    SELECT h.key_lineage, h.month, e.usd_micros, 0, 0 \
      FROM energy_entries e JOIN energy_holds h ON h.run_id = e.source_id \
      WHERE e.source_type = 'run' AND e.counter_account IN ('consumed', 'unmetered') AND h.key_lineage IN ({lineages}) {where} \
    UNION ALL \
    SELECT h.key_lineage, h.month, 0, 0, -h.reserved_micros \
      FROM energy_holds h WHERE h.state = '{open}' AND h.key_lineage IN ({lineages})) m \
  GROUP BY m.lineage, m.month \
  HAVING SUM(m.spent) <> 0 OR SUM(m.reserved) <> 0 OR MIN(m.least) < 0) found";

#[derive(QueryableByName)]
struct Months {
    #[diesel(sql_type = BigInt)]
    wrong: i64,
}

/// `narrower` leaves out the entries that are no concern of the owner.
fn check_months(read: &mut Read, owner: KeyOwner, narrower: &str) -> Result<Vec<String>> {
    let lineages = keys::lineages_of(read, owner)?;
    let mut wrong = 0;
    for lineages in lineages.chunks(500) {
        let names: Vec<String> = lineages.iter().map(|lineage| format!("'{lineage}'")).collect();
        let sql = MONTHS.replace("{lineages}", &names.join(", "));
        let sql = sql.replace("{where}", narrower).replace("{open}", HoldState::Open.as_str());
        wrong += diesel::sql_query(sql).get_result::<Months>(read.connection())?.wrong;
    }
    let what = "months of keys that are negative, or differ from their entries or holds";
    Ok((wrong != 0).then(|| format!("{what}: {wrong} instead of 0")).into_iter().collect())
}

/// Sentences about what is wrong with a workspace's Energy and with the money of its keys: none when the books are
/// right. It reads everything that the workspace ever did, so it is for tests and for the night.
///
/// # Errors
/// When the database fails.
pub fn check_invariants(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<String>> {
    let sql = NUMBERS.replace("{w}", &workspace.0.to_string()).replace("{open}", HoldState::Open.as_str());
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
        ("agents whose months differ from what they were debited", n.wrong_agents, 0),
    ] {
        if found != expected {
            wrong.push(format!("{what}: {found} instead of {expected}"));
        }
    }
    // A workspace's own key spends nowhere else.
    let own = format!("AND e.workspace_id = {workspace}");
    wrong.extend(check_months(read, KeyOwner::Workspace(workspace), &own)?);
    Ok(wrong)
}

/// The same about the money of a partner's keys, which spend in many workspaces.
fn check_partner(read: &mut Read, partner: PartnerId) -> Result<Vec<String>> {
    check_months(read, KeyOwner::Partner(partner), "")
}

/// How many workspaces are looked up together.
const BATCH: i64 = 100;

/// Checks the books of everybody, each by itself, and says at level `error` what is wrong. Gives the number of
/// findings.
///
/// # Errors
/// When the database fails.
pub async fn check_all(db: &Db) -> Result<usize> {
    let mut findings = 0;
    let mut last = WorkspaceId(0);
    loop {
        let ids = db.read(move |read| workspaces::ids_after(read, last, BATCH)).await?;
        let Some(end) = ids.last() else { break };
        last = *end;
        for id in ids {
            for finding in db.read(move |read| check_invariants(read, id)).await? {
                tracing::error!(workspace = id.0, finding, "the books of Energy are wrong");
                findings += 1;
            }
        }
    }
    let partners = db.read(partners::list).await?;
    for id in partners.into_iter().map(|partner| partner.id) {
        for finding in db.read(move |read| check_partner(read, id)).await? {
            tracing::error!(partner = id.0, finding, "the books of Energy are wrong");
            findings += 1;
        }
    }
    Ok(findings)
}
