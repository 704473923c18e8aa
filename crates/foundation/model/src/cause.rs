//! Who did something, and what led to it.

use crate::text_enum;
use crate::{AutomationId, EventId, JsonText, KeyId, RequestId, RunId, Trace};
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
        /// A code function.
        Function = "function",
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

/// A place in a chain of causes. Runs, messages, reminders, broadcasts and jobs store it as JSON, because they go on when the
/// request that led to them has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// The first event of the chain.
    pub root: EventId,
    /// The number of steps from there.
    pub depth: u32,
    /// The automations that the chain went through, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub automations: Vec<AutomationId>,
}

impl Chain {
    /// The most automations that a chain names. Of more the oldest are dropped: the limit of depth ends a chain long before.
    pub const MOST_AUTOMATIONS: usize = 16;

    /// The first place of a chain that nothing led to.
    pub fn starting(root: EventId) -> Self {
        Self { root, depth: 0, automations: Vec::new() }
    }

    /// The place of what an event leads to, one step after it. `of` is the place of the event itself, which starts a chain where
    /// it has none.
    #[must_use]
    pub fn after(event: &EventId, of: Option<&Self>) -> Self {
        of.map_or_else(|| Self::starting(event.clone()).next(), Self::next)
    }

    /// The place of what is caused from here: one step further.
    #[must_use]
    pub fn next(&self) -> Self {
        Self { depth: self.depth.saturating_add(1), ..self.clone() }
    }

    /// The same place, reached through an automation.
    #[must_use]
    pub fn through(mut self, automation: AutomationId) -> Self {
        self.automations.retain(|other| *other != automation);
        self.automations.push(automation);
        let excess = self.automations.len().saturating_sub(Self::MOST_AUTOMATIONS);
        self.automations.drain(..excess);
        self
    }

    /// Reads a place that is stored. What cannot be read starts a new chain.
    pub fn stored(text: Option<&JsonText>) -> Option<Self> {
        text?.parse().ok()
    }
}

/// What an event comes from. The actor is printed once, because what one change causes may be many events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The request that led to it, also where the work is done later.
    pub request: Option<RequestRef>,
    /// Who did it, as JSON of [`Actor`].
    pub actor: JsonText,
    /// The place in the chain of causes; `None` for an event that starts a chain.
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

    /// The same cause at a place in a chain.
    #[must_use]
    pub fn at(self, chain: Option<Chain>) -> Self {
        Self { chain, ..self }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SeededRandom, Timestamp};

    #[test]
    fn a_chain_names_its_newest_automations() {
        let root = EventId::new(Timestamp::from_millis(1_800_000_000_000), &SeededRandom::new(1));
        let mut chain = Chain::after(&root, None);
        assert_eq!((&chain.root, chain.depth), (&root, 1));
        for id in (1..=20).chain([7]) {
            chain = chain.next().through(AutomationId(id));
        }
        let newest: Vec<_> = (5..=20).filter(|id| *id != 7).chain([7]).map(AutomationId).collect();
        assert_eq!((chain.depth, &chain.automations), (22, &newest));
        assert_eq!(Chain::stored(Some(&JsonText::of(&chain))), Some(chain));
        assert_eq!(Chain::stored(Some(&JsonText::of(&"damaged"))), None);
    }
}
