//! The database of a running service.

use crate::connections::connection::{Manager, Role, open_postgres, open_sqlite};
use crate::metrics::{self, Metrics};
use crate::migrations::SchemaState;
use crate::postgres::flusher::{Flusher, PostgresLog, Session};
use crate::room::Room;
use crate::sqlite::writer::{self, Pending, Work};
use crate::threads::{Answer, Priority, Threads};
use crate::tx::{AfterCommit, EventObserver, Held, Listeners, Read, Tx, run_hooks};
use crate::{AnyConnection, Backend, each, migrations};
use crossbeam_channel::Sender;
use diesel::connection::{AnsiTransactionManager, TransactionManager};
use diesel::r2d2::Pool;
use model::{Chain, Clock, Error, Random, Result, Timestamp};
use prometheus::core::Collector;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot};

/// How to open a database.
#[derive(Clone)]
pub struct Options {
    /// Which, and where.
    pub backend: Backend,
    /// SQLite: readers. PostgreSQL: connections.
    pub connections: u32,
    /// Where transactions get the time from.
    pub clock: Arc<dyn Clock>,
    /// Where transactions get ids and secrets from.
    pub random: Arc<dyn Random>,
}

/// How often the database was asked since it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stats {
    /// Readers handed out.
    pub reads: u64,
    /// Transactions begun.
    pub writes: u64,
    /// Transactions that PostgreSQL ended for a deadlock or a conflict, and that ran again.
    pub retries: u64,
}

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Db {
    pub(crate) inner: Arc<Inner>,
    pub(crate) priority: Priority,
    /// The place in the chain of causes at which transactions act.
    pub(crate) chain: Option<Arc<Chain>>,
}

pub(crate) struct Inner {
    backend: Backend,
    pool: Pool<Manager>,
    pub(crate) threads: Threads,
    /// SQLite's. Its queue is as long as there are transactions that wait: one of a fixed length would hand its places to
    /// those who wait for one, and they might not be polled then.
    writer: Option<Sender<Box<dyn Work>>>,
    /// PostgreSQL's.
    pub(crate) flusher: Option<Flusher>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    listeners: Arc<Listeners>,
    pub(crate) metrics: Metrics,
    pub(crate) room: Room,
}

/// How often PostgreSQL may refuse a transaction for a deadlock or a conflict before the caller hears of it.
const TRIES: u32 = 10;

impl Db {
    /// Brings a database to the newest schema, creating a SQLite file where there is none.
    ///
    /// # Errors
    /// When the database cannot be reached, a newer program has migrated it, or a migration fails.
    pub fn migrate(backend: &Backend) -> Result<Vec<String>> {
        match backend {
            Backend::Sqlite(path) => migrations::sqlite(&mut open_sqlite(path, Role::Writer)?),
            Backend::Postgres(url) => migrations::postgres(&mut open_postgres(url)?),
        }
    }

    /// How a database's schema compares with the one that this program was built for. Changes nothing; the file of a SQLite
    /// database must exist.
    ///
    /// # Errors
    /// When the database cannot be reached.
    pub fn schema_state(backend: &Backend) -> Result<SchemaState> {
        let mut connection = match backend {
            Backend::Sqlite(path) => AnyConnection::Sqlite(open_sqlite(path, Role::Reader)?),
            Backend::Postgres(url) => AnyConnection::Postgres(open_postgres(url)?),
        };
        migrations::state(&mut connection)
    }

    /// Opens a database that has been migrated.
    ///
    /// # Errors
    /// When the database cannot be reached, or its schema is not the one this program was built for.
    pub fn open(options: Options) -> Result<Self> {
        let Options { backend, connections, clock, random } = options;
        let schema = Self::schema_state(&backend)?;
        if !schema.unknown.is_empty() {
            return Err(migrations::newer_schema());
        }
        if !schema.pending.is_empty() {
            return Err(Error::internal("the database has an older schema: run `svc migrate` first"));
        }
        let listeners = Arc::new(Listeners::default());
        let metrics = Metrics::new().map_err(Error::internal)?;
        let (writer, flusher) = match &backend {
            Backend::Sqlite(path) => {
                let groups = metrics.groups.clone();
                let writer = writer::start(path, clock.clone(), random.clone(), listeners.clone(), groups)?;
                (Some(writer), None)
            }
            Backend::Postgres(url) => {
                let url = url.clone();
                (None, Some(Flusher::start(move || PostgresLog::open(&url))?))
            }
        };
        let pool = Pool::builder()
            .max_size(connections.max(1))
            .min_idle(Some(1))
            .test_on_check_out(false)
            .connection_timeout(Duration::from_secs(10))
            .build(Manager(backend.clone()))?;
        let threads = Threads::start(connections, metrics.waits.clone())?;
        let inner = Arc::new(Inner {
            backend,
            pool,
            threads,
            writer,
            flusher,
            clock,
            random,
            listeners,
            metrics,
            room: Room::default(),
        });
        Ok(Self { inner, priority: Priority::Normal, chain: None })
    }

    /// The same database for work that no request waits for: all of it together holds at most half of the connections,
    /// at least one, so that requests always find one.
    #[must_use]
    pub fn background(&self) -> Self {
        Self { priority: Priority::Background, ..self.clone() }
    }

    /// The same database for a task that works for all requests at once, such as the sequencer: it does not wait behind
    /// requests for a connection of PostgreSQL.
    #[must_use]
    pub fn with_priority(&self) -> Self {
        Self { priority: Priority::High, ..self.clone() }
    }

    /// The same database for work at a place in a chain of causes, with which events and jobs of its transactions go on.
    #[must_use]
    pub fn caused_by(&self, chain: Option<&Chain>) -> Self {
        Self { chain: chain.cloned().map(Arc::new), ..self.clone() }
    }

    /// Which database it is.
    pub fn backend(&self) -> &Backend {
        &self.inner.backend
    }

    /// The clock that its transactions use.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.inner.clock.clone()
    }

    /// The present moment by that clock.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// The randomness that its transactions use.
    pub fn random(&self) -> Arc<dyn Random> {
        self.inner.random.clone()
    }

    /// Shows every event that is emitted from now on to `observer`, in the transaction that emits it. Gives whether it is
    /// the first observer; a second one sees nothing.
    pub fn observe_events(&self, observer: EventObserver) -> bool {
        self.inner.listeners.set_observer(observer)
    }

    /// Wakes the one who waits for it after every commit of this process that published an event.
    pub fn emitted(&self) -> Arc<Notify> {
        self.inner.listeners.emitted.clone()
    }

    /// Wakes the one who waits for it after every commit of this process that enqueued a job which is due.
    pub fn enqueued(&self) -> Arc<Notify> {
        self.inner.listeners.enqueued.clone()
    }

    /// How often the database was asked.
    pub fn stats(&self) -> Stats {
        let Metrics { reads, writes, retries, .. } = &self.inner.metrics;
        Stats { reads: reads.get(), writes: writes.get(), retries: retries.get() }
    }

    /// The metrics of this process's access to the database.
    ///
    /// # Errors
    /// Never: names and help texts are constants.
    pub fn metrics(&self) -> Result<Vec<Box<dyn Collector>>> {
        let inner = Arc::downgrade(&self.inner);
        let waiting = move || inner.upgrade().map_or(0, |inner| inner.threads.waiting());
        let mut collectors = self.inner.metrics.collectors();
        collectors.push(Box::new(metrics::queue(metrics::WAITING, waiting).map_err(Error::internal)?));
        if self.inner.writer.is_some() {
            // Weak, because the writer's thread ends with the last sender.
            let inner = Arc::downgrade(&self.inner);
            let waiting =
                move || inner.upgrade().and_then(|inner| Some(inner.writer.as_ref()?.len())).unwrap_or(0);
            let waiting = metrics::queue(metrics::WRITER_WAITING, waiting).map_err(Error::internal)?;
            collectors.push(Box::new(waiting));
            collectors.extend(self.inner.metrics.groups.collectors());
        }
        Ok(collectors)
    }

    /// Whether the database answers and has the schema that this program was built for.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn is_current(&self) -> Result<bool> {
        self.read(|read| Ok(migrations::state(read.connection())?.pending.is_empty())).await
    }

    /// Reads, on a thread where blocking is fine, and answers once nothing that this process has committed can be undone by
    /// a crash of the database any more.
    ///
    /// # Errors
    /// What `work` fails with, or the database.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Read) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.inner.metrics.reads.inc();
        let inner = self.inner.clone();
        self.inner.threads.run(self.priority, move |answer| inner.read(work, answer)).await
    }

    /// Runs a transaction and answers once it is durable. Where it fails, nothing of it stays.
    ///
    /// `work` may run again: when PostgreSQL reports a deadlock or a conflict, and on SQLite when another transaction of
    /// the group that shares its commit fails. So it must have no effects of its own outside the transaction.
    ///
    /// # Errors
    /// What `work` fails with, or the database: `storage_full` if it has no room.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let written = self.write_unnoted(work).await;
        self.inner.room.note(&written);
        written
    }

    async fn write_unnoted<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.inner.metrics.writes.inc();
        let chain = self.chain.clone();
        let work = move |tx: &mut Tx| match &chain {
            None => work(tx),
            Some(chain) => tx.at_chain(Some((**chain).clone()), &work),
        };
        if let Some(writer) = &self.inner.writer {
            let (reply, answer) = oneshot::channel();
            let pending: Box<dyn Work> = Box::new(Pending::new(move |tx: &mut Tx| work(tx), reply));
            writer.send(pending).map_err(|_| Error::internal("the writer has stopped"))?;
            return answer.await.map_err(Error::internal)?;
        }
        let inner = self.inner.clone();
        self.inner.threads.run(self.priority, move |answer| inner.write(&work, answer)).await
    }

    /// Tells SQLite to fold its log back. PostgreSQL tidies up by itself.
    ///
    /// Statistics are not gathered: taken of a young table they make SQLite scan it, and go on scanning when it has
    /// grown. Without them it goes by the indexes, which every query here has.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn tidy(&self) -> Result<()> {
        let Backend::Sqlite(path) = self.backend().clone() else { return Ok(()) };
        tokio::task::spawn_blocking(move || {
            use diesel::connection::SimpleConnection;
            let mut connection = open_sqlite(&path, Role::Writer)?;
            Ok(connection.batch_execute("PRAGMA wal_checkpoint(PASSIVE);")?)
        })
        .await
        .map_err(Error::internal)?
    }
}

impl Inner {
    fn reader(&self) -> Result<Read> {
        Ok(Read::new(Held::Pooled(self.pool.get()?), self.clock.clone()))
    }

    pub(crate) fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Read) -> Result<T>,
        answer: Answer<T>,
    ) {
        match self.look(|read| Ok(work(read))) {
            Ok(seen) => self.confirm(seen, move |seen| answer.send(seen.and_then(|result| result))),
            Err(error) => answer.send(Err(error)),
        }
    }

    /// Reads. What that gave may be answered once the commits that it saw are on disk.
    pub(crate) fn look<T>(&self, work: impl FnOnce(&mut Read) -> Result<T>) -> Result<Committed<T>> {
        let since = self.session();
        let mut read = self.reader()?;
        let value = work(&mut read)?;
        let must_wait = read.awaits_flush();
        let confirmation = since.map(|since| Confirmation::Seen { since, must_wait });
        Ok(Committed { value, hooks: Vec::new(), confirmation })
    }

    /// The flusher's connection at this moment, on PostgreSQL.
    pub(crate) fn session(&self) -> Option<Session> {
        self.flusher.as_ref().map(Flusher::session)
    }

    pub(crate) fn write<T: Send + 'static>(&self, work: &impl Fn(&mut Tx) -> Result<T>, answer: Answer<T>) {
        let since = self.session();
        match self.transaction(work) {
            Ok(committed) => self.confirm(committed, move |made| answer.send(made)),
            Err(error) => self.refuse(since, error, answer),
        }
    }

    /// Hands on what a transaction gave once that is on disk, after its hooks.
    pub(crate) fn confirm<T: Send + 'static>(
        &self,
        committed: Committed<T>,
        hand_on: impl FnOnce(Result<T>) + Send + 'static,
    ) {
        let Committed { value, hooks, confirmation } = committed;
        let finish = move |flushed: Result<()>| {
            if flushed.is_ok() {
                run_hooks(hooks);
            }
            hand_on(flushed.map(|()| value));
        };
        match self.flusher.as_ref().zip(confirmation) {
            Some((flusher, Confirmation::Commit(since))) => flusher.confirm(since, finish),
            Some((flusher, Confirmation::Seen { since, must_wait }))
                if must_wait || !flusher.is_settled() =>
            {
                flusher.after_flush(since, finish);
            }
            _ => finish(Ok(())),
        }
    }

    /// Answers what changed nothing, after a flush if a commit that it may have seen is unconfirmed.
    pub(crate) fn refuse<T: Send + 'static>(&self, since: Option<Session>, error: Error, answer: Answer<T>) {
        let confirmation = since.map(|since| Confirmation::Seen { since, must_wait: false });
        let refusal = Committed { value: error, hooks: Vec::new(), confirmation };
        self.confirm(refusal, move |refused| answer.send(refused.and_then(Err)));
    }

    fn transaction<T>(&self, work: &impl Fn(&mut Tx) -> Result<T>) -> Result<Committed<T>> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.transaction_once("BEGIN", work) {
                Err(error) if tries < TRIES && may_retry(&error) => {
                    self.metrics.retries.inc();
                    std::thread::sleep(self.pause(tries));
                }
                result => return result,
            }
        }
    }

    /// How long to wait before another try: at once, it would take its first row again before the transaction that
    /// waits for that row has woken up, and both would be where they were. 10 to 20 ms, then twice, three times that.
    fn pause(&self, tries: u32) -> Duration {
        let mut byte = [0];
        self.random.fill(&mut byte);
        let [byte] = byte;
        Duration::from_micros(10_000 + u64::from(byte) * 40) * tries
    }

    /// Does the work of a transaction that this statement begins.
    pub(crate) fn transaction_once<T>(
        &self,
        begin: &str,
        work: &impl Fn(&mut Tx) -> Result<T>,
    ) -> Result<Committed<T>> {
        let mut tx = Tx::new(self.reader()?, self.random.clone(), self.listeners.clone());
        each!(tx.connection(), |connection| AnsiTransactionManager::begin_transaction_sql(
            connection, begin
        ))?;
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| tx.run(work)))
            .unwrap_or_else(|_| Err(Error::internal("a transaction panicked")));
        match result {
            Ok(value) => {
                let confirmation = self.commit(&mut tx)?;
                Ok(Committed { value, hooks: tx.take_after_commit(), confirmation })
            }
            Err(error) => {
                // A connection that cannot roll back is broken, and the pool throws it away.
                let _ = each!(tx.connection(), |connection| AnsiTransactionManager::rollback_transaction(
                    connection
                ));
                Err(error)
            }
        }
    }

    /// Commits. Gives what the flusher is to confirm.
    fn commit(&self, tx: &mut Tx) -> Result<Option<Confirmation>> {
        let flusher = self.flusher.as_ref().filter(|_| !tx.answers_before_flush());
        let since = flusher.map(|flusher| {
            flusher.begin_commit();
            flusher.session()
        });
        let committed =
            each!(tx.connection(), |connection| AnsiTransactionManager::commit_transaction(connection));
        if let (Some((flusher, since)), Err(_)) = (flusher.zip(since), &committed) {
            // It may have been committed all the same, and others may see it.
            flusher.confirm(since, drop);
        }
        committed?;
        Ok(since.map(Confirmation::Commit))
    }
}

/// What a transaction gave that was committed, or a read. What it did or saw is perhaps not on disk yet.
pub(crate) struct Committed<T> {
    pub(crate) value: T,
    pub(crate) hooks: Vec<AfterCommit>,
    /// What the flusher is to confirm before it is answered.
    pub(crate) confirmation: Option<Confirmation>,
}

/// What is to be on disk before an answer, on PostgreSQL.
pub(crate) enum Confirmation {
    /// A commit.
    Commit(Session),
    /// What a read saw: commits of this process that are unconfirmed, and where it `must_wait` those of others too.
    Seen { since: Session, must_wait: bool },
}

/// Whether PostgreSQL refused a transaction for a deadlock or a conflict.
pub(crate) fn may_retry(error: &Error) -> bool {
    use diesel::result::{DatabaseErrorKind as Kind, Error as Diesel};
    let Some(Diesel::DatabaseError(kind, info)) =
        error.cause().and_then(|cause| cause.downcast_ref::<Diesel>())
    else {
        return false;
    };
    matches!(kind, Kind::SerializationFailure) || info.message().contains("deadlock detected")
}
