//! What agents spend in a month, and what their open runs have set aside of it.
//!
//! Spending is counted for every live run, because a limit may be set at any time of the month. What is set aside
//! stands in the holds alone, and only agents with a limit ask for it.

use super::money;
use crate::schema::energy_holds;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool};
use model::{AgentId, Error, Result, WorkspaceId};
use ports::Charge;
use std::collections::BTreeMap;
use store::{OnConflict, Read, Rows, Tx};

/// A month of an agent.
pub(super) type AgentMonth<'a> = (WorkspaceId, AgentId, &'a str);

#[derive(QueryableByName)]
struct Spent {
    #[diesel(sql_type = BigInt)]
    spent: i64,
}

/// Adds to what agents have spent in months. Adding nothing locks them.
///
/// # Errors
/// Internal where a month counts more than can be.
pub(super) fn add_all(tx: &mut Tx, added: &BTreeMap<AgentMonth<'_>, i64>) -> Result<Vec<i64>> {
    let rows: Vec<(&AgentMonth<'_>, &i64)> = added.iter().collect();
    let rows = Rows::of(&rows)
        .big_int("workspace_id", |((workspace, ..), _)| *workspace)
        .big_int("agent_id", |((_, agent, _), _)| *agent)
        .text("month", |((.., month), _)| *month)
        .big_int("spent", |(_, energy)| **energy);
    let key = &["workspace_id", "agent_id", "month"];
    let sum = OnConflict::Update { key, set: "spent = a.spent + excluded.spent" };
    let spent: Vec<Spent> = rows.insert_returning(tx, "agent_months AS a", sum, "spent")?;
    if spent.iter().any(|one| one.spent > money::MOST_MICROS) {
        return Err(Error::internal("the spending of an agent in a month leaves its range"));
    }
    Ok(spent.into_iter().map(|one| one.spent).collect())
}

/// Adds to what the agent of `charge` has spent in a month and gives the sum. Adding nothing locks it.
pub(super) fn add(tx: &mut Tx, charge: &Charge, month: &str, energy: i64) -> Result<i64> {
    let of = (charge.caller.workspace_id(), charge.agent, month);
    let spent = add_all(tx, &BTreeMap::from([(of, energy)]))?;
    Ok(spent.into_iter().next().unwrap_or(0))
}

/// What the agent's other runs of a month have set aside and not used. Whoever holds under a limit locks the month
/// first, so that of two runs at once the second sees what the first has set aside.
pub(super) fn reserved_by_others(read: &mut Read, charge: &Charge, month: &str) -> Result<i64> {
    use energy_holds as h;
    Ok(h::table
        .filter(h::workspace_id.eq(charge.caller.workspace_id()))
        .filter(h::agent_id.eq(charge.agent))
        // The index of open holds is found by these very words.
        .filter(sql::<Bool>("energy_holds.state = 'open'"))
        .filter(h::month.eq(month))
        .filter(h::run_id.ne(&charge.run))
        .select(sql::<BigInt>("CAST(COALESCE(SUM(amount - used), 0) AS BIGINT)"))
        .get_result(read.connection())?)
}
