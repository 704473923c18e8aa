//! The errors of a channel, for the people who operate it.

use crate::schema::channel_errors;
use diesel::prelude::*;
use model::{ChannelId, MessageId, Result};
use store::Tx;

/// An error to note.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewChannelError<'a> {
    /// The code.
    pub code: &'a str,
    /// For people, in English.
    pub message: &'a str,
    /// The network's number for it.
    pub provider_code: Option<i64>,
    /// The message that was to be sent.
    pub about: Option<MessageId>,
}

/// Adds an error to the last errors of a channel.
pub fn note_error(tx: &mut Tx, channel: ChannelId, error: NewChannelError<'_>) -> Result<()> {
    let now = tx.now();
    diesel::insert_into(channel_errors::table)
        .values((
            channel_errors::channel_id.eq(channel),
            channel_errors::code.eq(error.code),
            channel_errors::message.eq(error.message),
            channel_errors::provider_code.eq(error.provider_code),
            channel_errors::message_id.eq(error.about),
            channel_errors::created_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}
