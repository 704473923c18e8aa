//! The action `send_message`: one message for each firing.

use super::model::{ReminderAction, ReminderActionConfig, ReminderActionType, ReminderRow};
use super::start::{is_passing, name, note};
use jobs::{JobContext, JobError};
use model::{
    Caller, ChannelId, Code, ContactId, Error, KeyId, ReminderId, Result, Scope, Timestamp, WorkspaceId,
};
use ports::{MessageContent, MessageToSend, Messenger, SentBy};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use store::Tx;

/// The name of the job that sends a message.
pub(super) const JOB: &str = "reminders.send";

/// The payload of the job.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct SendMessage {
    workspace: WorkspaceId,
    reminder: ReminderId,
    slot: Timestamp,
    key: KeyId,
    contact: ContactId,
    channel: Option<ChannelId>,
    content: MessageContent,
}

/// Enqueues the message of a reminder that fired for `slot`. It is sent in its own transaction, because contacts must be locked
/// before reminders, and this transaction has already locked many reminders.
pub(super) fn enqueue(tx: &mut Tx, row: &ReminderRow, slot: Timestamp) -> Result<()> {
    let action = row.action()?;
    if action.kind != ReminderActionType::SendMessage {
        return Ok(());
    }
    // Neither can be missing: deleting a contact deletes its reminders, and stored actions were validated.
    let (Some(contact), Some(content)) = (row.contact_id, content(&action.config)) else { return Ok(()) };
    let payload = SendMessage {
        workspace: row.workspace_id,
        reminder: row.id,
        slot,
        key: row.key_id.clone(),
        contact,
        channel: action.config.channel_id,
        content,
    };
    let now = tx.now();
    tx.enqueue(row.workspace_id, JOB, Some(&name(row.id, slot)), &payload, now)
}

/// Sends a message exactly once, even if the job is retried.
pub(super) async fn send(messenger: Messenger, job: JobContext) -> Result<(), JobError> {
    let wanted: SendMessage = job.payload.parse()?;
    let (workspace, reminder) = (wanted.workspace, wanted.reminder);
    let message = Arc::new(MessageToSend {
        workspace,
        key: wanted.key,
        sender: SentBy::Reminder(reminder),
        contact: wanted.contact,
        channel: wanted.channel,
        content: wanted.content,
        once: name(reminder, wanted.slot),
    });
    match job.db.write(move |tx| messenger.0.send(tx, &message)).await {
        Ok(_) => Ok(()),
        Err(error) if is_passing(&error) => Err(error.into()),
        Err(error) => Ok(note(&job.db, workspace, reminder, error).await?),
    }
}

fn content(config: &ReminderActionConfig) -> Option<MessageContent> {
    let text = config.text.clone().map(MessageContent::Text);
    text.or_else(|| config.template.clone().map(MessageContent::Template))
}

/// Checks that a message is complete, and that the caller may send it.
///
/// # Errors
/// `validation_error`, `missing_scope`, `test_mode_restricted`.
pub(super) fn expect_complete(caller: &Caller, config: &ReminderActionConfig) -> Result<()> {
    match (&config.text, &config.template) {
        (None, None) => return Err(Error::invalid("action.config.text", "is required, or `template`")),
        (Some(_), Some(_)) => {
            return Err(Error::invalid("action.config.template", "cannot be sent together with `text`"));
        }
        _ => {}
    }
    expect_allowed(caller)
}

fn expect_allowed(caller: &Caller) -> Result<()> {
    caller.key.expect_scope(Scope::ChannelsSend)?;
    if !caller.livemode() {
        let message = "A test key cannot send messages.";
        return Err(Error::new(Code::TestModeRestricted, message));
    }
    Ok(())
}

/// Checks that a reminder with `send_message` has a contact and a channel to which the caller may send.
///
/// # Errors
/// `validation_error`, `missing_scope`, `test_mode_restricted`, and the errors of
/// [`MessageSender::check`](ports::MessageSender::check).
pub(super) fn check(
    tx: &mut Tx,
    caller: &Caller,
    messenger: &Messenger,
    action: &ReminderAction,
    contact: Option<ContactId>,
) -> Result<()> {
    let content = content(&action.config).filter(|_| action.kind == ReminderActionType::SendMessage);
    let Some(content) = content else { return Ok(()) };
    expect_allowed(caller)?;
    let required = || Error::invalid("contact_id", "is required for the action `send_message`");
    let contact = contact.ok_or_else(required)?;
    let channel = action.config.channel_id;
    // The lock keeps the file from being deleted before the reminder refers to it.
    let media = action.config.template.as_ref().and_then(|template| template.media);
    files::held(tx, caller.workspace_id(), media.as_slice())?;
    messenger
        .0
        .check(tx, caller.workspace_id(), contact, channel, &content)
        .map_err(|error| error.below("action.config"))
}
