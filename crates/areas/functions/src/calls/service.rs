//! The service that makes calls.

use super::content::{Contents, Prepared};
use super::outcome::{Ending, ending};
use crate::draft::compile::refused;
use crate::history::rows::{InvocationRow, NewInvocation};
use crate::host::HostServices;
use model::{Error, InvocationId, Result, WorkspaceId};
use ports::WorkspaceVariables;
use sandbox::Sandbox;
use std::sync::Arc;
use store::{Batches, Db};

/// Makes calls of functions, and writes them down. Cheap to clone.
#[derive(Clone)]
pub struct FunctionCalls(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) db: Db,
    pub(super) sandbox: Sandbox,
    pub(super) host: HostServices,
    pub(super) variables: WorkspaceVariables,
    pub(super) contents: Contents,
    writes: Arc<Batches<NewInvocation>>,
}

impl FunctionCalls {
    /// Calls in this sandbox.
    pub(crate) fn new(sandbox: Sandbox, host: HostServices, variables: WorkspaceVariables) -> Self {
        let (contents, writes) = (Contents::default(), Arc::default());
        Self(Arc::new(Inner { db: host.db.clone(), sandbox, host, variables, contents, writes }))
    }

    /// Writes the row of a call. `false` if another call has its key.
    pub(super) async fn insert(&self, row: InvocationRow) -> Result<bool> {
        self.0.db.write_batched(&self.0.writes, (), NewInvocation(row)).await
    }

    /// Makes a call, and writes down how it ended. A call that may write has begun already.
    ///
    /// # Errors
    /// `validation_error` for the input, `service_unavailable`: then the call was not made and is not in the history.
    pub(super) async fn make(&self, prepared: Prepared) -> Result<InvocationRow> {
        let Prepared { row: begun, content, key, call, host } = prepared;
        let is_begun = begun.lease_until.is_some();
        let end = match self.0.sandbox.call(&key, &content.program, &call, &host).await {
            Ok(outcome) => Ending::of(outcome),
            Err(sandbox::Error::Interrupted) => Ending::interrupted(),
            Err(error) => {
                if is_begun {
                    self.0.db.write(move |tx| begun.withdraw(tx)).await?;
                }
                return Err(refused(&error));
            }
        };
        let row = ending(&begun, end, &content, &host, self.0.db.now());
        if !is_begun {
            return self.write_once(row).await;
        }
        let ended = row.clone();
        let is_ours = self.0.db.write(move |tx| ended.end(&begun, tx)).await?;
        if is_ours {
            return Ok(row);
        }
        // The job took the process for dead. What it told others stands.
        self.find(row.workspace_id, row.id).await
    }

    /// Writes the row of a call that only read. If another call with its key ended first, that one counts.
    async fn write_once(&self, row: InvocationRow) -> Result<InvocationRow> {
        if self.insert(row.clone()).await? {
            return Ok(row);
        }
        let (function, key) = (row.function_id, row.once_key.clone().unwrap_or_default());
        let first = self.0.db.read(move |read| InvocationRow::made_once(read, function, &key)).await?;
        Ok(first.unwrap_or(row))
    }

    /// Finds a call by its id.
    pub(super) async fn find(&self, workspace: WorkspaceId, id: InvocationId) -> Result<InvocationRow> {
        let found = self.0.db.read(move |read| InvocationRow::by_id(read, workspace, &id)).await?;
        found.ok_or_else(|| Error::not_found("invocation"))
    }

    /// Ends a call whose process is known to be gone, and returns what it ended with.
    pub(super) async fn interrupt(&self, workspace: WorkspaceId, id: InvocationId) -> Result<InvocationRow> {
        let row = self.find(workspace, id).await?;
        if row.is_ended() {
            return Ok(row);
        }
        let (id, ended) = (row.id.clone(), row.interrupted(self.0.db.now()));
        self.0.db.write(move |tx| ended.end(&row, tx)).await?;
        self.find(workspace, id).await
    }
}
