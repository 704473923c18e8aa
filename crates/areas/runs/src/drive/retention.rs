//! Retention: the texts of ephemeral conversations are deleted some time after their last run.

use crate::engine::RunEngine;
use crate::schema::{conversation_memories, run_steps, runs};
use diesel::prelude::*;
use model::{JsonText, Result, RunId, Timestamp, WorkspaceId};
use store::Tx;

/// The retention of an ephemeral conversation after its last run.
const EPHEMERAL_SECONDS: i64 = 72 * 3600;
/// Conversations whose texts are deleted at a time.
const BATCH: i64 = 200;

/// Deletes the texts of ephemeral conversations whose last run ended before `cutoff`. Returns the number of runs.
fn purge(tx: &mut Tx, cutoff: Timestamp, most: i64) -> Result<usize> {
    let now = tx.now();
    let later = diesel::alias!(runs as later);
    let due: Vec<(WorkspaceId, RunId, String)> = runs::table
        .filter(runs::ephemeral.eq(true))
        .filter(runs::purged_at.is_null())
        .filter(runs::completed_at.lt(cutoff))
        .filter(diesel::dsl::not(diesel::dsl::exists(
            later
                .filter(later.field(runs::workspace_id).eq(runs::workspace_id))
                .filter(later.field(runs::conversation_id).eq(runs::conversation_id))
                .filter(
                    later.field(runs::completed_at).is_null().or(later.field(runs::completed_at).ge(cutoff)),
                )
                .select(later.field(runs::id)),
        )))
        .order(runs::completed_at.asc())
        .limit(most)
        .select((runs::workspace_id, runs::id, runs::conversation_id))
        .load(tx.connection())?;
    for (workspace, id, conversation) in &due {
        diesel::delete(
            conversation_memories::table
                .filter(conversation_memories::workspace_id.eq(workspace))
                .filter(conversation_memories::conversation_id.eq(conversation)),
        )
        .execute(tx.connection())?;
        diesel::update(runs::table.find((workspace, id)))
            .set((runs::input.eq(None::<String>), runs::output.eq(None::<String>), runs::purged_at.eq(now)))
            .execute(tx.connection())?;
        diesel::update(run_steps::table.filter(run_steps::run_id.eq(id)))
            .set((run_steps::input.eq(None::<JsonText>), run_steps::output.eq(None::<JsonText>)))
            .execute(tx.connection())?;
    }
    Ok(due.len())
}

impl RunEngine {
    /// Deletes the texts of ephemeral conversations 72 hours after their last run. Returns the number of runs.
    ///
    /// # Errors
    /// `internal_error`.
    pub async fn purge_ephemeral(&self) -> Result<usize> {
        let mut purged = 0;
        loop {
            let batch = self.db().write(|tx| {
                let cutoff = tx.now().plus_seconds(-EPHEMERAL_SECONDS);
                purge(tx, cutoff, BATCH)
            });
            let batch = batch.await?;
            purged += batch;
            if i64::try_from(batch).unwrap_or(0) < BATCH {
                return Ok(purged);
            }
        }
    }
}
