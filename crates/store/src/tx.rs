//! What an operation gets of the database: a reader, or a transaction.

use crate::schema::{events, jobs};
use crate::{AnyConnection, Backend, each};
use diesel::prelude::*;
use diesel::r2d2::PooledConnection;
use model::{Clock, EventId, JsonText, NewEvent, Random, RequestId, Result, Timestamp, WorkspaceId};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A connection that is owned (SQLite's writer) or borrowed from a pool.
pub(crate) enum Held {
    Owned(Box<AnyConnection>),
    Pooled(PooledConnection<crate::connection::Manager>),
}

/// A reader. Queries take `&mut Read`, and a transaction passes for one.
pub struct Read {
    held: Held,
    clock: Arc<dyn Clock>,
}

impl Read {
    pub(crate) fn new(held: Held, clock: Arc<dyn Clock>) -> Self {
        Self { held, clock }
    }

    /// The connection, for diesel.
    pub fn connection(&mut self) -> &mut AnyConnection {
        match &mut self.held {
            Held::Owned(connection) => connection,
            Held::Pooled(connection) => connection,
        }
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// Something to do once the change is durable, such as waking whoever waits for it.
pub(crate) type AfterCommit = Box<dyn FnOnce() + Send>;

/// One transaction: the change, its events and its jobs commit together or not at all.
pub struct Tx {
    read: Read,
    random: Arc<dyn Random>,
    after_commit: Vec<AfterCommit>,
}

impl Deref for Tx {
    type Target = Read;
    fn deref(&self) -> &Read {
        &self.read
    }
}

impl DerefMut for Tx {
    fn deref_mut(&mut self) -> &mut Read {
        &mut self.read
    }
}

#[derive(Insertable)]
#[diesel(table_name = events)]
struct EventRow<'a> {
    id: EventId,
    workspace_id: WorkspaceId,
    kind: &'a str,
    livemode: bool,
    data: JsonText,
    request_id: Option<&'a str>,
    created_at: Timestamp,
}

#[derive(Insertable)]
#[diesel(table_name = jobs)]
struct JobRow<'a> {
    kind: &'a str,
    unique_key: Option<&'a str>,
    payload: JsonText,
    run_at: Timestamp,
    attempts: i64,
    epoch: i64,
    created_at: Timestamp,
}

impl Tx {
    pub(crate) fn new(read: Read, random: Arc<dyn Random>) -> Self {
        Self { read, random, after_commit: Vec::new() }
    }

    pub(crate) fn take_after_commit(&mut self) -> Vec<AfterCommit> {
        std::mem::take(&mut self.after_commit)
    }

    /// The source of ids and secrets.
    pub fn random(&self) -> Arc<dyn Random> {
        self.random.clone()
    }

    /// Does something once the transaction is durable; nothing if it fails.
    pub fn after_commit(&mut self, action: impl FnOnce() + Send + 'static) {
        self.after_commit.push(Box::new(action));
    }

    /// Records an event with the change that caused it.
    ///
    /// # Errors
    /// When the database fails.
    pub fn emit(
        &mut self,
        workspace: WorkspaceId,
        request: Option<&RequestId>,
        event: &NewEvent,
    ) -> Result<EventId> {
        let now = self.now();
        let id = EventId::new(now, &*self.random);
        let row = EventRow {
            id: id.clone(),
            workspace_id: workspace,
            kind: event.kind,
            livemode: event.livemode,
            data: JsonText::of(&event.data),
            request_id: request.map(RequestId::as_str),
            created_at: now,
        };
        diesel::insert_into(events::table).values(row).execute(self.connection())?;
        Ok(id)
    }

    /// Asks for background work at `run_at`. With a `unique_key` that is already waiting, the waiting job stays.
    ///
    /// # Errors
    /// When the database fails.
    pub fn enqueue(
        &mut self,
        kind: &str,
        unique_key: Option<&str>,
        payload: &impl serde::Serialize,
        run_at: Timestamp,
    ) -> Result<()> {
        let row = JobRow {
            kind,
            unique_key,
            payload: JsonText::of(payload),
            run_at,
            attempts: 0,
            epoch: 0,
            created_at: self.now(),
        };
        each!(self.connection(), |connection| diesel::insert_into(jobs::table)
            .values(&row)
            .on_conflict_do_nothing()
            .execute(connection))?;
        Ok(())
    }

    /// Runs `work` in a savepoint: when it fails, what it wrote is undone and the transaction goes on.
    ///
    /// # Errors
    /// What `work` fails with, or the database.
    pub fn savepoint<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        use diesel::connection::{AnsiTransactionManager as Manager, TransactionManager};
        let hooks = self.after_commit.len();
        each!(self.connection(), |connection| Manager::begin_transaction(connection))?;
        match work(self) {
            Ok(value) => {
                each!(self.connection(), |connection| Manager::commit_transaction(connection))?;
                Ok(value)
            }
            Err(error) => {
                self.after_commit.truncate(hooks);
                each!(self.connection(), |connection| Manager::rollback_transaction(connection))?;
                Err(error)
            }
        }
    }

    /// Which database it is.
    pub fn is_postgres(&mut self) -> bool {
        matches!(self.connection(), AnyConnection::Postgres(_))
    }
}

impl Backend {
    /// Whether it is PostgreSQL.
    pub fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}
