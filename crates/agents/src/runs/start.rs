//! Runs that start without a request: each once, however often that is tried.

use super::engine::RunEngine;
use super::model::{NewRun, OnBusy, RunTrigger, RunTriggerKind};
use super::submit::expect_active;
use auth::idempotency::{self, Ask, Known};
use auth::keys;
use model::{AgentId, Caller, Code, Error, RequestId, Result, Scope, WorkspaceId};
use operation::BoxFuture;
use operation::ports::{AgentRuns, StartRun};
use std::sync::Arc;
use store::Read;

impl AgentRuns for RunEngine {
    fn expect_active(&self, read: &mut Read, workspace: WorkspaceId, agent: Option<AgentId>) -> Result<()> {
        expect_active(read, workspace, agent).map(drop)
    }

    fn start(&self, run: StartRun) -> BoxFuture<Result<()>> {
        let engine = self.clone();
        Box::pin(async move { engine.start_once(run).await })
    }
}

impl RunEngine {
    async fn start_once(&self, run: StartRun) -> Result<()> {
        let caller = self.standing_caller(&run).await?;
        let ask = Ask {
            lineage: caller.key.lineage.clone(),
            // No header can have this value: it is not ASCII.
            key: format!("·{}", run.once),
            fingerprint: [0; 32],
            request: caller.request.clone(),
            seal: self.0.parts.seal.clone(),
        };
        let claim = match self.db().write(move |tx| idempotency::claim(tx, &ask)).await? {
            Known::Claimed(claim) => claim,
            Known::Done(_) => return Ok(()),
            Known::InProgress => {
                return Err(Error::new(Code::IdempotencyInProgress, "The run is being started."));
            }
        };
        let new = NewRun {
            input: run.input,
            conversation_id: None,
            agent_id: run.agent,
            agent_version: None,
            background: true,
            stream: false,
            response_format: None,
            max_steps: None,
            timeout_seconds: None,
            metadata: None,
            on_busy: OnBusy::default(),
            trigger: RunTrigger { kind: RunTriggerKind::Reminder, id: Some(run.reminder.to_string()) },
        };
        self.submit(&caller, new, Some(claim)).await.map(drop)
    }

    /// The key of a run that is to start, as the caller that a request with it would have.
    async fn standing_caller(&self, run: &StartRun) -> Result<Caller> {
        let (id, workspace) = (run.key.clone(), run.workspace);
        let look = self.db().read(move |read| {
            let stored = keys::by_id(read, &id)?;
            let scopes = keys::standing_scopes(read, &stored.key.lineage, workspace)?;
            Ok((stored.key, scopes))
        });
        let (key, scopes) = look.await?;
        let found = self.0.parts.directory.workspace(workspace).await?;
        let found = found.ok_or_else(|| Error::internal("a reminder's workspace is gone"))?;
        if let Some(reason) = &found.blocked_reason {
            return Err(Error::new(Code::WorkspaceBlocked, reason.clone()));
        }
        if !scopes.contains(Scope::RunsExecute) {
            let message = "The key that set the action was revoked or lacks the scope `runs:execute`.";
            return Err(Error::new(Code::MissingScope, message).param(Scope::RunsExecute.as_str()));
        }
        let request = RequestId::new(self.db().now(), &*self.db().random());
        Ok(Caller {
            request,
            key: Arc::new(key),
            workspace: found,
            idempotency_key: None,
            trace: None,
            actor: None,
        })
    }
}
