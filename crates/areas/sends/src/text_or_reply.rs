//! What is said to a contact: a text, or a quick reply with all that it has.

use super::content::{Content, FreeMessage, interactive, text};
use super::result::SendResult;
use super::send::Sending;
use crate::quick_replies::{self, Filling, Rendered};
use channels::ChannelRow;
use chatnet::Interactive;
use conversations::messages::MessageType;
use model::{Caller, Code, Error, FileId, MessageId, QuickReplyId, Result};
use ports::{ContactCard, WorkspaceVariables};
use std::collections::BTreeMap;
use store::Tx;

/// A text or a quick reply, and files behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextOrReply<'a> {
    pub(super) text: Option<&'a str>,
    pub(super) quick_reply: Option<QuickReplyId>,
    pub(super) answers: &'a BTreeMap<String, String>,
    /// A text with buttons or a list, instead of the text.
    pub(super) interactive: Option<&'a Interactive>,
    pub(super) files: &'a [FileId],
    pub(super) reply_to: Option<MessageId>,
}

impl Sending<'_> {
    /// Sends what is said, and gives the result of its first message.
    ///
    /// # Errors
    /// Those of [`Sending::send`], and those of filling the quick reply.
    pub(super) fn send_text_or_reply(
        &self,
        tx: &mut Tx,
        caller: &Caller,
        channel: &ChannelRow,
        contact: &ContactCard,
        variables: &WorkspaceVariables,
        (message, preview_url): (TextOrReply<'_>, bool),
    ) -> Result<SendResult> {
        let mut messages = match (message.text, message.quick_reply, message.interactive) {
            (Some(words), None, None) => vec![text(words.to_owned(), preview_url, message.reply_to)],
            (None, Some(reply), None) => {
                let filling = Filling { contact, variables, answers: message.answers };
                let rendered = quick_replies::rendered(tx, caller, reply, &filling, !self.dry_run);
                let rendered = rendered.map_err(|error| match error.code() {
                    Code::NotFound => error.param("quick_reply_id"),
                    _ => error,
                })?;
                self.messages(tx, channel, rendered, message.reply_to)?
            }
            (None, None, Some(shown)) => vec![interactive(shown.clone(), message.reply_to)?],
            (None, None, None) if !message.files.is_empty() => Vec::new(),
            _ => {
                let rule = "or `quick_reply_id` is required, and not both; `interactive` stands in the place of a text";
                return Err(Error::invalid("text", rule));
            }
        };
        messages.extend(self.file_messages(tx, channel, message.files, "file_ids")?);
        if messages.len() > 1 && self.attempt.retry_of.is_some() {
            return Err(Error::invalid("retry_of", "is for one message, and the request has several"));
        }
        let mut first = None;
        for message in messages {
            let sent = self.send(tx, channel, Some(contact.clone()), Content::Free(Box::new(message)))?;
            first.get_or_insert(sent);
        }
        first.ok_or_else(|| Error::internal("a quick reply has no message"))
    }

    /// The messages of a quick reply: its text with its buttons, and a message for each file.
    fn messages(
        &self,
        tx: &mut Tx,
        channel: &ChannelRow,
        reply: Rendered,
        reply_to: Option<MessageId>,
    ) -> Result<Vec<FreeMessage>> {
        let first = if reply.buttons.is_empty() {
            text(reply.body, false, reply_to)
        } else {
            let shown = Interactive {
                header: None,
                body: reply.body,
                footer: None,
                buttons: reply.buttons,
                list: None,
            };
            interactive(shown, reply_to)?
        };
        let mut all = vec![first];
        all.extend(self.file_messages(tx, channel, &reply.attachments, "quick_reply_id")?);
        Ok(all)
    }

    /// A message for each file.
    fn file_messages(
        &self,
        tx: &mut Tx,
        channel: &ChannelRow,
        files: &[FileId],
        param: &str,
    ) -> Result<Vec<FreeMessage>> {
        // None of them is deleted before the messages wait to be sent, and so refer to them.
        files::held(tx, channel.workspace_id, files)?;
        let message = |file: &FileId| {
            let attachment = self.parts.file(tx, channel.workspace_id, *file, None, param)?;
            let mut message = text(String::new(), false, None);
            message.message_type = MessageType::of_media(attachment.kind);
            message.attachment = Some(attachment);
            Ok(message)
        };
        files.iter().map(message).collect()
    }
}
