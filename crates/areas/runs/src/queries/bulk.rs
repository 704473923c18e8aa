//! Statements that write many runs or steps, on PostgreSQL. Their texts are the same for any number, so that each is prepared
//! once.

use crate::run::{RunRow, StepRow};
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Nullable, Text, Timestamp as SqlTimestamp};
use model::{Error, JsonText, Result, RunId};
use std::collections::HashSet;
use store::{Cached, CachedChange, PgConnection, Tx, column};

fn postgres(tx: &mut Tx) -> Result<&mut PgConnection> {
    match tx.connection() {
        store::AnyConnection::Postgres(connection) => Ok(connection),
        store::AnyConnection::Sqlite(_) => Err(Error::internal("SQLite writes runs one by one")),
    }
}

/// Inserts new runs.
pub(crate) fn insert_runs(tx: &mut Tx, rows: &[&RunRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let insert = diesel::sql_query(
        "INSERT INTO runs (workspace_id, id, livemode, agent_id, agent_version, status, input, conversation_id, ephemeral, model,
            options, metadata, key_id, key_lineage, request_id, lease_until, epoch, queued_at, started_at, input_tokens,
            cached_tokens, output_tokens, reasoning_tokens, model_calls, tool_calls, energy, simulated_energy)
        SELECT new.*, 0, 0, 0, 0, 0, 0, 0, 0 FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
            $17, $18, $19) AS new",
    )
    .bind::<Array<BigInt>, _>(column(rows, |row| row.workspace_id))
    .bind::<Array<Text>, _>(column(rows, |row| row.id.as_str()))
    .bind::<Array<Bool>, _>(column(rows, |row| row.livemode))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.agent_id))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.agent_version))
    .bind::<Array<Text>, _>(column(rows, |row| row.status.as_str()))
    .bind::<Array<Nullable<Text>>, _>(column(rows, |row| row.input.as_deref()))
    .bind::<Array<Text>, _>(column(rows, |row| row.conversation_id.as_str()))
    .bind::<Array<Bool>, _>(column(rows, |row| row.ephemeral))
    .bind::<Array<Text>, _>(column(rows, |row| row.model.as_str()))
    .bind::<Array<Text>, _>(column(rows, |row| row.options.as_str()))
    .bind::<Array<Text>, _>(column(rows, |row| row.metadata.as_str()))
    .bind::<Array<Text>, _>(column(rows, |row| row.key_id.as_str()))
    .bind::<Array<Text>, _>(column(rows, |row| row.key_lineage.as_str()))
    .bind::<Array<Text>, _>(column(rows, |row| row.request_id.as_str()))
    .bind::<Array<Nullable<SqlTimestamp>>, _>(column(rows, |row| row.lease_until))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.epoch))
    .bind::<Array<SqlTimestamp>, _>(column(rows, |row| row.queued_at))
    .bind::<Array<Nullable<SqlTimestamp>>, _>(column(rows, |row| row.started_at));
    Ok(CachedChange(insert).run(postgres(tx)?)?)
}

/// Inserts steps that start.
pub(crate) fn insert_steps(tx: &mut Tx, steps: &[&StepRow]) -> Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    let insert = diesel::sql_query(
        "INSERT INTO run_steps (run_id, position, workspace_id, id, kind, status, name, input, effect_key, started_at,
            input_tokens, output_tokens, energy)
        SELECT new.*, 0, 0, 0 FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) AS new",
    )
    .bind::<Array<Text>, _>(column(steps, |step| step.run_id.as_str()))
    .bind::<Array<BigInt>, _>(column(steps, |step| step.position))
    .bind::<Array<BigInt>, _>(column(steps, |step| step.workspace_id))
    .bind::<Array<Text>, _>(column(steps, |step| step.id.as_str()))
    .bind::<Array<Text>, _>(column(steps, |step| step.kind.as_str()))
    .bind::<Array<Text>, _>(column(steps, |step| step.status.as_str()))
    .bind::<Array<Text>, _>(column(steps, |step| step.name.as_str()))
    .bind::<Array<Nullable<Text>>, _>(column(steps, |step| step.input.as_ref().map(JsonText::as_str)))
    .bind::<Array<Nullable<Text>>, _>(column(steps, |step| step.effect_key.as_deref()))
    .bind::<Array<SqlTimestamp>, _>(column(steps, |step| step.started_at));
    Ok(CachedChange(insert).run(postgres(tx)?)?)
}

/// A run that ended as it was written.
#[derive(QueryableByName)]
struct Written {
    #[diesel(sql_type = Text)]
    id: RunId,
}

/// Writes the ends of runs, and returns the ids of those that had not ended and that no other worker has taken over.
pub(crate) fn finish_runs(tx: &mut Tx, rows: &[&RunRow]) -> Result<HashSet<RunId>> {
    if rows.is_empty() {
        return Ok(HashSet::new());
    }
    let update = diesel::sql_query(
        "UPDATE runs SET status = ended.status, output = ended.output, incomplete_reason = ended.reason, error = NULL,
            input_tokens = ended.input_tokens, cached_tokens = ended.cached_tokens, output_tokens = ended.output_tokens,
            reasoning_tokens = ended.reasoning_tokens, model_calls = ended.model_calls, tool_calls = ended.tool_calls,
            energy = ended.energy, simulated_energy = ended.simulated_energy, lease_until = NULL,
            completed_at = ended.completed_at
        FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) AS ended (workspace, id, epoch, status,
            output, reason, input_tokens, cached_tokens, output_tokens, reasoning_tokens, model_calls, tool_calls, energy,
            simulated_energy, completed_at)
        WHERE runs.workspace_id = ended.workspace AND runs.id = ended.id AND runs.epoch = ended.epoch
            AND runs.status IN ('queued', 'in_progress', 'requires_action')
        RETURNING runs.id",
    )
    .bind::<Array<BigInt>, _>(column(rows, |row| row.workspace_id))
    .bind::<Array<Text>, _>(column(rows, |row| row.id.as_str()))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.epoch))
    .bind::<Array<Text>, _>(column(rows, |row| row.status.as_str()))
    .bind::<Array<Nullable<Text>>, _>(column(rows, |row| row.output.as_deref()))
    .bind::<Array<Nullable<Text>>, _>(column(rows, |row| row.incomplete_reason.as_deref()))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.input_tokens))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.cached_tokens))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.output_tokens))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.reasoning_tokens))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.model_calls))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.tool_calls))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.energy))
    .bind::<Array<BigInt>, _>(column(rows, |row| row.simulated_energy))
    .bind::<Array<Nullable<SqlTimestamp>>, _>(column(rows, |row| row.completed_at));
    let written: Vec<Written> = Cached(update).load(postgres(tx)?)?;
    Ok(written.into_iter().map(|written| written.id).collect())
}

/// Writes the results of steps. A step without one has failed.
pub(crate) fn finish_steps(tx: &mut Tx, steps: &[&StepRow]) -> Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    let now = tx.now();
    let update = diesel::sql_query(
        "UPDATE run_steps AS s SET status = ended.status, name = ended.name, output = ended.output,
            input_tokens = ended.input_tokens, output_tokens = ended.output_tokens, energy = ended.energy, completed_at = $9
        FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS ended (run, position, status, name, output, input_tokens, output_tokens,
            energy)
        WHERE s.run_id = ended.run AND s.position = ended.position",
    )
    .bind::<Array<Text>, _>(column(steps, |step| step.run_id.as_str()))
    .bind::<Array<BigInt>, _>(column(steps, |step| step.position))
    .bind::<Array<Text>, _>(column(steps, |step| step.final_status().as_str()))
    .bind::<Array<Text>, _>(column(steps, |step| step.name.as_str()))
    .bind::<Array<Nullable<Text>>, _>(column(steps, |step| step.output.as_ref().map(JsonText::as_str)))
    .bind::<Array<BigInt>, _>(column(steps, |step| step.input_tokens))
    .bind::<Array<BigInt>, _>(column(steps, |step| step.output_tokens))
    .bind::<Array<BigInt>, _>(column(steps, |step| step.energy))
    .bind::<SqlTimestamp, _>(now);
    Ok(CachedChange(update).run(postgres(tx)?)?)
}
