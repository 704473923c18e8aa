//! Operations that many requests call at once: on PostgreSQL their calls share statements.

use crate::Reply;
use model::{Caller, Result};
use std::any::Any;
use std::sync::Arc;
use store::{Batched, Batches, Db, Tx};

/// The calls of one operation that wait for the database in this process.
#[derive(Clone, Default)]
pub struct WaitingCalls(Arc<Batches<Part>>);

/// An operation with its input, which may share a transaction with other calls of the operation.
pub struct BatchedCall {
    waiting: WaitingCalls,
    work: Arc<dyn Work>,
}

/// What `#[operation(…, together = …)]` makes of an operation that is called alone.
pub type Alone<I> = fn(&mut Tx, &Caller, &I) -> Result<Reply>;
/// What it makes of the function that serves several calls. `None` stands for a call that left no trace and is to be served
/// alone.
pub type Together<I> = fn(&mut Tx, &[(&Caller, &I)]) -> Result<Vec<Option<Reply>>>;

impl BatchedCall {
    /// The call of an operation with `inputs`.
    pub fn new<I: Send + Sync + 'static>(
        waiting: WaitingCalls,
        inputs: I,
        alone: Alone<I>,
        together: Together<I>,
    ) -> Self {
        Self { waiting, work: Arc::new(Served { inputs, alone, together }) }
    }
}

impl BatchedCall {
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
struct Part {
    caller: Caller,
    work: Arc<dyn Work>,
}

impl Batched for Part {
    type Maker = ();
    type Output = Reply;

    fn alone(&self, (): &(), tx: &mut Tx) -> Result<Reply> {
        self.work.alone(tx, &self.caller)
    }

    fn together((): &(), parts: &[&Self], tx: &mut Tx) -> Result<Vec<Option<Reply>>> {
        match parts.first() {
            Some(first) => first.work.together(tx, parts),
            None => Ok(Vec::new()),
        }
    }
}

/// The inputs of an operation and what serves them, whatever their type.
trait Work: Any + Send + Sync {
    fn alone(&self, tx: &mut Tx, caller: &Caller) -> Result<Reply>;
    /// Serves the calls of one operation, of which this is one.
    fn together(&self, tx: &mut Tx, parts: &[&Part]) -> Result<Vec<Option<Reply>>>;
}

struct Served<I> {
    inputs: I,
    alone: Alone<I>,
    together: Together<I>,
}

impl<I: Send + Sync + 'static> Work for Served<I> {
    fn alone(&self, tx: &mut Tx, caller: &Caller) -> Result<Reply> {
        (self.alone)(tx, caller, &self.inputs)
    }

    fn together(&self, tx: &mut Tx, parts: &[&Part]) -> Result<Vec<Option<Reply>>> {
        let calls = parts.iter().map(|part| {
            let served = (&*part.work as &dyn Any).downcast_ref::<Self>()?;
            Some((&part.caller, &served.inputs))
        });
        let calls: Option<Vec<_>> = calls.collect();
        // One queue holds the calls of one operation, so all have inputs of one type.
        let calls =
            calls.ok_or_else(|| model::Error::internal("calls of two operations are in one queue"))?;
        (self.together)(tx, &calls)
    }
}
