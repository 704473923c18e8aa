//! Nodes that act or wait: one handler for each type.

use crate::engine::FlowEngine;
use crate::runs::row::RunRow;
use crate::runs::waits::FlowWaitType;
use flow_machine::{Outcome, Task};
use model::{Caller, ContactId, Timestamp};
use serde_json::Value;

/// A node that is executed.
#[derive(Clone)]
pub(crate) struct NodeCall {
    pub(crate) engine: FlowEngine,
    /// The run, as it was when it was claimed.
    pub(crate) run: RunRow,
    pub(crate) task: Task,
    /// The flow as the caller of what the node calls: with the scopes of the version as far as its key still has them, and one
    /// step further in the chain of causes.
    pub(crate) caller: Caller,
    /// The key under which the effect of the node happens once: the same for each attempt that nobody knows the outcome of.
    pub(crate) key: String,
    /// When the step began.
    pub(crate) began_at: Timestamp,
}

/// What a handler has done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Work {
    /// The node has ended.
    Ended(Outcome),
    /// The run waits.
    Waits(Wait),
}

/// Something to wait for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Wait {
    pub(crate) kind: FlowWaitType,
    /// The type of the event.
    pub(crate) topic: Option<String>,
    /// What it is found by, besides its kind.
    pub(crate) key: Option<String>,
    /// The contact whose reply it is.
    pub(crate) contact: Option<ContactId>,
    /// What the handler needs when it goes on.
    pub(crate) details: Value,
    /// When it ends without anything.
    pub(crate) due_at: Option<Timestamp>,
}

/// What ended a wait.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arrival {
    /// What was awaited.
    Came(Value),
    /// Its time was over.
    TimedOut,
}
