//! The state of conversations, for operators.

use super::arguments::Json;
use super::output;
use crate::values::{self, whole};
use clap::{Args, Subcommand};
use conversations::{StateChange, set_state};
use model::{ConversationId, Error, Result, Timestamp};
use store::Db;

#[derive(Subcommand)]
pub(super) enum ConversationCommand {
    /// Close a conversation. It opens again when the contact writes.
    Close {
        #[command(flatten)]
        named: Named,
        /// Why, at most 200 characters.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// Snooze a conversation. It opens again at the time that is given, or when the contact writes.
    Snooze {
        #[command(flatten)]
        named: Named,
        /// When it opens again, in RFC 3339: in the next 366 days.
        #[arg(long, value_parser = values::time)]
        until: Timestamp,
    },
    /// Open a conversation that is closed or snoozed.
    Reopen {
        #[command(flatten)]
        named: Named,
    },
}

/// Which conversation, and how it is printed.
#[derive(Args)]
pub(super) struct Named {
    /// The id of the conversation.
    #[arg(value_parser = whole::<i64, 1, { i64::MAX }>, allow_negative_numbers = true)]
    conversation: i64,
    #[command(flatten)]
    json: Json,
}

pub(super) async fn conversation(db: Db, command: ConversationCommand) -> Result<()> {
    let (named, change) = match command {
        ConversationCommand::Close { named, reason } => (named, StateChange::Close { reason }),
        ConversationCommand::Snooze { named, until } => (named, StateChange::Snooze { until }),
        ConversationCommand::Reopen { named } => (named, StateChange::Reopen),
    };
    let state = db.write(move |tx| set_state(tx, ConversationId(named.conversation), &change)).await?;
    output::object(&serde_json::to_value(state).map_err(Error::internal)?, named.json.json)?;
    Ok(())
}
