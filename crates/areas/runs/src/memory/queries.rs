//! Queries of turns and summaries.

use crate::run::{RunRow, RunStatus};
use crate::schema::{conversation_memories, runs};
use diesel::prelude::*;
use model::Result;
use store::{Read, Tx, each};

/// Summary of the turns up to one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) text: String,
    /// The [place](Exchange::place) of the last turn in it.
    pub(crate) through: String,
}

/// A turn of a conversation: an input and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Queryable)]
pub(crate) struct Exchange {
    /// Orders the turns of a conversation: the id of the run, or [`of_message`](super::channel::of_message).
    pub(crate) place: String,
    pub(crate) input: Option<String>,
    pub(crate) output: Option<String>,
}

/// Returns the last turns of a run's conversation before it and after `after`, oldest first.
pub(crate) fn turns(read: &mut Read, row: &RunRow, after: Option<&str>, most: i64) -> Result<Vec<Exchange>> {
    let mut query = runs::table
        .filter(runs::workspace_id.eq(row.workspace_id))
        .filter(runs::conversation_id.eq(&row.conversation_id))
        .filter(runs::livemode.eq(row.livemode))
        .filter(runs::agent_id.eq(row.agent_id))
        .filter(runs::id.lt(&row.id))
        .filter(
            runs::status
                .eq_any([RunStatus::Completed, RunStatus::Incomplete])
                .or(runs::status.eq(RunStatus::Cancelled).and(runs::incomplete_reason.eq("interrupted"))),
        )
        // What guardrails kept from the model stays kept from it.
        .filter(runs::incomplete_reason.is_null().or(runs::incomplete_reason.ne_all([
            "guardrail",
            "guardrail_unavailable",
            "handoff",
        ])))
        .order(runs::id.desc())
        .limit(most)
        .select((runs::id, runs::input, runs::output))
        .into_boxed();
    if let Some(after) = after {
        query = query.filter(runs::id.gt(after));
    }
    let mut turns: Vec<Exchange> = query.load(read.connection())?;
    turns.reverse();
    Ok(turns)
}

/// Returns the stored summary of a run's conversation.
pub(crate) fn summary(read: &mut Read, row: &RunRow) -> Result<Option<Summary>> {
    use conversation_memories as m;
    let found: Option<(String, String)> = m::table
        .find((row.workspace_id, &row.conversation_id, row.agent_id, row.livemode))
        .select((m::summary, m::through_run))
        .get_result(read.connection())
        .optional()?;
    Ok(found.map(|(text, through)| Summary { text, through }))
}

/// Stores the summary of a run's conversation.
pub(crate) fn keep_summary(tx: &mut Tx, row: &RunRow, summary: &Summary) -> Result<()> {
    use conversation_memories as m;
    let now = tx.now();
    let text = (m::summary.eq(&summary.text), m::through_run.eq(&summary.through), m::updated_at.eq(now));
    let place = (
        m::workspace_id.eq(row.workspace_id),
        m::conversation_id.eq(&row.conversation_id),
        m::agent_id.eq(row.agent_id),
        m::livemode.eq(row.livemode),
    );
    each!(tx.connection(), |connection| diesel::insert_into(m::table)
        .values((place, text))
        .on_conflict((m::workspace_id, m::conversation_id, m::agent_id, m::livemode))
        .do_update()
        .set(text)
        .execute(connection))?;
    Ok(())
}
