//! Executions: one row for each attempt that has ended, with what it cost.

use crate::schema::executions;
use diesel::prelude::*;
use model::{AgentId, ExecutionId, KeyId, Result, RunId, Timestamp, WorkspaceId};
use ports::{Charge, TestExecution};
use store::{Tx, each};

/// How an attempt ended.
pub(super) struct Ended<'a> {
    pub(super) status: &'a str,
    pub(super) livemode: bool,
    pub(super) energy: i64,
    pub(super) usd_micros: i64,
    pub(super) model: &'a str,
    pub(super) first_step: i64,
    pub(super) last_step: Option<i64>,
}

#[derive(Insertable)]
#[diesel(table_name = executions, treat_none_as_default_value = false)]
struct ExecutionRow<'a> {
    workspace_id: WorkspaceId,
    id: ExecutionId,
    kind: &'a str,
    source_id: &'a RunId,
    status: &'a str,
    livemode: bool,
    energy: i64,
    usd_micros: i64,
    key_id: &'a KeyId,
    agent_id: AgentId,
    model: &'a str,
    created_at: Timestamp,
    first_step: i64,
    last_step: Option<i64>,
}

/// Writes the execution of an attempt.
pub(super) fn record(tx: &mut Tx, charge: &Charge, ended: &Ended<'_>) -> Result<()> {
    let row = ExecutionRow {
        workspace_id: charge.caller.workspace_id(),
        id: ExecutionId::new(tx.now(), &*tx.random()),
        kind: charge.operation,
        source_id: &charge.run,
        status: ended.status,
        livemode: ended.livemode,
        energy: ended.energy,
        usd_micros: ended.usd_micros,
        key_id: &charge.caller.key.id,
        agent_id: charge.agent,
        model: ended.model,
        created_at: tx.now(),
        first_step: ended.first_step,
        last_step: ended.last_step,
    };
    each!(tx.connection(), |connection| diesel::insert_into(executions::table)
        .values(row)
        .execute(connection))?;
    Ok(())
}

/// [`ports::EnergyMeter::record_test`].
pub(super) fn record_test(tx: &mut Tx, charge: &Charge, execution: &TestExecution<'_>) -> Result<()> {
    let TestExecution { status, model, first_step, last_step } = *execution;
    let ended = Ended { status, livemode: false, energy: 0, usd_micros: 0, model, first_step, last_step };
    record(tx, charge, &ended)
}
