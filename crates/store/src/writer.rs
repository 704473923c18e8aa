//! SQLite's one writer: it takes the waiting transactions together.
//!
//! Each gets a savepoint of its own; all share one commit and are answered after it. So every answer is durable,
//! and the price of a sync to disk is shared by all who wait for it.

use crate::AnyConnection;
use crate::connection::{Role, open_sqlite};
use crate::tx::{AfterCommit, Held, Read, Tx, run_hooks};
use diesel::connection::{AnsiTransactionManager as Manager, TransactionManager};
use model::{Clock, Error, Random, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use tokio::sync::{Notify, mpsc, oneshot};

/// The most transactions that share a commit: bounds how long the first of them waits.
const BATCH: usize = 128;

/// A transaction that waits for the writer.
pub(crate) trait Work: Send {
    /// Does the work; `false` asks for a rollback of this work alone.
    fn run(&mut self, tx: &mut Tx) -> bool;
    /// Answers, once the commit is through or has failed.
    fn answer(self: Box<Self>, committed: std::result::Result<(), String>);
}

pub(crate) struct Pending<T, F> {
    work: Option<F>,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Pending<T, F> {
    pub(crate) fn new(work: F, reply: oneshot::Sender<Result<T>>) -> Self {
        Self { work: Some(work), result: None, reply }
    }
}

impl<T: Send, F: FnOnce(&mut Tx) -> Result<T> + Send> Work for Pending<T, F> {
    fn run(&mut self, tx: &mut Tx) -> bool {
        let Some(work) = self.work.take() else { return false };
        let result = catch_unwind(AssertUnwindSafe(|| work(tx)))
            .unwrap_or_else(|_| Err(Error::internal("a transaction panicked")));
        let keep = result.is_ok();
        self.result = Some(result);
        keep
    }

    fn answer(self: Box<Self>, committed: std::result::Result<(), String>) {
        let result = match (self.result, committed) {
            (Some(Ok(_)) | None, Err(cause)) => Err(Error::internal(cause)),
            (Some(result), _) => result,
            (None, Ok(())) => Err(Error::internal("the writer skipped a transaction")),
        };
        // Nobody waits any more where the request was cancelled; the work is committed all the same.
        let _ = self.reply.send(result);
    }
}

/// Starts the writer's thread. It ends when the last sender is dropped.
pub(crate) fn start(
    path: &str,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    emitted: Arc<Notify>,
) -> Result<mpsc::Sender<Box<dyn Work>>> {
    let path = path.to_owned();
    let connection = AnyConnection::Sqlite(open_sqlite(&path, Role::Writer)?);
    let (sender, receiver) = mpsc::channel(1024);
    let mut tx = Tx::new(Read::new(Held::Owned(Box::new(connection)), clock), random, emitted);
    std::thread::Builder::new()
        .name("sqlite-writer".to_owned())
        .spawn(move || serve(&path, &mut tx, receiver))?;
    Ok(sender)
}

fn serve(path: &str, tx: &mut Tx, mut receiver: mpsc::Receiver<Box<dyn Work>>) {
    while let Some(first) = receiver.blocking_recv() {
        let mut batch = Vec::with_capacity(16);
        let mut hooks = Vec::new();
        let outcome = run_batch(tx, first, &mut receiver, &mut batch, &mut hooks);
        let outcome = outcome.map_err(|error| {
            tracing::error!(%error, "a group of transactions could not be committed");
            // Whatever state the connection is in, every later batch would fail with it: a full disk, for one, ends
            // the transaction behind diesel's back. Until there is a new one, each batch fails and comes here again.
            match open_sqlite(path, Role::Writer) {
                Ok(connection) => tx.replace(AnyConnection::Sqlite(connection)),
                Err(error) => tracing::error!(%error, "the writer could not open the database anew"),
            }
            error.to_string()
        });
        if outcome.is_ok() {
            run_hooks(hooks);
        }
        for work in batch {
            work.answer(outcome.clone());
        }
    }
}

fn run_batch(
    tx: &mut Tx,
    first: Box<dyn Work>,
    receiver: &mut mpsc::Receiver<Box<dyn Work>>,
    batch: &mut Vec<Box<dyn Work>>,
    hooks: &mut Vec<AfterCommit>,
) -> diesel::QueryResult<()> {
    let mut next = Some(first);
    // A reader that turns writer fails at once under contention, whatever the time-out says: so BEGIN IMMEDIATE.
    if let Err(error) = begun(tx, |connection| Manager::begin_transaction_sql(connection, "BEGIN IMMEDIATE"))
    {
        batch.extend(next);
        return Err(error);
    }
    while let Some(mut work) = next {
        begun(tx, Manager::begin_transaction)?;
        let keep = work.run(tx);
        batch.push(work);
        let actions = tx.take_after_commit();
        if keep {
            begun(tx, Manager::commit_transaction)?;
            hooks.extend(actions);
        } else {
            begun(tx, Manager::rollback_transaction)?;
        }
        next = if batch.len() < BATCH { receiver.try_recv().ok() } else { None };
    }
    begun(tx, Manager::commit_transaction)
}

fn begun(
    tx: &mut Tx,
    step: impl FnOnce(&mut diesel::SqliteConnection) -> diesel::QueryResult<()>,
) -> diesel::QueryResult<()> {
    match tx.connection() {
        AnyConnection::Sqlite(connection) => step(connection),
        AnyConnection::Postgres(_) => Ok(()),
    }
}
