//! What agents spend in a month, and what their open runs have set aside of it.
//!
//! Spending is counted for every live run, because a limit may be set at any time of the month. What is set aside
//! stands in the holds alone, and only agents with a limit ask for it.

use super::money;
use crate::schema::{agent_months, energy_holds};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bool};
use model::{AgentId, Error, Result, WorkspaceId};
use ports::Charge;
use store::Cached;
use store::{Read, Tx, each};

#[derive(Insertable)]
#[diesel(table_name = agent_months)]
struct AgentMonthRow<'a> {
    workspace_id: WorkspaceId,
    agent_id: AgentId,
    month: &'a str,
    spent: i64,
}

/// Adds to what the agent of `charge` has spent in a month and gives the sum. Adding nothing locks it.
pub(super) fn add(tx: &mut Tx, charge: &Charge, month: &str, energy: i64) -> Result<i64> {
    use agent_months as a;
    // A month that does not exist has nothing to give back.
    let row = AgentMonthRow {
        workspace_id: charge.caller.workspace_id(),
        agent_id: charge.agent,
        month,
        spent: energy.max(0),
    };
    let spent = each!(tx.connection(), |connection| {
        let upsert = diesel::insert_into(a::table)
            .values(&row)
            .on_conflict((a::workspace_id, a::agent_id, a::month))
            .do_update()
            .set(a::spent.eq(a::spent + energy))
            .returning(a::spent);
        Cached(upsert).get_result(connection)
    })?;
    check_range(charge, month, spent)?;
    Ok(spent)
}

/// Fails where an agent's month counts more than can be.
pub(super) fn check_range(charge: &Charge, month: &str, spent: i64) -> Result<()> {
    if spent > money::MOST_MICROS {
        return Err(Error::internal(format!(
            "the spending of agent {} in {month} leaves its range",
            charge.agent
        )));
    }
    Ok(())
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
