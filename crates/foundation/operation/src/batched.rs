//! Operations that many requests call at once: on PostgreSQL their calls share statements.

use crate::Reply;
use model::{Caller, Result};
use std::any::Any;
use std::sync::Arc;
use store::{Access, Batched, Batches, Db, Read, Tx};

/// The calls of one operation that wait for the database in this process. `A` is what it needs of that.
pub struct WaitingCalls<A: Access>(Arc<Batches<Part<A>>>);

impl<A: Access> Clone for WaitingCalls<A> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<A: Access> Default for WaitingCalls<A> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// An operation with its input, which may share a transaction, or what it reads by, with other calls of the operation.
pub struct BatchedCall<A: Access> {
    waiting: WaitingCalls<A>,
    work: Arc<dyn Work<A>>,
}

/// What `#[operation(…, together = …)]` makes of an operation that is called alone.
pub type Alone<A, I> = fn(&mut A, &Caller, &I) -> Result<Reply>;
/// What it makes of the function that serves several calls. `None` stands for a call that left no trace and is to be served
/// alone.
pub type Together<A, I> = fn(&mut A, &[(&Caller, &I)]) -> Result<Vec<Option<Reply>>>;

impl<A: Access> BatchedCall<A> {
    /// The call of an operation with `inputs`.
    pub fn new<I: Send + Sync + 'static>(
        waiting: WaitingCalls<A>,
        inputs: I,
        alone: Alone<A, I>,
        together: Together<A, I>,
    ) -> Self {
        Self { waiting, work: Arc::new(Served { inputs, alone, together }) }
    }
}

impl BatchedCall<Read> {
    /// Makes the call, alone or with those that wait.
    pub(crate) async fn read(self, db: &Db, caller: Caller) -> Result<Reply> {
        db.read_batched(&self.waiting.0, (), Part { caller, work: self.work }).await
    }
}

impl BatchedCall<Tx> {
    /// Makes the call, alone or with those that wait.
    pub(crate) async fn write(self, db: &Db, caller: Caller) -> Result<Reply> {
        db.write_batched(&self.waiting.0, (), Part { caller, work: self.work }).await
    }

    /// Makes the call in a transaction of its own.
    pub(crate) fn run_in(&self, tx: &mut Tx, caller: &Caller) -> Result<Reply> {
        self.work.alone(tx, caller)
    }
}

/// A caller's part in a batch.
struct Part<A: Access> {
    caller: Caller,
    work: Arc<dyn Work<A>>,
}

impl<A: Access> Batched for Part<A> {
    type Access = A;
    type Maker = ();
    type Output = Reply;

    fn alone(&self, (): &(), access: &mut A) -> Result<Reply> {
        self.work.alone(access, &self.caller)
    }

    fn together((): &(), parts: &[&Self], access: &mut A) -> Result<Vec<Option<Reply>>> {
        match parts.first() {
            Some(first) => first.work.together(access, parts),
            None => Ok(Vec::new()),
        }
    }
}

/// The inputs of an operation and what serves them, whatever their type.
trait Work<A: Access>: Any + Send + Sync {
    fn alone(&self, access: &mut A, caller: &Caller) -> Result<Reply>;
    /// Serves the calls of one operation, of which this is one.
    fn together(&self, access: &mut A, parts: &[&Part<A>]) -> Result<Vec<Option<Reply>>>;
}

struct Served<A, I> {
    inputs: I,
    alone: Alone<A, I>,
    together: Together<A, I>,
}

impl<A: Access, I: Send + Sync + 'static> Work<A> for Served<A, I> {
    fn alone(&self, access: &mut A, caller: &Caller) -> Result<Reply> {
        (self.alone)(access, caller, &self.inputs)
    }

    fn together(&self, access: &mut A, parts: &[&Part<A>]) -> Result<Vec<Option<Reply>>> {
        let calls = parts.iter().map(|part| {
            let served = (&*part.work as &dyn Any).downcast_ref::<Self>()?;
            Some((&part.caller, &served.inputs))
        });
        let calls: Option<Vec<_>> = calls.collect();
        // One queue holds the calls of one operation, so all have inputs of one type.
        let calls =
            calls.ok_or_else(|| model::Error::internal("calls of two operations are in one queue"))?;
        (self.together)(access, &calls)
    }
}
