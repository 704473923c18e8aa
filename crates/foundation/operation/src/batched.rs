//! Operations that many requests call at the same time. On PostgreSQL, these calls share statements.

use crate::Reply;
use model::{Caller, Result};
use std::any::Any;
use std::sync::Arc;
use store::{Batched, Batches, Db, Tx};

/// The calls of one operation in this process that wait for the database.
#[derive(Clone, Default)]
pub struct WaitingCalls(Arc<Batches<Part>>);

/// A call of an operation that may share a transaction with other calls of the operation.
pub struct BatchedCall {
    waiting: WaitingCalls,
    work: Arc<dyn Work>,
}

/// The function that `#[operation(…, together = …)]` generates for a single call.
pub type Alone<I> = fn(&mut Tx, &Caller, &I) -> Result<Reply>;
/// The function that it generates for several calls. It returns `None` for a call that changed nothing and must be
/// executed alone.
pub type Together<I> = fn(&mut Tx, &[(&Caller, &I)]) -> Result<Vec<Option<Reply>>>;

impl BatchedCall {
    /// Creates a call of an operation with its inputs.
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
    /// Executes the call, alone or together with waiting calls.
    pub(crate) async fn write(self, db: &Db, caller: Caller) -> Result<Reply> {
        db.write_batched(&self.waiting.0, (), Part { caller, work: self.work }).await
    }

    /// Executes the call alone in a transaction.
    pub(crate) fn run_in(&self, tx: &mut Tx, caller: &Caller) -> Result<Reply> {
        self.work.alone(tx, caller)
    }
}

/// A call in a batch.
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

/// The inputs of an operation with the functions that take them. The trait hides the type of the inputs.
trait Work: Any + Send + Sync {
    fn alone(&self, tx: &mut Tx, caller: &Caller) -> Result<Reply>;
    /// Executes several calls of one operation. This call is one of them.
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
        // One queue holds the calls of one operation, so all inputs have the same type.
        let calls =
            calls.ok_or_else(|| model::Error::internal("calls of two operations are in one queue"))?;
        (self.together)(tx, &calls)
    }
}
