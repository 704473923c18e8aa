//! Nodes that act or wait: one handler for each type.

mod agents;
mod approvals;
mod basic;
mod calls;
mod code;
mod contacts;
pub(crate) mod custom_events;
mod event_waits;
mod http;
mod human;
mod messages;
mod questions;
mod records;
mod tasks;
mod times;

use crate::engine::FlowEngine;
use crate::engine::content::Content;
use crate::engine::secrets::Secrets;
use crate::runs::row::RunRow;
use crate::runs::waits::{FlowWaitType, WaitRow};
use chrono_tz::Tz;
use flow_graphs::NodeType;
use flow_machine::{Outcome, Task};
use model::{Caller, ContactId, Error, StepId, Timestamp};
use ports::FlowResponse;
use serde_json::Value;
use std::sync::Arc;

/// A node that is executed.
#[derive(Clone)]
pub(crate) struct NodeCall {
    pub(crate) engine: FlowEngine,
    pub(crate) run: RunRow,
    /// What the run executes.
    pub(crate) content: Arc<Content>,
    pub(crate) task: Task,
    /// The flow as the caller of what the node calls: with the scopes of the version as far as its key still has them, and one
    /// step further in the chain of causes.
    pub(crate) caller: Caller,
    /// The secrets that the settings may mention.
    pub(crate) secrets: Arc<Secrets>,
    /// The time zone of the business.
    pub(crate) zone: Tz,
    /// The id and the position of the step.
    pub(crate) step_id: StepId,
    pub(crate) position: i64,
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
    /// The node has ended, and answers whoever waits for the run.
    Answers(FlowResponse),
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

impl Wait {
    /// A wait of a kind, for nothing in particular.
    pub(crate) fn new(kind: FlowWaitType) -> Self {
        Self { kind, topic: None, key: None, contact: None, details: Value::Null, due_at: None }
    }
}

/// What ended a wait.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Arrival {
    /// What was awaited.
    Came(Value),
    /// Its time was over.
    TimedOut,
}

/// Why a node has failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NodeFailure {
    /// The reason as a word.
    pub(crate) code: String,
    /// A sentence for people.
    pub(crate) message: String,
    /// Whether another attempt may succeed.
    pub(crate) is_transient: bool,
    /// After how many seconds the other side asks to be tried again.
    pub(crate) retry_after: Option<u64>,
}

impl NodeFailure {
    /// A failure that another attempt does not change.
    pub(crate) fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.to_owned(), message: message.into(), is_transient: false, retry_after: None }
    }

    /// A failure that another attempt may change.
    pub(crate) fn transient(code: &str, message: impl Into<String>) -> Self {
        Self { is_transient: true, ..Self::new(code, message) }
    }
}

impl From<Error> for NodeFailure {
    fn from(error: Error) -> Self {
        if let Some(cause) = error.cause() {
            tracing::error!(%cause, "a node failed");
        }
        Self {
            code: error.code().as_str().to_owned(),
            message: calls::about_param(error.message(), error.param_name()),
            is_transient: matches!(error.code().status(), 429 | 500..),
            retry_after: error.retry_after_seconds().and_then(|seconds| u64::try_from(seconds).ok()),
        }
    }
}

impl From<NodeFailure> for Outcome {
    fn from(failure: NodeFailure) -> Self {
        let NodeFailure { code, message, is_transient, retry_after } = failure;
        Self::Failed { code, message, is_transient, retry_after }
    }
}

impl NodeCall {
    /// Executes the node, from the beginning.
    ///
    /// # Errors
    /// What keeps it from ending.
    pub(crate) async fn execute(&self) -> Result<Work, NodeFailure> {
        if let Some(held) = self.held_by_person().await? {
            return Ok(held);
        }
        match self.task.kind {
            NodeType::Ask => self.ask().await,
            NodeType::WaitForReply => self.wait_for_reply().await,
            NodeType::WaitUntil => self.wait_until().await,
            NodeType::WaitForEvent => self.wait_for_event().await,
            NodeType::Approval => self.approval().await,
            NodeType::Agent => self.agent().await,
            NodeType::Classify => self.classify().await,
            NodeType::Extract => self.extract().await,
            NodeType::Delay => basic::delay(self),
            NodeType::Join => basic::join(self),
            NodeType::Respond => basic::respond(self),
            NodeType::SubFlow => basic::sub_flow(self).await,
            NodeType::SendMessage => messages::send_message(self).await,
            NodeType::SendTemplate => messages::send_template(self).await,
            NodeType::UpdateContact => contacts::update_contact(self).await,
            NodeType::ContactTag => contacts::contact_tag(self).await,
            NodeType::Note => contacts::note(self).await,
            NodeType::Handoff => contacts::handoff(self).await,
            NodeType::Task => tasks::task(self).await,
            NodeType::Reminder => tasks::reminder(self).await,
            NodeType::FindItems => records::find_items(self).await,
            NodeType::WriteItem => records::write_item(self).await,
            NodeType::SearchCollection => records::search_collection(self).await,
            NodeType::Code => code::code(self).await,
            NodeType::Function => code::function(self).await,
            NodeType::EmitEvent => custom_events::emit_event(self).await,
            NodeType::HttpRequest => http::http_request(self).await,
            kind => Err(unavailable(kind)),
        }
    }

    /// Goes on after a wait.
    ///
    /// # Errors
    /// What keeps it from ending.
    pub(crate) async fn go_on(&self, wait: &WaitRow, arrival: Arrival) -> Result<Work, NodeFailure> {
        if wait.kind == FlowWaitType::Handback {
            return self.execute().await;
        }
        let details = wait.details.parse()?;
        match self.task.kind {
            NodeType::Ask => self.answered(wait, arrival).await,
            NodeType::WaitForReply => self.wrote(wait, arrival).await,
            NodeType::WaitForEvent => Ok(event_waits::happened(arrival)),
            NodeType::Approval => Ok(approvals::decided(arrival)),
            NodeType::Agent | NodeType::Classify | NodeType::Extract => self.agent_ended(wait, arrival).await,
            NodeType::Delay | NodeType::WaitUntil => Ok(basic::resumed(self)),
            NodeType::SubFlow => basic::sub_flow_ended(&details, &arrival),
            kind => Err(unavailable(kind)),
        }
    }
}

fn unavailable(kind: NodeType) -> NodeFailure {
    NodeFailure::new("not_available", format!("Nodes of the type `{}` cannot be executed.", kind.as_str()))
}
