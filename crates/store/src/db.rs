//! The database of a running service.

use crate::connection::{Manager, Role, open_postgres, open_sqlite};
use crate::threads::Threads;
use crate::tx::{Held, Read, Tx, run_hooks};
use crate::writer::{self, Pending, Work};
use crate::{Backend, each, migrations};
use diesel::connection::{AnsiTransactionManager, TransactionManager};
use diesel::r2d2::Pool;
use model::{Clock, Error, Random, Result, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot};

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
}

/// The database. Cheap to clone.
#[derive(Clone)]
pub struct Db(Arc<Inner>);

struct Inner {
    backend: Backend,
    pool: Pool<Manager>,
    threads: Threads,
    writer: Option<mpsc::Sender<Box<dyn Work>>>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    emitted: Arc<Notify>,
    reads: AtomicU64,
    writes: AtomicU64,
}

/// How often PostgreSQL may refuse a transaction for a deadlock or a conflict before the caller hears of it.
const TRIES: u32 = 10;

impl Db {
    /// Brings a database to the newest schema, creating a SQLite file where there is none.
    ///
    /// # Errors
    /// When the database cannot be reached or a migration fails.
    pub fn migrate(backend: &Backend) -> Result<Vec<String>> {
        match backend {
            Backend::Sqlite(path) => migrations::sqlite(&mut open_sqlite(path, Role::Writer)?),
            Backend::Postgres(url) => migrations::postgres(&mut open_postgres(url)?),
        }
    }

    /// Opens a database that has been migrated.
    ///
    /// # Errors
    /// When the database cannot be reached, or its schema is not the one this program was built for.
    pub fn open(options: Options) -> Result<Self> {
        let Options { backend, connections, clock, random } = options;
        match &backend {
            Backend::Sqlite(path) => migrations::check_sqlite(&mut open_sqlite(path, Role::Writer)?)?,
            Backend::Postgres(url) => migrations::check_postgres(&mut open_postgres(url)?)?,
        }
        let emitted = Arc::new(Notify::new());
        let writer = match &backend {
            Backend::Sqlite(path) => {
                Some(writer::start(path, clock.clone(), random.clone(), emitted.clone())?)
            }
            Backend::Postgres(_) => None,
        };
        let pool = Pool::builder()
            .max_size(connections.max(1))
            .min_idle(Some(1))
            .test_on_check_out(false)
            .connection_timeout(Duration::from_secs(10))
            .build(Manager(backend.clone()))?;
        let threads = Threads::start(connections)?;
        Ok(Self(Arc::new(Inner {
            backend,
            pool,
            threads,
            writer,
            clock,
            random,
            emitted,
            reads: AtomicU64::new(0),
            writes: AtomicU64::new(0),
        })))
    }

    /// Which database it is.
    pub fn backend(&self) -> &Backend {
        &self.0.backend
    }

    /// The clock that its transactions use.
    pub fn clock(&self) -> Arc<dyn Clock> {
        self.0.clock.clone()
    }

    /// The present moment by that clock.
    pub fn now(&self) -> Timestamp {
        self.0.clock.now()
    }

    /// The randomness that its transactions use.
    pub fn random(&self) -> Arc<dyn Random> {
        self.0.random.clone()
    }

    /// Wakes the one who waits for it after every commit of this process that told an event.
    pub fn emitted(&self) -> Arc<Notify> {
        self.0.emitted.clone()
    }

    /// How often the database was asked.
    pub fn stats(&self) -> Stats {
        Stats { reads: self.0.reads.load(Ordering::Relaxed), writes: self.0.writes.load(Ordering::Relaxed) }
    }

    /// Reads, on a thread where blocking is fine.
    ///
    /// # Errors
    /// What `work` fails with, or the database.
    pub async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Read) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.0.reads.fetch_add(1, Ordering::Relaxed);
        let inner = self.0.clone();
        self.0.threads.run(true, move || work(&mut inner.reader()?)).await
    }

    /// Runs a transaction and answers once it is durable. Where it fails, nothing of it stays.
    ///
    /// `work` may run again: when PostgreSQL reports a deadlock or a conflict, and on SQLite when another transaction of
    /// the group that shares its commit fails. So it must have no effects of its own outside the transaction.
    ///
    /// # Errors
    /// What `work` fails with, or the database.
    pub async fn write<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Tx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.0.writes.fetch_add(1, Ordering::Relaxed);
        if let Some(writer) = &self.0.writer {
            let (reply, answer) = oneshot::channel();
            let pending: Box<dyn Work> = Box::new(Pending::new(move |tx: &mut Tx| work(tx), reply));
            writer.send(pending).await.map_err(|_| Error::internal("the writer has stopped"))?;
            return answer.await?;
        }
        let inner = self.0.clone();
        self.0.threads.run(false, move || inner.transaction(&work)).await
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
        .await?
    }
}

impl Inner {
    fn reader(&self) -> Result<Read> {
        Ok(Read::new(Held::Pooled(self.pool.get()?), self.clock.clone()))
    }

    fn transaction<T>(&self, work: &impl Fn(&mut Tx) -> Result<T>) -> Result<T> {
        let mut tries = 0;
        loop {
            tries += 1;
            match self.transaction_once(work) {
                Err(error) if tries < TRIES && may_retry(&error) => std::thread::sleep(self.pause(tries)),
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

    fn transaction_once<T>(&self, work: &impl Fn(&mut Tx) -> Result<T>) -> Result<T> {
        let mut tx = Tx::new(self.reader()?, self.random.clone(), self.emitted.clone());
        each!(tx.connection(), |connection| AnsiTransactionManager::begin_transaction(connection))?;
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&mut tx)))
            .unwrap_or_else(|_| Err(Error::internal("a transaction panicked")));
        match result {
            Ok(value) => {
                each!(tx.connection(), |connection| AnsiTransactionManager::commit_transaction(connection))?;
                run_hooks(tx.take_after_commit());
                Ok(value)
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
}

fn may_retry(error: &Error) -> bool {
    use diesel::result::{DatabaseErrorKind as Kind, Error as Diesel};
    let Some(Diesel::DatabaseError(kind, info)) =
        error.cause().and_then(|cause| cause.downcast_ref::<Diesel>())
    else {
        return false;
    };
    matches!(kind, Kind::SerializationFailure) || info.message().contains("deadlock detected")
}
