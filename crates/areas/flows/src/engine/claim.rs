//! Claiming runs that have work, and loading what a drive needs.

use super::FlowEngine;
use super::content::{Content, Publisher};
use super::drive::{Drive, Driven, Left, Loaded};
use crate::draft::model::FlowRow;
use crate::draft::settings::Settings;
use crate::draft::versions::VersionRow;
use crate::runs::queries::{self, Due};
use crate::runs::row::{FlowPauseReason, FlowRunStatus, RunContent, RunError, RunRow};
use auth::keys;
use model::{
    Actor, ActorType, ApiKey, Caller, Chain, Code, Env, Error, FlowId, Principal, Result, ScopeSet,
    WorkspaceId,
};
use operation::{Resource, Version};
use std::sync::Arc;
use store::{Read, Tx};
use tokio::sync::OwnedSemaphorePermit;

/// The most runs that are claimed at a time.
const CLAIM_BATCH: usize = 64;

/// A run with its key, as far as it still stands.
struct Found {
    loaded: Loaded,
    key: keys::StoredKey,
    scopes: ScopeSet,
}

impl FlowEngine {
    /// Executes runs that have work, as many as this process takes at a time. Returns their number.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn run_due(&self) -> Result<usize> {
        let mut permits = Vec::new();
        while permits.len() < CLAIM_BATCH
            && let Some(permit) = self.reserve()
        {
            permits.push(permit);
        }
        let most = i64::try_from(permits.len()).unwrap_or_default();
        if most == 0 {
            return Ok(0);
        }
        let engine = self.clone();
        let claim = self.db().write(move |tx| queries::claim(tx, most, |tx, run| engine.limit_of(tx, run)));
        let rows = claim.await?;
        let count = rows.len();
        for (row, permit) in rows.into_iter().zip(permits) {
            self.spawn(row, permit);
        }
        Ok(count)
    }

    /// Returns how many runs of a version may be under way. A version that cannot be read does not keep its runs from being parked.
    fn limit_of(&self, tx: &mut Tx, run: &Due) -> Result<i64> {
        let Some(version) = run.version else { return Ok(i64::MAX) };
        let content = self.version(tx, run.workspace_id, run.flow_id, version);
        Ok(content.map_or(i64::MAX, |content| content.settings.concurrency.limit))
    }

    /// Executes a claimed run in a task of its own.
    pub(crate) fn spawn(&self, row: RunRow, permit: OwnedSemaphorePermit) {
        let engine = self.clone();
        self.0.runtime.spawn(async move {
            let id = row.id.clone();
            if let Err(error) = engine.drive(row).await {
                tracing::error!(run_id = %id, ?error, "a run of a flow was left to be resumed");
            }
            drop(permit);
        });
    }

    /// Executes a claimed run as far as it goes.
    async fn drive(&self, row: RunRow) -> Result<()> {
        if row.expires_at <= self.now() {
            return self.end_from_outside(row, FlowRunStatus::Expired).await;
        }
        let (engine, run) = (self.clone(), row.clone());
        let found = match self.db().read(move |read| engine.load(read, run.clone())).await {
            Ok(found) => found,
            Err(error) if is_damage(&error) => {
                tracing::error!(run_id = %row.id, ?error, "a run of a flow cannot be read");
                return self.park(row, FlowPauseReason::Damaged, error.message()).await;
            }
            // The read failed, which another one may not. The lease ends, and the run is claimed again.
            Err(error) => return Err(error),
        };
        let workspace = self.0.directory.workspace(row.workspace_id).await?;
        let Some(workspace) = workspace.filter(|_| !found.scopes.is_empty()) else {
            let message = "The key that published the flow was revoked, or the workspace is blocked.";
            return self.park(row, FlowPauseReason::KeyLost, message).await;
        };
        let standing = found.scopes;
        let scopes = found.loaded.content.scopes.iter().copied().filter(|scope| standing.contains(*scope));
        let caller = Caller {
            request: found.loaded.started_with.request_id.clone(),
            key: Arc::new(ApiKey { env: if row.livemode { Env::Live } else { Env::Test }, ..found.key.key }),
            principal: Principal::Key,
            workspace,
            idempotency_key: None,
            trace: None,
            actor: None,
            answering: None,
            chain: Chain::stored(row.chain.as_ref()).map(|chain| chain.next()),
        };
        let actor = Actor { kind: ActorType::Flow, id: row.flow_id.to_string(), run_id: None };
        let caller = caller.acting(actor, scopes.collect());
        let drive = match Drive::new(self, found.loaded, caller) {
            Ok(drive) => drive,
            Err(error) if is_damage(&error) => {
                return self.park(row, FlowPauseReason::Damaged, error.message()).await;
            }
            Err(error) => return Err(error),
        };
        if drive.go().await? == Driven::Rests {
            // Something may have arrived while the run was held.
            self.0.wake.notify_one();
        }
        Ok(())
    }

    fn load(&self, read: &mut Read, row: RunRow) -> Result<Found> {
        let started_with: RunContent = row.content.parse()?;
        let content = self.content_of(read, &row, &started_with)?;
        let around = self.surroundings(read, &row, &content, &started_with)?;
        let left = if row.state.is_some() { Left::of(read, &row)? } else { Left::default() };
        let key = keys::by_id(read, &row.key_id)?;
        let scopes = keys::standing_scopes(read, &row.lineage_id, row.workspace_id)?;
        Ok(Found { loaded: Loaded { row, content, started_with, around, left }, key, scopes })
    }

    /// Returns the content that a run executes: a version, or the draft that a test run was started with.
    fn content_of(&self, read: &mut Read, row: &RunRow, started_with: &RunContent) -> Result<Arc<Content>> {
        if let Some(version) = row.version {
            return self.version(read, row.workspace_id, row.flow_id, version);
        }
        let settings: Settings = match FlowRow::find(read, row.workspace_id, &row.flow_id) {
            Ok(flow) => flow.settings.parse()?,
            Err(error) if error.code() == Code::NotFound => Settings::default(),
            Err(error) => return Err(error),
        };
        let draft = started_with.draft.clone().unwrap_or_default();
        Ok(Arc::new(Content::new(draft, settings, None)?))
    }

    /// A published version.
    pub(crate) fn version(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        flow: FlowId,
        version: i64,
    ) -> Result<Arc<Content>> {
        self.0.contents.get_or_read(flow, version, || VersionRow::find(read, workspace, &flow, version))
    }

    /// Pauses a run that cannot be executed.
    async fn park(&self, row: RunRow, reason: FlowPauseReason, message: &str) -> Result<()> {
        let error = RunError { node_id: None, code: reason.as_str().to_owned(), message: message.to_owned() };
        tracing::warn!(run_id = %row.id, reason = reason.as_str(), message, "a run of a flow pauses");
        self.db().write(move |tx| queries::park(tx, &row, reason, &error)).await
    }

    /// Ends a run without executing it.
    async fn end_from_outside(&self, row: RunRow, status: FlowRunStatus) -> Result<()> {
        let engine = self.clone();
        self.db().write(move |tx| engine.end_now(tx, row.clone(), status).map(drop)).await
    }

    /// Renews the lease of a run. Returns whether it is still held.
    pub(crate) async fn renew(&self, row: &RunRow) -> Result<bool> {
        let row = row.clone();
        self.db().write(move |tx| queries::renew(tx, &row)).await
    }
}

/// Returns whether an error says that what is stored cannot be understood, or is gone: reading it again would fail the same way.
fn is_damage(error: &Error) -> bool {
    if error.code().status() < 500 {
        return true;
    }
    let Some(cause) = error.cause() else { return false };
    let is_unknown_value = cause.downcast_ref::<diesel::result::Error>();
    cause.is::<serde_json::Error>()
        || is_unknown_value.is_some_and(|it| matches!(it, diesel::result::Error::DeserializationError(_)))
}

/// The environment of a version's runs: those of a version that a test key published are test runs.
pub(crate) fn is_live(publisher: Option<&Publisher>, wanted: bool) -> bool {
    wanted && publisher.is_none_or(|publisher| publisher.env == Env::Live)
}
