//! Finding the inbound webhook of a request.

use super::rows::WebhookRow;
use super::token::TokenHash;
use crate::schema::inbound_webhooks;
use diesel::prelude::*;
use model::{InboundWebhookId, Result, WorkspaceId};
use store::Read;

/// Returns whether a workspace has an inbound webhook with this id.
///
/// # Errors
/// When the database fails.
pub fn exists(read: &mut Read, workspace: WorkspaceId, id: &InboundWebhookId) -> Result<bool> {
    let found = inbound_webhooks::table
        .filter(inbound_webhooks::id.eq(id))
        .filter(inbound_webhooks::workspace_id.eq(workspace));
    Ok(diesel::select(diesel::dsl::exists(found)).get_result(read.connection())?)
}

/// Finds the webhook whose URL ends in this token, or did before its last rotation.
pub(super) fn by_token(read: &mut Read, hash: &TokenHash) -> Result<Option<WebhookRow>> {
    // Two look-ups, because SQLite would scan for an OR over two columns of which one may be null.
    let present = inbound_webhooks::table
        .filter(inbound_webhooks::token_hash.eq(hash.as_slice()))
        .get_result(read.connection())
        .optional()?;
    if present.is_some() {
        return Ok(present);
    }
    Ok(inbound_webhooks::table
        .filter(inbound_webhooks::previous_token_hash.eq(hash.as_slice()))
        .get_result(read.connection())
        .optional()?)
}
