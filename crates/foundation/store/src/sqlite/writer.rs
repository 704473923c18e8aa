//! SQLite's one writer: it takes the waiting transactions together.
//!
//! They share one commit and are answered after it. So every answer is durable, and the price of a sync to disk is
//! shared by all who wait for it. One that fails after it changed something takes the group with it, which is then done
//! again with a savepoint for each: savepoints for all would cost more than the works themselves.

use crate::connections::connection::{Role, open_sqlite};
use crate::full_text::FullText;
use crate::metrics::GroupMetrics;
use crate::sqlite::checkpoints::Checkpoints;
use crate::tx::{AfterCommit, Held, Listeners, Read, Tx, run_hooks};
use crate::{AnyConnection, SqliteConnection};
use crossbeam_channel::{Receiver, Sender, unbounded};
use diesel::connection::{AnsiTransactionManager as Manager, TransactionManager};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{Clock, Code, Error, Random, Result};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

/// The most transactions that share a commit: bounds how long the first of them waits.
const MOST: usize = 128;

/// After a group had to be done again, this many keep their transactions apart from the start: where one failed
/// half-way, more of its kind are likely to follow.
const CAREFUL: u32 = 64;

/// A transaction that waits for the writer.
pub(crate) trait Work: Send {
    /// Does the work, perhaps not for the first time; `false` asks for a rollback of this work alone.
    fn run(&mut self, tx: &mut Tx) -> bool;
    /// Whether the work found no room to write.
    fn found_no_room(&self) -> bool;
    /// Answers, once the commit is through or has failed.
    fn answer(self: Box<Self>, committed: std::result::Result<(), Failure>);
}

/// Why a group could not be committed.
#[derive(Clone)]
pub(crate) struct Failure {
    cause: String,
    /// SQLite has ended the transaction of the whole group because the disk is full.
    is_storage_full: bool,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        if failure.is_storage_full {
            Self::storage_full(failure.cause)
        } else {
            Self::internal(failure.cause)
        }
    }
}

pub(crate) struct Pending<T, F> {
    work: F,
    result: Option<Result<T>>,
    reply: oneshot::Sender<Result<T>>,
}

impl<T, F> Pending<T, F> {
    pub(crate) fn new(work: F, reply: oneshot::Sender<Result<T>>) -> Self {
        Self { work, result: None, reply }
    }
}

impl<T: Send, F: Fn(&mut Tx) -> Result<T> + Send> Work for Pending<T, F> {
    fn run(&mut self, tx: &mut Tx) -> bool {
        let result = catch_unwind(AssertUnwindSafe(|| tx.run(|tx| (self.work)(tx))))
            .unwrap_or_else(|_| Err(Error::internal("a transaction panicked")));
        let keep = result.is_ok();
        self.result = Some(result);
        keep
    }

    fn found_no_room(&self) -> bool {
        matches!(&self.result, Some(Err(error)) if error.code() == Code::StorageFull)
    }

    fn answer(self: Box<Self>, committed: std::result::Result<(), Failure>) {
        let result = match (self.result, committed) {
            (Some(Ok(_)) | None, Err(failure)) => Err(failure.into()),
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
    listeners: Arc<Listeners>,
    metrics: GroupMetrics,
) -> Result<Sender<Box<dyn Work>>> {
    let path = path.to_owned();
    let connection = AnyConnection::Sqlite(open_sqlite(&path, Role::Writer)?);
    let (sender, receiver) = unbounded();
    let tx = Tx::new(Read::new(Held::Owned(Box::new(connection)), clock), random, listeners);
    let checkpoints = Checkpoints::start(&path)?;
    let writer = Writer { path, tx, receiver, careful: 0, checkpoints, metrics };
    std::thread::Builder::new().name("sqlite-writer".to_owned()).spawn(move || writer.serve())?;
    Ok(sender)
}

struct Writer {
    path: String,
    tx: Tx,
    receiver: Receiver<Box<dyn Work>>,
    /// How many groups to come give each transaction a savepoint.
    careful: u32,
    checkpoints: Checkpoints,
    metrics: GroupMetrics,
}

/// Transactions that share a commit.
struct Group {
    works: Vec<Box<dyn Work>>,
    hooks: Vec<AfterCommit>,
}

impl Writer {
    fn serve(mut self) {
        while let Ok(first) = self.receiver.recv() {
            let began = Instant::now();
            let mut group = Group { works: vec![first], hooks: Vec::new() };
            let outcome = self.run(&mut group);
            *self.tx.full_text() = FullText::default();
            let outcome = outcome.map_err(|error| {
                tracing::error!(%error, "a group of transactions could not be committed");
                // Whatever state the connection is in, every later group would fail with it: a full disk, for one, ends
                // the transaction behind diesel's back. Until there is a new one, each group fails and comes here again.
                match open_sqlite(&self.path, Role::Writer) {
                    Ok(connection) => self.tx.replace(AnyConnection::Sqlite(connection)),
                    Err(error) => tracing::error!(%error, "the writer could not open the database anew"),
                }
                let cause = error.to_string();
                let is_storage_full = Error::from(error).code() == Code::StorageFull
                    || group.works.iter().any(|work| work.found_no_room());
                Failure { cause, is_storage_full }
            });
            self.metrics.durations.observe(began.elapsed().as_secs_f64());
            self.metrics.sizes.observe(u32::try_from(group.works.len()).unwrap_or(u32::MAX).into());
            if outcome.is_ok() {
                run_hooks(group.hooks);
            }
            self.checkpoints.note(group.works.len());
            for work in group.works {
                work.answer(outcome.clone());
            }
        }
    }

    /// Does the group's work and that of whoever comes meanwhile, and commits it all.
    fn run(&mut self, group: &mut Group) -> QueryResult<()> {
        self.begin()?;
        let mut done = 0;
        loop {
            while let Some(work) = group.works.get_mut(done) {
                if self.careful > 0 {
                    self.apart(&mut **work, &mut group.hooks)?;
                } else if !self.together(&mut **work, &mut group.hooks)? {
                    self.step(Manager::rollback_transaction)?;
                    self.begin()?;
                    *self.tx.full_text() = FullText::default();
                    group.hooks.clear();
                    self.careful = CAREFUL;
                    done = 0;
                    continue;
                }
                done += 1;
            }
            if group.works.len() == MOST {
                break;
            }
            let Ok(next) = self.receiver.try_recv() else { break };
            group.works.push(next);
        }
        self.careful = self.careful.saturating_sub(1);
        self.tx.full_text_to_database()?;
        self.step(Manager::commit_transaction)
    }

    /// Does a work in the group's own transaction. `false` where it failed and left changes behind.
    fn together(&mut self, work: &mut dyn Work, hooks: &mut Vec<AfterCommit>) -> QueryResult<bool> {
        let (before, full_text) = (self.changes()?, self.tx.full_text().mark());
        let keep = work.run(&mut self.tx);
        let actions = self.tx.take_after_commit();
        if keep {
            hooks.extend(actions);
            return Ok(true);
        }
        self.tx.full_text().go_back(full_text);
        Ok(self.changes()? == before)
    }

    /// Does a work in a savepoint.
    fn apart(&mut self, work: &mut dyn Work, hooks: &mut Vec<AfterCommit>) -> QueryResult<()> {
        self.step(Manager::begin_transaction)?;
        let full_text = self.tx.full_text().mark();
        let keep = work.run(&mut self.tx);
        let actions = self.tx.take_after_commit();
        if keep {
            hooks.extend(actions);
            self.step(Manager::commit_transaction)
        } else {
            self.tx.full_text().go_back(full_text);
            self.step(Manager::rollback_transaction)
        }
    }

    /// A reader that turns writer fails at once under contention, whatever the time-out says: so `BEGIN IMMEDIATE`.
    fn begin(&mut self) -> QueryResult<()> {
        self.step(|connection| Manager::begin_transaction_sql(connection, "BEGIN IMMEDIATE"))
    }

    /// How many rows the connection has changed since it was opened.
    fn changes(&mut self) -> QueryResult<i64> {
        self.step(|connection| diesel::select(sql::<BigInt>("total_changes()")).get_result(connection))
    }

    fn step<T>(&mut self, step: impl FnOnce(&mut SqliteConnection) -> QueryResult<T>) -> QueryResult<T> {
        match self.tx.connection() {
            AnyConnection::Sqlite(connection) => step(connection),
            AnyConnection::Postgres(_) => Err(diesel::result::Error::NotInTransaction),
        }
    }
}
