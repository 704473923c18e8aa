//! Operations of the dashboard on the state of a conversation.

use super::state::{ConversationState, StateChange, set_state};
use crate::messages::ConversationStatus;
use crate::schema::conversations;
use diesel::prelude::*;
use model::{Caller, ConversationId, Result, Timestamp};
use operation::{Body, Json, Path, operation};
use serde::{Deserialize, Serialize};
use store::{OneRow as _, Tx};
use utoipa::ToSchema;

/// Why a conversation is closed.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "reason": "The order has arrived." }))]
pub struct ConversationClosing {
    /// Why, for the team.
    #[schema(max_length = 200, nullable = false)]
    pub reason: Option<String>,
}

/// Until when a conversation is snoozed.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "minutes": 240 }))]
pub struct ConversationSnooze {
    /// In how many minutes the conversation opens again: at most a year.
    #[schema(minimum = 1, maximum = 525600)]
    pub minutes: i64,
}

/// The state of a conversation.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "status": "closed", "close_reason": "The order has arrived." }))]
pub struct ConversationStanding {
    /// The id of the conversation.
    pub id: ConversationId,
    /// Always `conversation_state`.
    pub object: &'static str,
    /// The status.
    pub status: ConversationStatus,
    /// Until when the conversation is snoozed.
    pub snoozed_until: Option<Timestamp>,
    /// When the conversation was closed.
    pub closed_at: Option<Timestamp>,
    /// Why the conversation was closed.
    pub close_reason: Option<String>,
}

impl From<ConversationState> for ConversationStanding {
    fn from(state: ConversationState) -> Self {
        Self {
            id: state.id,
            object: "conversation_state",
            status: state.status,
            snoozed_until: state.snoozed_until,
            closed_at: state.closed_at,
            close_reason: state.close_reason,
        }
    }
}

/// Close a conversation
///
/// The conversation opens again when the contact writes. Closing a closed conversation changes only the reason.
#[operation(post "/dashboard/conversations/{conversationId}/close", session = "conversations:close")]
pub fn close_conversation(
    tx: &mut Tx,
    caller: &Caller,
    Path(conversation_id): Path<ConversationId>,
    Body(closing): Body<ConversationClosing>,
) -> Result<Json<ConversationStanding>> {
    change(tx, caller, conversation_id, &StateChange::Close { reason: closing.reason })
}

/// Open a conversation again
///
/// Opens a conversation that is closed or snoozed.
#[operation(post "/dashboard/conversations/{conversationId}/reopen", session = "conversations:close")]
pub fn reopen_conversation(
    tx: &mut Tx,
    caller: &Caller,
    Path(conversation_id): Path<ConversationId>,
) -> Result<Json<ConversationStanding>> {
    change(tx, caller, conversation_id, &StateChange::Reopen)
}

/// Snooze a conversation
///
/// The conversation opens again after the time that is given, or when the contact writes.
#[operation(post "/dashboard/conversations/{conversationId}/snooze", session = "conversations:close")]
pub fn snooze_conversation(
    tx: &mut Tx,
    caller: &Caller,
    Path(conversation_id): Path<ConversationId>,
    Body(snooze): Body<ConversationSnooze>,
) -> Result<Json<ConversationStanding>> {
    let until = tx.now().plus_seconds(snooze.minutes * 60);
    change(tx, caller, conversation_id, &StateChange::Snooze { until })
}

/// Changes the state of a conversation of the workspace.
fn change(
    tx: &mut Tx,
    caller: &Caller,
    id: ConversationId,
    change: &StateChange,
) -> Result<Json<ConversationStanding>> {
    let own = conversations::table.find(id).filter(conversations::workspace_id.eq(caller.workspace_id()));
    let _: ConversationId =
        own.select(conversations::id).get_result(tx.connection()).or_not_found("conversation")?;
    set_state(tx, id, change).map(|state| Json(state.into()))
}
