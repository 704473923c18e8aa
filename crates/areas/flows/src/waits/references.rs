//! Runs and waits as references to contacts: they follow a contact that is merged, and end with one that is deleted.

use super::events::renamed;
use crate::engine::FlowEngine;
use crate::runs::row::{FlowRunStatus, RunContent, RunRow};
use crate::runs::waits::{FlowWaitType, WaitRow};
use crate::schema::{flow_runs, flow_steps, flow_waits};
use diesel::prelude::*;
use model::{ContactId, FlowRunId, JsonText, Result, WorkspaceId};
use ports::{ContactReferences, Left};
use serde_json::Value;
use store::Tx;

/// The most runs that are forgotten in a transaction.
const BATCH: i64 = 100;

/// Runs of flows as references to contacts.
pub(crate) struct FlowReferences(pub(crate) FlowEngine);

impl ContactReferences for FlowReferences {
    fn tables(&self) -> &'static [&'static str] {
        &["flow_runs", "flow_waits"]
    }

    fn replace(&self, tx: &mut Tx, workspace: WorkspaceId, from: ContactId, to: ContactId) -> Result<()> {
        let of_contact = flow_runs::table
            .filter(flow_runs::workspace_id.eq(workspace))
            .filter(flow_runs::contact_id.eq(from))
            .filter(flow_runs::ended_at.is_null())
            .select(flow_runs::id);
        let awaited: Vec<WaitRow> = flow_waits::table
            .filter(flow_waits::run_id.eq_any(of_contact))
            .filter(flow_waits::kind.eq(FlowWaitType::Event))
            .select(WaitRow::as_select())
            .load(tx.connection())?;
        for wait in awaited {
            let Some((key, details)) = renamed(&wait, from, to) else { continue };
            diesel::update(flow_waits::table.find((&wait.run_id, wait.token)))
                .set((flow_waits::key.eq(key), flow_waits::details.eq(JsonText::of(&details))))
                .execute(tx.connection())?;
        }
        let runs = flow_runs::table
            .filter(flow_runs::workspace_id.eq(workspace))
            .filter(flow_runs::contact_id.eq(from));
        diesel::update(runs).set(flow_runs::contact_id.eq(to)).execute(tx.connection())?;
        let waits = flow_waits::table
            .filter(flow_waits::workspace_id.eq(workspace))
            .filter(flow_waits::contact_id.eq(from));
        diesel::update(waits).set(flow_waits::contact_id.eq(to)).execute(tx.connection())?;
        Ok(())
    }

    /// Nothing that is under way for the contact goes on.
    fn delete(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<()> {
        let open: Vec<RunRow> = flow_runs::table
            .filter(flow_runs::workspace_id.eq(workspace))
            .filter(flow_runs::contact_id.eq(contact))
            .filter(flow_runs::ended_at.is_null())
            .select(RunRow::as_select())
            .load(tx.connection())?;
        for row in open {
            self.0.end_now(tx, row, FlowRunStatus::Cancelled)?;
        }
        Ok(())
    }

    fn forget(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<Left> {
        let runs: Vec<(FlowRunId, JsonText)> = flow_runs::table
            .filter(flow_runs::workspace_id.eq(workspace))
            .filter(flow_runs::contact_id.eq(contact))
            .limit(BATCH)
            .select((flow_runs::id, flow_runs::content))
            .load(tx.connection())?;
        for (id, content) in &runs {
            forget_run(tx, id, content)?;
        }
        let is_all = i64::try_from(runs.len()).is_ok_and(|forgotten| forgotten < BATCH);
        Ok(if is_all { Left::Nothing } else { Left::More })
    }
}

/// Removes what a run and its steps were given and gave. That they were executed stays known.
fn forget_run(tx: &mut Tx, id: &FlowRunId, content: &JsonText) -> Result<()> {
    let none = None::<JsonText>;
    let content = match content.parse::<RunContent>() {
        Ok(content) => JsonText::of(&RunContent {
            input: Value::Null,
            payload: Value::Null,
            replies: Vec::new(),
            ..content
        }),
        Err(_) => content.clone(),
    };
    diesel::update(flow_runs::table.find(id))
        .set((
            flow_runs::contact_id.eq(None::<ContactId>),
            flow_runs::content.eq(content),
            flow_runs::state.eq(&none),
            flow_runs::output.eq(&none),
            flow_runs::error.eq(&none),
            flow_runs::response.eq(&none),
        ))
        .execute(tx.connection())?;
    diesel::update(flow_steps::table.filter(flow_steps::run_id.eq(id)))
        .set((flow_steps::input.eq(&none), flow_steps::output.eq(&none), flow_steps::error.eq(&none)))
        .execute(tx.connection())?;
    Ok(())
}
