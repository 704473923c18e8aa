//! Who changes an item, and on whose behalf.

use model::{ActorType, Caller, Cause, ImportId, JsonText, WorkspaceId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What caused a change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Source {
    /// The id of the request.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The id of the import.
    #[schema(nullable = false)]
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
    /// Who, and by which request.
    pub cause: Cause,
    /// Why, as JSON of [`Source`].
    pub source: JsonText,
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
            cause: caller.cause(),
            source: JsonText::of(&source),
            operation: None,
            emits: true,
        }
    }

    /// An import.
    pub fn import(workspace: WorkspaceId, id: &ImportId, emits: bool) -> Self {
        Self {
            workspace,
            livemode: true,
            cause: Cause::actor(ActorType::Import, id),
            source: JsonText::of(&Source { import_id: Some(id.to_string()), ..Source::default() }),
            operation: Some(id.to_string()),
            emits,
        }
    }

    /// The service, doing what follows from other changes.
    pub fn system(workspace: WorkspaceId, name: &'static str) -> Self {
        Self::by(workspace, Cause::system(name))
    }

    /// Whoever caused it, for changes that no operation on records makes.
    pub fn by(workspace: WorkspaceId, cause: Cause) -> Self {
        Self {
            workspace,
            livemode: true,
            cause,
            source: JsonText::of(&Source::default()),
            operation: None,
            emits: true,
        }
    }
}
