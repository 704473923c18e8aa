//! What an operation gets of the database: a reader, or a transaction.

use crate::full_text::FullText;
use crate::locks::order::{LockLevel, LockMode, LockOrder};
use crate::log_changes::Changes;
use crate::outbox::{EventRow, Origin, Outbox};
use crate::schema::jobs;
use crate::{AnyConnection, Backend, each};
use diesel::prelude::*;
use diesel::r2d2::PooledConnection;
use diesel::upsert::excluded;
use model::{Cause, Chain, Clock, Event, EventId, JsonText, Random, Result, Timestamp, WorkspaceId};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, OnceLock};
use tokio::sync::Notify;

/// A connection that is owned (SQLite's writer) or borrowed from a pool.
pub(crate) enum Held {
    Owned(Box<AnyConnection>),
    Pooled(PooledConnection<crate::connections::connection::Manager>),
}

/// A reader. Queries take `&mut Read`, and a transaction passes for one.
pub struct Read {
    held: Held,
    clock: Arc<dyn Clock>,
    awaits_flush: bool,
    full_text: FullText,
}

impl Read {
    pub(crate) fn new(held: Held, clock: Arc<dyn Clock>) -> Self {
        Self { held, clock, awaits_flush: false, full_text: FullText::default() }
    }

    /// The connection, for diesel.
    pub fn connection(&mut self) -> &mut AnyConnection {
        match &mut self.held {
            Held::Owned(connection) => connection,
            Held::Pooled(connection) => connection,
        }
    }

    /// Whether it is PostgreSQL.
    pub fn is_postgres(&mut self) -> bool {
        matches!(self.connection(), AnyConnection::Postgres(_))
    }

    /// Goes on with another connection; whatever the old one had open is rolled back.
    pub(crate) fn replace(&mut self, connection: AnyConnection) {
        self.held = Held::Owned(Box::new(connection));
    }

    /// Lets SQLite's full-text tables have what this transaction changed of them. Call it before they are searched: other
    /// than all else, their rows are written at the end.
    ///
    /// # Errors
    /// When the database fails.
    pub fn write_full_text(&mut self) -> Result<()> {
        Ok(self.full_text_to_database()?)
    }

    pub(crate) fn full_text_to_database(&mut self) -> QueryResult<()> {
        let connection = match &mut self.held {
            Held::Owned(connection) => connection,
            Held::Pooled(connection) => &mut **connection,
        };
        self.full_text.write(connection)
    }

    /// What full-text tables are still to be given.
    pub(crate) fn full_text(&mut self) -> &mut FullText {
        &mut self.full_text
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Lets [`crate::Db::read`] answer only once everything is on disk that any replica has committed. Other reads wait only
    /// for commits of this process. For what must not be taken back after a crash of PostgreSQL, such as stored responses.
    pub fn await_flush(&mut self) {
        self.awaits_flush = true;
    }

    pub(crate) fn awaits_flush(&self) -> bool {
        self.awaits_flush
    }
}

/// Something to do once the change is durable, such as waking whoever waits for it.
pub(crate) type AfterCommit = Box<dyn FnOnce() + Send>;

/// Runs hooks. The change is durable, whatever one of them does: a panic must reach neither the writer nor the caller.
pub(crate) fn run_hooks(hooks: Vec<AfterCommit>) {
    for hook in hooks {
        if catch_unwind(AssertUnwindSafe(hook)).is_err() {
            tracing::error!("a hook after a commit panicked");
        }
    }
}

/// Sees what events are emitted, by their names and data.
pub type EventObserver = Box<dyn Fn(&str, &JsonText) + Send + Sync>;

/// Who is notified of the events and jobs of transactions.
#[derive(Default)]
pub(crate) struct Listeners {
    /// Woken by events that are durable.
    pub(crate) emitted: Arc<Notify>,
    /// Woken by jobs that are durable and due.
    pub(crate) enqueued: Arc<Notify>,
    observer: OnceLock<EventObserver>,
}

impl Listeners {
    /// Whether it is the first observer.
    pub(crate) fn set_observer(&self, observer: EventObserver) -> bool {
        self.observer.set(observer).is_ok()
    }

    fn observe(&self, kind: &str, data: &JsonText) {
        if let Some(observer) = self.observer.get() {
            observer(kind, data);
        }
    }
}

/// One transaction: the change, its events and its jobs commit together or not at all.
pub struct Tx {
    read: Read,
    random: Arc<dyn Random>,
    listeners: Arc<Listeners>,
    after_commit: Vec<AfterCommit>,
    locks: LockOrder,
    log_changes: Changes,
    outbox: Outbox,
    has_due_jobs: bool,
    answers_before_flush: bool,
    chain: Option<Chain>,
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
#[diesel(table_name = jobs)]
struct JobRow<'a> {
    workspace_id: Option<WorkspaceId>,
    kind: &'a str,
    unique_key: Option<&'a str>,
    payload: JsonText,
    run_at: Timestamp,
    attempts: i64,
    epoch: i64,
    created_at: Timestamp,
    chain: Option<JsonText>,
}

impl Tx {
    pub(crate) fn new(read: Read, random: Arc<dyn Random>, listeners: Arc<Listeners>) -> Self {
        Self {
            read,
            random,
            listeners,
            after_commit: Vec::new(),
            locks: LockOrder::default(),
            log_changes: Changes::default(),
            outbox: Outbox::default(),
            has_due_jobs: false,
            answers_before_flush: false,
            chain: None,
        }
    }

    /// Ends one transaction, whose hooks these are; the next one may begin on the same connection.
    pub(crate) fn take_after_commit(&mut self) -> Vec<AfterCommit> {
        self.locks = LockOrder::default();
        self.log_changes = Changes::default();
        self.outbox = Outbox::default();
        self.has_due_jobs = false;
        self.answers_before_flush = false;
        self.chain = None;
        std::mem::take(&mut self.after_commit)
    }

    /// Does the work of a transaction, then writes its events, and at last what it changed of the sizes of logs.
    pub(crate) fn run<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let value = work(self)?;
        if std::mem::take(&mut self.outbox).write(self.connection())? {
            let listeners = self.listeners.clone();
            self.after_commit(move || listeners.emitted.notify_one());
        }
        if std::mem::take(&mut self.has_due_jobs) {
            let listeners = self.listeners.clone();
            self.after_commit(move || listeners.enqueued.notify_one());
        }
        std::mem::take(&mut self.log_changes).write(self.connection())?;
        Ok(value)
    }

    pub(crate) fn log_changes(&mut self) -> &mut Changes {
        &mut self.log_changes
    }

    /// The source of ids and secrets.
    pub fn random(&self) -> Arc<dyn Random> {
        self.random.clone()
    }

    /// The place in the chain of causes at which the transaction acts: that of the request or job that it belongs to
    /// ([`crate::Db::caused_by`]).
    pub fn chain(&self) -> Option<&Chain> {
        self.chain.as_ref()
    }

    /// Does a part of the transaction at another place in the chain of causes.
    ///
    /// # Errors
    /// What `work` fails with.
    pub fn at_chain<T>(
        &mut self,
        chain: Option<Chain>,
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = std::mem::replace(&mut self.chain, chain);
        let result = work(self);
        self.chain = before;
        result
    }

    /// Does something once the transaction is durable; nothing if it fails.
    pub fn after_commit(&mut self, action: impl FnOnce() + Send + 'static) {
        self.after_commit.push(Box::new(action));
    }

    /// Records an event with the change that caused it, and wakes whoever waits for [`crate::Db::emitted`] once it is
    /// durable. It is written at the end of the transaction, and its place in the log is given after the commit, in the
    /// order of commits. A cause without a chain goes on with that of the transaction. `livemode` says whether the effects were real: `false` for whatever a test key's run caused.
    ///
    /// # Errors
    /// When its data cannot be JSON.
    pub fn emit(
        &mut self,
        workspace: WorkspaceId,
        cause: &Cause,
        livemode: bool,
        event: &impl Event,
    ) -> Result<EventId> {
        let id = EventId::new(self.now(), &*self.random);
        self.emit_as(id.clone(), workspace, cause, livemode, event)?;
        Ok(id)
    }

    /// Records an event as [`Self::emit`] does, under an id that no other event has: that of a chain which began before its first
    /// event.
    ///
    /// # Errors
    /// When its data cannot be JSON.
    pub fn emit_as(
        &mut self,
        id: EventId,
        workspace: WorkspaceId,
        cause: &Cause,
        livemode: bool,
        event: &impl Event,
    ) -> Result<()> {
        let row = EventRow {
            id,
            workspace_id: workspace,
            kind: event.name(),
            livemode,
            data: event.data()?,
            created_at: self.now(),
            contact_id: event.contact_id(),
            origin: Origin::of(cause, self.chain.as_ref()),
        };
        self.listeners.observe(&row.kind, &row.data);
        self.outbox.push(row);
        Ok(())
    }

    /// Records an event as [`Self::emit_as`] does, unless there is one with this id. Returns whether it was recorded.
    ///
    /// # Errors
    /// When its data cannot be JSON.
    pub fn emit_once(
        &mut self,
        id: EventId,
        workspace: WorkspaceId,
        cause: &Cause,
        livemode: bool,
        event: &impl Event,
    ) -> Result<bool> {
        use crate::schema::events;
        let found = events::table.filter(events::id.eq(id.as_str())).count();
        if found.get_result::<i64>(self.connection())? > 0 {
            return Ok(false);
        }
        self.emit_as(id, workspace, cause, livemode, event)?;
        Ok(true)
    }

    /// Asks for background work at `run_at`: on behalf of a workspace, whose jobs then leave room for those of others,
    /// or of none.
    ///
    /// There is one job of a `unique_key` at most. One that waits stays as it is. One that runs may have read what
    /// this transaction changes before the change, so it runs once more when it is through, as asked for now. One
    /// that was given up is asked for anew.
    ///
    /// The job acts at the transaction's place in the chain of causes.
    ///
    /// # Errors
    /// When the database fails.
    pub fn enqueue(
        &mut self,
        workspace: impl Into<Option<WorkspaceId>>,
        kind: &str,
        unique_key: Option<&str>,
        payload: &impl serde::Serialize,
        run_at: Timestamp,
    ) -> Result<()> {
        use diesel::query_dsl::methods::FilterDsl as _;
        let row = JobRow {
            workspace_id: workspace.into(),
            kind,
            unique_key,
            payload: JsonText::of(payload),
            run_at,
            attempts: 0,
            epoch: 0,
            created_at: self.now(),
            chain: self.chain.as_ref().map(JsonText::of),
        };
        // The upsert locks the row even where it changes nothing, and must: a runner that could claim the waiting job
        // now would miss this transaction's changes. Attempts of 0 tell the runner that it was asked again.
        each!(self.connection(), |connection| diesel::insert_into(jobs::table)
            .values(&row)
            .on_conflict(jobs::unique_key)
            .do_update()
            .set((
                jobs::workspace_id.eq(excluded(jobs::workspace_id)),
                jobs::kind.eq(excluded(jobs::kind)),
                jobs::payload.eq(excluded(jobs::payload)),
                jobs::run_at.eq(excluded(jobs::run_at)),
                jobs::attempts.eq(excluded(jobs::attempts)),
                jobs::chain.eq(excluded(jobs::chain)),
                jobs::last_error.eq(None::<String>),
                jobs::failed_at.eq(None::<Timestamp>),
            ))
            .filter(jobs::lease_until.is_not_null().or(jobs::failed_at.is_not_null()))
            .execute(connection))?;
        self.has_due_jobs |= run_at <= self.now();
        Ok(())
    }

    /// Runs `work` in a savepoint: when it fails, what it wrote is undone and the transaction goes on.
    ///
    /// # Errors
    /// What `work` fails with, or the database.
    pub fn savepoint<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        use diesel::connection::{AnsiTransactionManager as Manager, TransactionManager};
        let (hooks, locks, events) = (self.after_commit.len(), self.locks.len(), self.outbox.len());
        let (log_changes, full_text) = (self.log_changes.clone(), self.full_text.mark());
        each!(self.connection(), |connection| Manager::begin_transaction(connection))?;
        // A panic passes through, but not past an open savepoint: the end of the transaction would end only that.
        let result = catch_unwind(AssertUnwindSafe(|| work(self)));
        if matches!(result, Ok(Ok(_))) {
            each!(self.connection(), |connection| Manager::commit_transaction(connection))?;
        } else {
            self.after_commit.truncate(hooks);
            self.outbox.truncate(events);
            self.locks.release_to(locks);
            self.log_changes = log_changes;
            self.full_text().go_back(full_text);
            each!(self.connection(), |connection| Manager::rollback_transaction(connection))?;
        }
        result.unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// Sets the terms of a row of a contentless FTS5 table, whose columns are `rowid` and `terms`; without terms the row is
    /// deleted. `is_new`: the table has no such row. For SQLite only. It is written before the commit.
    pub fn set_full_text(&mut self, table: &'static str, id: i64, terms: Option<String>, is_new: bool) {
        debug_assert!(!self.is_postgres(), "PostgreSQL has no such tables");
        self.full_text().set(table, id, terms, is_new);
    }

    /// Lets no other transaction lock this name until this one ends: for things that are no row, such as the names of
    /// a workspace's collections. The one writer of SQLite does so by itself.
    ///
    /// # Errors
    /// When the database fails.
    pub fn lock(&mut self, name: &str) -> Result<()> {
        self.advisory_lock("pg_advisory_xact_lock", name)
    }

    /// The same, shared: any number of transactions hold it at once, and none that calls [`Self::lock`]. Who waits is
    /// served in turn, so neither kind is kept waiting by a stream of the other.
    ///
    /// # Errors
    /// When the database fails.
    pub fn lock_shared(&mut self, name: &str) -> Result<()> {
        self.advisory_lock("pg_advisory_xact_lock_shared", name)
    }

    fn advisory_lock(&mut self, function: &str, name: &str) -> Result<()> {
        #[derive(QueryableByName)]
        struct Locked {
            #[diesel(sql_type = diesel::sql_types::Text, column_name = "locked")]
            _nothing: String,
        }
        if let AnyConnection::Postgres(connection) = self.connection() {
            let lock =
                diesel::sql_query(format!("SELECT {function}(hashtextextended($1, 0))::text AS locked"))
                    .bind::<diesel::sql_types::Text, _>(name);
            crate::Cached(lock).get_result::<Locked>(connection)?;
        }
        Ok(())
    }

    /// Says that a lock of this level is about to be taken. Call it wherever a transaction locks something that has a
    /// level, on both databases; items count on PostgreSQL only, because where there is one writer nobody prepares for
    /// locking them.
    ///
    /// # Errors
    /// In a debug build, where that is out of order: an internal error, which fails the test that comes by.
    pub fn expect_lock_order(&mut self, level: LockLevel, id: i64, mode: LockMode) -> Result<()> {
        if level == LockLevel::Item && !self.is_postgres() {
            return Ok(());
        }
        self.locks.take(level, id, mode)
    }

    /// Says that this transaction has created something that has a level. It may be locked at any time.
    pub fn note_created(&mut self, level: LockLevel, id: i64) {
        self.locks.created(level, id);
    }

    /// Lets PostgreSQL answer before the commit is on disk. A crash of the database may undo the transaction, with what was
    /// committed after it and not waited for: for notes of what is then done once more, or that may be missing. Nothing that
    /// was read may be acted on, because it need not be on disk either. SQLite's writer syncs once for a group of
    /// transactions.
    pub fn answer_before_flush(&mut self) {
        self.answers_before_flush = true;
    }

    pub(crate) fn answers_before_flush(&self) -> bool {
        self.answers_before_flush
    }
}

impl Backend {
    /// Whether it is PostgreSQL.
    pub fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}
