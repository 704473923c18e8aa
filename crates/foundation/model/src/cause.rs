//! Who did something, and what led to it.

use crate::text_enum;
use crate::{EventId, JsonText, KeyId, RequestId, RunId, Trace};
use serde::{Deserialize, Serialize};

/// Who performed an action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(example = json!({ "id": "key_01m7w4n5e0k3p8r2v6x9b1d4f7" }))]
pub struct Actor {
    /// The type of actor.
    #[serde(rename = "type")]
    pub kind: ActorType,
    /// The id, such as `key_…`.
    pub id: String,
    /// The run in which an agent did it.
    #[schema(nullable = false, value_type = Option<String>)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
}

text_enum! {
    /// The type of actor.
    pub enum ActorType {
        /// A request with an API key.
        ApiKey = "api_key",
        /// A user of the dashboard.
        User = "user",
        /// An AI agent.
        Agent = "agent",
        /// A flow.
        Flow = "flow",
        /// An import.
        Import = "import",
        /// A contact, by what it wrote.
        Contact = "contact",
        /// A sender of an inbound webhook.
        InboundWebhook = "inbound_webhook",
        /// The service itself.
        System = "system",
    }
}

/// A request that led to something, as far as it is told later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRef {
    /// The id of the request.
    pub id: RequestId,
    /// The key that asked.
    pub key_id: KeyId,
    /// Its `Idempotency-Key`, if it had one.
    pub idempotency_key: Option<String>,
    /// The trace that it came with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

/// A place in a chain of events that led to one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The first event.
    pub root: EventId,
    /// How many steps it is away.
    pub depth: u32,
}

/// What an event comes from. The actor is printed once, because what one change causes may be many events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The request that led to it, also where the work is done later.
    pub request: Option<RequestRef>,
    /// Who did it, as JSON of [`Actor`].
    pub actor: JsonText,
    /// The chain that it goes on with; `None` for an event that begins one.
    pub chain: Option<Chain>,
    /// The trace that it belongs to. `None` for that of `request`, if there is one.
    pub trace: Option<Trace>,
}

impl Cause {
    /// Somebody, without a request.
    pub fn actor(kind: ActorType, id: &impl ToString) -> Self {
        Self::by(&Actor { kind, id: id.to_string(), run_id: None })
    }

    /// What an actor does without a request.
    pub fn by(actor: &Actor) -> Self {
        Self { request: None, actor: JsonText::of(actor), chain: None, trace: None }
    }

    /// A request with an API key.
    pub fn request(request: RequestRef) -> Self {
        let cause = Self::actor(ActorType::ApiKey, &request.key_id);
        Self { request: Some(request), ..cause }
    }

    /// The service itself, by the name of what it does.
    pub fn system(name: &'static str) -> Self {
        Self::actor(ActorType::System, &name)
    }
}
