//! Changes of one kind that many requests make at once.
//!
//! On PostgreSQL those that wait while a transaction is on its way share the next one, whatever their workspaces, and make their
//! changes by statements of many rows: a statement is a round trip, and costs the server more than a row does. Side by side
//! they would also wait for each other's row locks, such as that of a workspace's account. What is out of the ordinary is
//! made alone.

use crate::Backend;
use crate::db::{Committed, Db, Inner, may_retry};
use crate::threads::{Answer, Priority};
use crate::tx::Tx;
use model::{Error, Result};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// The most changes that share a transaction: bounds how long the first of them waits.
const MOST: usize = 64;

/// How a transaction begins for which others wait. Changes that are made together may lock in another order than each alone
/// would, so it gives way where another transaction holds a row for longer than a change takes.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = '50ms'";

/// A change of a kind that many requests make at once.
pub trait Batched: Send + Sync + Sized + 'static {
    /// Who makes it.
    type Maker: Clone + Send + Sync + 'static;
    /// What it gives.
    type Output: Send + 'static;

    /// Makes this one. It may run again, and must have no effects of its own outside the transaction.
    ///
    /// # Errors
    /// What the caller gets.
    fn alone(&self, maker: &Self::Maker, tx: &mut Tx) -> Result<Self::Output>;

    /// Makes several on PostgreSQL, and gives what each gives, in their order. `None` stands for one that left no trace and
    /// is to be made alone, because it is out of the ordinary.
    ///
    /// # Errors
    /// Where one of them fails. Then nothing of any of them stays, and each is made alone.
    fn together(maker: &Self::Maker, batch: &[&Self], tx: &mut Tx) -> Result<Vec<Option<Self::Output>>>;
}

/// The changes of one kind that wait in this process, all with one maker.
pub struct Batches<C: Batched>(Mutex<Queue<C>>);

struct Queue<C: Batched> {
    waiting: VecDeque<Waiting<C>>,
    /// Whether a thread serves it, or is about to.
    is_served: bool,
}

struct Waiting<C: Batched> {
    maker: C::Maker,
    change: C,
    answer: Answer<C::Output>,
}

impl<C: Batched> Waiting<C> {
    fn alone(&self, tx: &mut Tx) -> Result<C::Output> {
        self.change.alone(&self.maker, tx)
    }
}

impl<C: Batched> Default for Batches<C> {
    fn default() -> Self {
        Self(Mutex::new(Queue { waiting: VecDeque::new(), is_served: false }))
    }
}

impl<C: Batched> Batches<C> {
    fn queue(&self) -> MutexGuard<'_, Queue<C>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a change at the end of the queue. Gives whether nobody serves it yet.
    fn join(&self, waiting: Waiting<C>) -> bool {
        let mut queue = self.queue();
        queue.waiting.push_back(waiting);
        !std::mem::replace(&mut queue.is_served, true)
    }

    /// The changes that are to be made next; none once the queue is empty, which nobody serves from then on.
    fn next(&self) -> Vec<Waiting<C>> {
        let mut queue = self.queue();
        let most = queue.waiting.len().min(MOST);
        queue.is_served = most > 0;
        queue.waiting.drain(..most).collect()
    }
}

impl Db {
    /// As [`Self::write`], for a change of a kind that many requests make at once. On PostgreSQL those that wait share a
    /// transaction.
    ///
    /// # Errors
    /// What the change fails with, or the database.
    pub async fn write_batched<C: Batched>(
        &self,
        batches: &Arc<Batches<C>>,
        maker: C::Maker,
        change: C,
    ) -> Result<C::Output> {
        if !self.takes_batches() {
            return self.write(move |tx| change.alone(&maker, tx)).await;
        }
        self.join(batches, maker, change).await
    }

    /// Background work waits for a connection's turn, and has few at a time. Changes that share a transaction would share its
    /// place in the chain of causes.
    fn takes_batches(&self) -> bool {
        matches!(self.backend(), Backend::Postgres(_))
            && self.priority != Priority::Background
            && self.chain.is_none()
    }

    async fn join<C: Batched>(
        &self,
        batches: &Arc<Batches<C>>,
        maker: C::Maker,
        change: C,
    ) -> Result<C::Output> {
        let (reply, answer) = oneshot::channel();
        let is_first = batches.join(Waiting { maker, change, answer: Answer::new(reply) });
        self.inner.metrics.writes.inc();
        if is_first {
            let (inner, batches) = (self.inner.clone(), batches.clone());
            self.inner.threads.spawn(move || serve(&inner, &batches));
        }
        let made = answer.await.map_err(|_| Error::internal("the work at the database panicked"))?;
        self.inner.room.note(&made);
        made
    }
}

/// Makes the changes that wait, and has the queue served on.
fn serve<C: Batched>(inner: &Arc<Inner>, batches: &Arc<Batches<C>>) {
    let mut waiting = batches.next();
    let _next = match waiting.len() {
        0 => return,
        _ => Next { inner, batches },
    };
    if waiting.len() > 1 {
        make_together(inner, waiting);
    } else if let Some(only) = waiting.pop() {
        make_one(inner, only);
    }
}

/// Makes a change for which those behind it wait.
fn make_one<C: Batched>(inner: &Arc<Inner>, only: Waiting<C>) {
    let since = inner.session();
    match inner.transaction_once(BEGIN, &|tx: &mut Tx| only.alone(tx)) {
        Ok(committed) => {
            let answer = only.answer;
            inner.confirm(committed, move |made| answer.send(made));
        }
        Err(error) if may_retry(&error) || is_lock_timeout(&error) => make_alone(inner, only),
        Err(error) => inner.refuse(since, error, only.answer),
    }
}

/// Makes several changes in one transaction; those that cannot be, each alone.
fn make_together<C: Batched>(inner: &Arc<Inner>, waiting: Vec<Waiting<C>>) {
    let changes: Vec<&C> = waiting.iter().map(|waiting| &waiting.change).collect();
    let made = inner.transaction_once(BEGIN, &|tx: &mut Tx| match waiting.first() {
        Some(first) => C::together(&first.maker, &changes, tx),
        None => Ok(Vec::new()),
    });
    let Ok(Committed { value: outputs, hooks, confirmation }) = made else {
        waiting.into_iter().for_each(|waiting| make_alone(inner, waiting));
        return;
    };
    let mut answers = Vec::with_capacity(waiting.len());
    for (waiting, output) in waiting.into_iter().zip(outputs) {
        match output {
            Some(output) => answers.push((waiting.answer, output)),
            None => make_alone(inner, waiting),
        }
    }
    inner.confirm(Committed { value: answers, hooks, confirmation }, |made| match made {
        Ok(answers) => answers.into_iter().for_each(|(answer, output)| answer.send(Ok(output))),
        // Their answers are dropped with the outputs, which says that the database failed.
        Err(error) => tracing::error!(%error, "a batch of changes could not be confirmed"),
    });
}

/// Makes a change on a thread of its own, so that one that waits for a lock keeps nobody behind it.
fn make_alone<C: Batched>(inner: &Arc<Inner>, waiting: Waiting<C>) {
    let own = inner.clone();
    let Waiting { maker, change, answer } = waiting;
    let make = move || own.write(&|tx: &mut Tx| change.alone(&maker, tx), answer);
    inner.threads.spawn(make);
}

/// Has a queue served on when it is dropped, whatever became of the changes before. It waits for a thread anew, so that a busy
/// queue does not keep others from theirs.
struct Next<'a, C: Batched> {
    inner: &'a Arc<Inner>,
    batches: &'a Arc<Batches<C>>,
}

impl<C: Batched> Drop for Next<'_, C> {
    fn drop(&mut self) {
        let (inner, batches) = (self.inner.clone(), self.batches.clone());
        self.inner.threads.spawn(move || serve(&inner, &batches));
    }
}

fn is_lock_timeout(error: &Error) -> bool {
    use diesel::result::Error as Diesel;
    let cause = error.cause().and_then(|cause| cause.downcast_ref::<Diesel>());
    matches!(cause, Some(Diesel::DatabaseError(_, info)) if info.message().contains("lock timeout"))
}
