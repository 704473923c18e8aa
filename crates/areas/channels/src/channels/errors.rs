//! The log of a channel's errors, for operators.

use crate::schema::channel_errors;
use diesel::prelude::*;
use model::{ChannelId, MessageId, Result};
use store::Tx;

/// An error to record.
#[derive(Debug, Clone, Copy, Default)]
pub struct NewChannelError<'a> {
    /// The code.
    pub code: &'a str,
    /// A message for people, in English.
    pub message: &'a str,
    /// The network's error number.
    pub provider_code: Option<i64>,
    /// The message whose send failed.
    pub about: Option<MessageId>,
}

/// Records an error of a channel.
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
