//! Who has a conversation open in the dashboard, so that two people do not answer the same question.

use crate::schema::{conversation_viewers as viewers, conversations};
use diesel::prelude::*;
use model::{Caller, ConversationId, MemberId, Result, Timestamp};
use operation::{Body, Deleted, Json, Path, operation};
use serde::{Deserialize, Serialize};
use store::{OneRow as _, Tx, each, for_key_share, lock_row};
use utoipa::ToSchema;

/// For how long a page that has not reported again counts as open, in seconds. Browsers slow the timers of hidden tabs down to
/// one a minute, and such a tab shows nothing to anybody.
const COUNTS_SECONDS: i64 = 45;

/// What a member does in a conversation.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "is_writing": true }))]
pub struct ConversationViewing {
    /// Whether the member is writing a reply.
    #[serde(default)]
    pub is_writing: bool,
}

/// A member who has a conversation open.
#[derive(Debug, Clone, Queryable, Serialize, ToSchema)]
#[schema(example = json!({ "member_id": 2, "is_writing": true, "seen_at": "2026-01-15T12:00:00.000Z" }))]
pub struct ConversationViewer {
    /// The member.
    pub member_id: MemberId,
    /// Whether the member is writing a reply.
    pub is_writing: bool,
    /// When the page last reported.
    pub seen_at: Timestamp,
}

/// The others who have a conversation open.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "viewers": [{ "member_id": 2, "is_writing": true, "seen_at": "2026-01-15T12:00:00.000Z" }] }))]
pub struct ConversationViewers {
    /// The id of the conversation.
    pub id: ConversationId,
    /// Always `conversation_viewers`.
    pub object: &'static str,
    /// The others, in the order of their ids.
    pub viewers: Vec<ConversationViewer>,
}

/// Report that you have a conversation open
///
/// Returns the other members who have it open. A report counts for 45 seconds, so a page repeats it more often than that.
#[operation(put "/dashboard/conversations/{conversationId}/viewer", session = "account", when_blocked)]
pub fn view_conversation(
    tx: &mut Tx,
    caller: &Caller,
    Path(conversation_id): Path<ConversationId>,
    Body(viewing): Body<ConversationViewing>,
) -> Result<Json<ConversationViewers>> {
    hold(tx, caller, conversation_id)?;
    let (member, now) = (caller.member()?.member, tx.now());
    let since = now.plus_seconds(-COUNTS_SECONDS);
    diesel::delete(viewers::table)
        .filter(viewers::conversation_id.eq(conversation_id))
        .filter(viewers::seen_at.lt(since))
        .execute(tx.connection())?;
    each!(tx.connection(), |connection| diesel::insert_into(viewers::table)
        .values((
            viewers::conversation_id.eq(conversation_id),
            viewers::member_id.eq(member),
            viewers::is_writing.eq(viewing.is_writing),
            viewers::seen_at.eq(now),
        ))
        .on_conflict((viewers::conversation_id, viewers::member_id))
        .do_update()
        .set((viewers::is_writing.eq(viewing.is_writing), viewers::seen_at.eq(now)))
        .execute(connection))?;
    let others = viewers::table
        .filter(viewers::conversation_id.eq(conversation_id))
        .filter(viewers::member_id.ne(member))
        .order(viewers::member_id)
        .select((viewers::member_id, viewers::is_writing, viewers::seen_at))
        .load(tx.connection())?;
    Ok(Json(ConversationViewers { id: conversation_id, object: "conversation_viewers", viewers: others }))
}

/// Report that you have left a conversation
///
/// The other members no longer see that you have it open.
#[operation(delete "/dashboard/conversations/{conversationId}/viewer", session = "account", when_blocked)]
pub fn leave_conversation(
    tx: &mut Tx,
    caller: &Caller,
    Path(conversation_id): Path<ConversationId>,
) -> Result<Deleted<ConversationViewers>> {
    hold(tx, caller, conversation_id)?;
    let member = caller.member()?.member;
    diesel::delete(viewers::table.find((conversation_id, member))).execute(tx.connection())?;
    Ok(Deleted::of("conversation_viewers", conversation_id))
}

/// Keeps a conversation of the workspace from being deleted until the transaction ends.
///
/// # Errors
/// `not_found`.
fn hold(tx: &mut Tx, caller: &Caller, id: ConversationId) -> Result<()> {
    let own = conversations::table.find(id).filter(conversations::workspace_id.eq(caller.workspace_id()));
    let held = for_key_share(own.select(conversations::id));
    let _: ConversationId = held.get_result(tx.connection()).or_not_found("conversation")?;
    Ok(())
}

/// Deletes a conversation, with who has it open.
pub(crate) fn delete_conversation(tx: &mut Tx, id: ConversationId) -> Result<()> {
    let row = conversations::table.find(id);
    lock_row!(tx, row, for_update);
    let of = viewers::table.filter(viewers::conversation_id.eq(id));
    diesel::delete(of).execute(tx.connection())?;
    diesel::delete(row).execute(tx.connection())?;
    Ok(())
}
