//! What runs need to run, and who works on which in this process.

use crate::providers::Tiers;
use auth::{Directory, Seal, Spending};
use egress::Connector;
use model::{Error, JsonText, NewEvent, Result, RunId};
use operation::ports::{Charge, EnergyMeter};
use serde_json::json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::{Db, Tx};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::model::RunRow;

/// What the engine is made of.
pub struct RunEngineParts {
    /// The database.
    pub db: Db,
    /// The models.
    pub tiers: Arc<Tiers>,
    /// The keeper of Energy.
    pub meter: Arc<dyn EnergyMeter>,
    /// Outbound HTTP, for tools.
    pub connector: Arc<Connector>,
    /// Opens the tools' credentials.
    pub seal: Arc<Seal>,
    /// Keys and workspaces, for runs that are resumed.
    pub directory: Arc<Directory>,
    /// What keys have spent, to be forgotten when a run is settled.
    pub spending: Arc<Spending>,
}

/// Makes and drives runs. Cheap to clone.
#[derive(Clone)]
pub struct RunEngine(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) parts: RunEngineParts,
    /// The runs that this process works on.
    working: Mutex<HashMap<RunId, CancellationToken>>,
    /// Told whenever a run ends here, so that those who wait for their turn look.
    pub(super) ended: Notify,
}

impl RunEngine {
    /// An engine.
    pub fn new(parts: RunEngineParts) -> Self {
        Self(Arc::new(Inner { parts, working: Mutex::default(), ended: Notify::new() }))
    }

    pub(super) fn db(&self) -> &Db {
        &self.0.parts.db
    }

    pub(super) fn tiers(&self) -> &Tiers {
        &self.0.parts.tiers
    }

    /// Notes that this process works on a run; the token says when to stop.
    pub(super) fn begin_work(&self, run: &RunId) -> CancellationToken {
        let token = CancellationToken::new();
        self.0.working.lock().unwrap_or_else(PoisonError::into_inner).insert(run.clone(), token.clone());
        token
    }

    pub(super) fn end_work(&self, run: &RunId) {
        self.0.working.lock().unwrap_or_else(PoisonError::into_inner).remove(run);
        self.0.ended.notify_waiters();
    }

    /// Tells whoever works on a run in this process to stop. Another process notices at its next step.
    pub(super) fn stop_work(&self, run: &RunId) {
        if let Some(token) = self.0.working.lock().unwrap_or_else(PoisonError::into_inner).get(run) {
            token.cancel();
        }
    }

    /// How many runs this process works on.
    pub fn working(&self) -> usize {
        self.0.working.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits until this process works on no run: for shutting down.
    pub async fn idle(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.working() == 0 {
                return;
            }
            ended.await;
        }
    }
}

/// Tells of a run's end, with the change that ends it. The texts are left out: events outlive ephemeral
/// conversations.
pub(super) fn emit_end(tx: &mut Tx, row: &RunRow) -> Result<()> {
    let Some(kind) = row.status()?.event() else { return Ok(()) };
    let data = json!({
        "run_id": row.id,
        "status": row.status,
        "agent_id": row.agent_id,
        "agent_version": row.agent_version,
        "conversation_id": row.conversation_id,
        "energy": row.energy,
        "incomplete_reason": row.incomplete_reason,
        "error": row.failure(),
        "metadata": row.metadata,
    });
    tx.emit(row.workspace_id, Some(&row.request_id), &NewEvent::new(kind, row.livemode, &data))?;
    Ok(())
}

/// Records the run of a test key among the executions, at no cost. Runs of live keys are recorded by the ledger.
pub(super) fn record_test_execution(tx: &mut Tx, charge: &Charge, row: &RunRow) -> Result<()> {
    use diesel::prelude::*;
    use store::schema::executions;
    let now = tx.now();
    let id = model::ExecutionId::new(now, &*tx.random());
    diesel::insert_into(executions::table)
        .values((
            executions::workspace_id.eq(row.workspace_id),
            executions::id.eq(id),
            executions::kind.eq(charge.operation),
            executions::source_id.eq(row.id.as_str()),
            executions::status.eq(&row.status),
            executions::livemode.eq(false),
            executions::energy.eq(0),
            executions::usd_micros.eq(0),
            executions::key_id.eq(charge.caller.key.id.as_str()),
            executions::agent_id.eq(row.agent_id.0),
            executions::model.eq(&row.model),
            executions::created_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// The error of a run that another worker took over while this one was at it.
pub(super) fn superseded() -> Error {
    Error::internal("another worker took the run over")
}

/// A stored failure.
pub(super) fn failure_text(code: model::Code, message: &str) -> JsonText {
    JsonText::of(&json!({ "code": code.as_str(), "message": message }))
}
