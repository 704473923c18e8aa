//! Finding the inbound webhook of a request.

use super::rows::WebhookRow;
use super::token::TokenHash;
use crate::schema::inbound_webhooks;
use diesel::prelude::*;
use model::Result;
use store::Read;

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
