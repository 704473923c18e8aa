//! Executions: one row for each attempt that has ended, with what it cost.

use model::{ExecutionId, Result};
use ports::{Charge, TestExecution};
use store::{Rows, Tx};

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

/// Attempts that have ended as rows of `executions`.
pub(super) fn rows<'a>(
    tx: &Tx,
    ended: &'a [(&'a Charge, &'a Ended<'a>)],
) -> Rows<'a, (&'a Charge, &'a Ended<'a>)> {
    let (now, random) = (tx.now(), tx.random());
    Rows::of(ended)
        .big_int("workspace_id", |(charge, _)| charge.caller.workspace_id())
        .text("id", move |_| ExecutionId::new(now, &*random))
        .text("kind", |(charge, _)| charge.operation)
        .text("source_id", |(charge, _)| &charge.run)
        .text("status", |(_, ended)| ended.status)
        .bool("livemode", |(_, ended)| ended.livemode)
        .big_int("energy", |(_, ended)| ended.energy)
        .big_int("usd_micros", |(_, ended)| ended.usd_micros)
        .text("key_id", |(charge, _)| &charge.caller.key.id)
        .big_int("agent_id", |(charge, _)| charge.agent)
        .text("model", |(_, ended)| ended.model)
        .time("created_at", move |_| now)
        .big_int("first_step", |(_, ended)| ended.first_step)
        .big_int("last_step", |(_, ended)| ended.last_step)
}

/// [`ports::EnergyMeter::record_test`].
pub(super) fn record_test(tx: &mut Tx, charge: &Charge, execution: &TestExecution<'_>) -> Result<()> {
    let TestExecution { status, model, first_step, last_step } = *execution;
    let ended = Ended { status, livemode: false, energy: 0, usd_micros: 0, model, first_step, last_step };
    rows(tx, &[(charge, &ended)]).insert(tx, "executions")
}
