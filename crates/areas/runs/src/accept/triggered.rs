//! Runs that start without a request: each once, however often that is tried.

use super::agent::expect_active;
use super::submit::Submitted;
use crate::engine::{RunEngine, chain_of};
use crate::memory::without_marks;
use crate::queries::runs;
use crate::run::{
    NewRun, OnBusy, RunRow, RunStatus, RunTrigger, RunTriggerKind, VersionNumber, WantedVersion,
};
use agents::{ResponseFormat, ResponseKind};
use auth::idempotency::{Ask, Known, Outcome};
use auth::keys;
use fields::json_schema::Schema;
use model::{
    AgentId, Caller, Chain, Code, Error, KeyId, Principal, RequestId, Result, RunId, Scope, WorkspaceId,
};
use operation::BoxFuture;
use ports::{AgentRuns, RunEnd, RunResult, StartRun, StartedBy};
use providers::{Tier, json};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use store::{Read, Tx};

impl AgentRuns for RunEngine {
    fn expect_active(&self, read: &mut Read, workspace: WorkspaceId, agent: Option<AgentId>) -> Result<()> {
        expect_active(read, workspace, agent).map(drop)
    }

    fn start(&self, run: StartRun) -> BoxFuture<Result<RunId>> {
        let engine = self.clone();
        Box::pin(async move { engine.start_once(run).await })
    }

    fn ended(&self, workspace: WorkspaceId, run: RunId) -> BoxFuture<Result<RunEnd>> {
        let engine = self.clone();
        Box::pin(async move { engine.end_of(workspace, run).await })
    }

    fn result(&self, read: &mut Read, workspace: WorkspaceId, run: &RunId) -> Result<Option<RunResult>> {
        let row = runs::by_id(read, workspace, run)?;
        if !row.status.is_final() {
            return Ok(None);
        }
        let options = row.options()?;
        let is_json = options.json && row.status == RunStatus::Completed;
        let data = row.output.as_deref().filter(|_| is_json).and_then(json::text_of);
        let data = data.map(|text| json::parsed(&text));
        let fits = |data: &Value| {
            let schema = options.response_format.as_ref().and_then(ResponseFormat::schema);
            schema.is_none_or(|schema| Schema::new(schema.clone()).mismatch(data).is_none())
        };
        Ok(Some(RunResult {
            status: row.status.as_str(),
            agent: row.agent_id,
            data: data.filter(fits),
            reason: row.incomplete_reason.clone(),
            failure: row.failure().map(|failure| (failure.code.as_str().to_owned(), failure.message)),
            energy: row.energy,
            output: row.output,
        }))
    }

    fn cancel(&self, tx: &mut Tx, workspace: WorkspaceId, run: &RunId) -> Result<()> {
        let row = runs::locked(tx, workspace, run)?;
        if !row.status.is_final() {
            RunEngine::cancel(self, tx, &row, "cancelled")?;
        }
        Ok(())
    }
}

/// Poll interval for the end of a run that another process executes.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

fn trigger_of(by: StartedBy) -> RunTrigger {
    let (kind, id) = match by {
        StartedBy::Reminder(id) => (RunTriggerKind::Reminder, id.to_string()),
        StartedBy::Channel(id) => (RunTriggerKind::Channel, id.to_string()),
        StartedBy::Flow(id) => (RunTriggerKind::Flow, id.to_string()),
        StartedBy::Automation(id) => (RunTriggerKind::Automation, id.to_string()),
    };
    RunTrigger { kind, id: Some(id) }
}

/// The run that a start made before.
fn run_of(outcome: &Outcome) -> Result<RunId> {
    let answer: Value = serde_json::from_str(&outcome.body).map_err(Error::internal)?;
    let id = answer.pointer("/data/id").and_then(Value::as_str).and_then(RunId::parse);
    id.ok_or_else(|| Error::internal("a start that was made names no run"))
}

impl RunEngine {
    async fn start_once(&self, run: StartRun) -> Result<RunId> {
        let caller = self.standing_caller(run.workspace, &run.key, run.chain).await?;
        let new = NewRun {
            input: if run.question.is_some() { without_marks(&run.input) } else { run.input },
            conversation_id: run.conversation,
            agent_id: run.agent,
            agent_version: run.options.version.map(|version| WantedVersion::Number(VersionNumber(version))),
            background: true,
            stream: false,
            response_format: run
                .options
                .schema
                .map(|schema| ResponseFormat { kind: ResponseKind::JsonSchema, schema: Some(schema) }),
            max_steps: None,
            timeout_seconds: None,
            metadata: None,
            on_busy: if run.supersedes { OnBusy::Rollback } else { OnBusy::Enqueue },
            trigger: trigger_of(run.trigger),
            answering: run.answering,
            question: run.question,
            inner: None,
            energy_limit: run.options.energy_limit,
            reading_tier: run.options.reading_tier.as_deref().and_then(Tier::parse),
        };
        self.start_named(&caller, &run.once, new).await
    }

    /// Starts a run in the background, of several attempts with one name only one.
    ///
    /// # Errors
    /// As those of `POST /runs`; `idempotency_in_progress` while another attempt starts it.
    pub(crate) async fn start_named(&self, caller: &Caller, once: &str, new: NewRun) -> Result<RunId> {
        let ask = Ask {
            lineage: caller.key.lineage.clone(),
            // No header can have this value: it is not ASCII.
            key: format!("·{once}"),
            fingerprint: [0; 32],
            request: caller.request.clone(),
            seal: self.0.parts.seal.clone(),
        };
        let claim = match self.0.claims.claim(self.db(), ask).await? {
            Known::Claimed(claim) => claim,
            Known::Done(outcome) => return run_of(&outcome),
            Known::InProgress => {
                return Err(Error::new(Code::IdempotencyInProgress, "The run is being started."));
            }
        };
        match self.submit(caller, new, Some(claim)).await? {
            Submitted::Run(run) => Ok(run.row.id),
            Submitted::Events(_) => Err(Error::internal("a run that is not streamed was")),
        }
    }

    async fn end_of(&self, workspace: WorkspaceId, run: RunId) -> Result<RunEnd> {
        let row = self.ended_row_of(workspace, run).await?;
        let leads_to = chain_of(&row)?.map(|chain| chain.next());
        let output = row.output.filter(|_| row.status == RunStatus::Completed);
        Ok(RunEnd { status: row.status.as_str(), agent: row.agent_id, output, leads_to })
    }

    /// Waits for the end of a run: a run of this process sends a notification, others are polled.
    pub(crate) async fn ended_row_of(&self, workspace: WorkspaceId, run: RunId) -> Result<RunRow> {
        loop {
            // Whether it ended is looked up either way: it may wait for an approval.
            if let Some(ended) = self.active().end_of(&run) {
                ended.cancelled().await;
            }
            let id = run.clone();
            let row = self.db().read(move |read| runs::by_id(read, workspace, &id)).await?;
            if row.status.is_final() {
                return Ok(row);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// The key of a run that is to start, as the caller that a request with it would have.
    pub(crate) async fn standing_caller(
        &self,
        workspace: WorkspaceId,
        key: &KeyId,
        chain: Option<Chain>,
    ) -> Result<Caller> {
        let id = key.clone();
        let look = self.db().read(move |read| {
            let stored = keys::by_id(read, &id)?;
            let scopes = keys::standing_scopes(read, &stored.key.lineage, workspace)?;
            Ok((stored.key, scopes))
        });
        let (key, scopes) = look.await?;
        let found = self.0.parts.directory.workspace(workspace).await?;
        let found =
            found.ok_or_else(|| Error::internal("the workspace of a run that is to start is gone"))?;
        if let Some(reason) = &found.blocked_reason {
            return Err(Error::new(Code::WorkspaceBlocked, reason.clone()));
        }
        if !scopes.contains(Scope::RunsExecute) {
            let message =
                "The key on whose behalf the agent runs was revoked or lacks the scope `runs:execute`.";
            return Err(Error::new(Code::MissingScope, message).param(Scope::RunsExecute.as_str()));
        }
        let request = RequestId::new(self.db().now(), &*self.db().random());
        Ok(Caller {
            request,
            key: Arc::new(key),
            principal: Principal::Key,
            workspace: found,
            idempotency_key: None,
            trace: None,
            actor: None,
            answering: None,
            chain,
        })
    }
}
