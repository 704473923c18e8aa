//! Who changes an item, and on whose behalf.

use model::{Caller, ImportId, JsonText, RequestId, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Actor {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: ActorType,
    /// Its id, such as `key_…`.
    pub id: String,
}

/// What can change an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActorType {
    /// A request with an API key.
    ApiKey,
    /// A person at the dashboard.
    User,
    /// An AI agent.
    Agent,
    /// A flow.
    Flow,
    /// An import.
    Import,
    /// The service itself.
    System,
}

impl ActorType {
    /// The word of the wire format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::User => "user",
            Self::Agent => "agent",
            Self::Flow => "flow",
            Self::Import => "import",
            Self::System => "system",
        }
    }
}

/// What caused a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Source {
    /// The request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The import.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub import_id: Option<String>,
}

/// Who changes items: what their rows, the activity log and the events say of it.
#[derive(Debug, Clone)]
pub struct Author {
    /// The tenant.
    pub workspace: WorkspaceId,
    /// Whether events say that it was for real.
    pub livemode: bool,
    /// Who, as JSON of [`Actor`].
    pub actor: JsonText,
    /// Why, as JSON of [`Source`].
    pub source: JsonText,
    /// The request, for events.
    pub request: Option<RequestId>,
    /// What the changes of one bulk call have in common.
    pub operation: Option<String>,
    /// Whether each item's change is an event. Imports tell of themselves as a whole unless asked otherwise.
    pub emits: bool,
}

impl Author {
    /// The caller of an operation. Data is real under test keys too (decision 26), so its events are live.
    pub fn of(caller: &Caller) -> Self {
        let source = Source { request_id: Some(caller.request.to_string()), ..Source::default() };
        Self {
            workspace: caller.workspace_id(),
            livemode: true,
            actor: JsonText::of(&Actor { kind: ActorType::ApiKey, id: caller.key.id.to_string() }),
            source: JsonText::of(&source),
            request: Some(caller.request.clone()),
            operation: None,
            emits: true,
        }
    }

    /// An import.
    pub fn import(workspace: WorkspaceId, id: &ImportId, emits: bool) -> Self {
        Self {
            workspace,
            livemode: true,
            actor: JsonText::of(&Actor { kind: ActorType::Import, id: id.to_string() }),
            source: JsonText::of(&Source { import_id: Some(id.to_string()), ..Source::default() }),
            request: None,
            operation: Some(id.to_string()),
            emits,
        }
    }

    /// The service, doing what follows from other changes.
    pub fn system(workspace: WorkspaceId, name: &str) -> Self {
        Self {
            workspace,
            livemode: true,
            actor: JsonText::of(&Actor { kind: ActorType::System, id: name.to_owned() }),
            source: JsonText::of(&Source::default()),
            request: None,
            operation: None,
            emits: true,
        }
    }
}
