//! What is said to a contact: a text, or a quick reply with all that it has.

use super::content::{Content, FreeMessage, text};
use super::result::SendResult;
use super::send::Sending;
use crate::quick_replies::{self, Filling, Rendered};
use channels::ChannelRow;
use chatnet::Interactive;
use conversations::messages::{Detail, MessageType};
use model::{Caller, Code, Error, MessageId, QuickReplyId, Result};
use ports::{ContactCard, WorkspaceVariables};
use std::collections::BTreeMap;
use store::Tx;

/// A text or a quick reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextOrReply<'a> {
    pub(super) text: Option<&'a str>,
    pub(super) quick_reply: Option<QuickReplyId>,
    pub(super) answers: &'a BTreeMap<String, String>,
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
        let messages = match (message.text, message.quick_reply) {
            (Some(words), None) => vec![text(words.to_owned(), preview_url, message.reply_to)],
            (None, Some(reply)) => {
                let filling = Filling { contact, variables, answers: message.answers };
                let rendered = quick_replies::rendered(tx, caller, reply, &filling, !self.dry_run);
                let rendered = rendered.map_err(|error| match error.code() {
                    Code::NotFound => error.param("quick_reply_id"),
                    _ => error,
                })?;
                self.messages(tx, channel, rendered, message.reply_to)?
            }
            _ => return Err(Error::invalid("text", "or `quick_reply_id` is required, and not both")),
        };
        if messages.len() > 1 && self.attempt.retry_of.is_some() {
            return Err(Error::invalid("retry_of", "is for one message, and the quick reply has several"));
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
        let mut first = text(reply.body.clone(), false, reply_to);
        if !reply.buttons.is_empty() {
            let interactive = Interactive {
                header: None,
                body: reply.body,
                footer: None,
                buttons: reply.buttons,
                list: None,
            };
            interactive.check()?;
            first.message_type = MessageType::Interactive;
            first.detail = Detail { interactive: Some(interactive), ..Detail::default() };
        }
        let mut all = vec![first];
        // None of them is deleted before the messages wait to be sent, and so refer to them.
        files::held(tx, channel.workspace_id, &reply.attachments)?;
        for file in reply.attachments {
            let attachment = self.parts.file(tx, channel.workspace_id, file, None, "quick_reply_id")?;
            let mut message = text(String::new(), false, None);
            message.message_type = MessageType::of_media(attachment.kind);
            message.attachment = Some(attachment);
            all.push(message);
        }
        Ok(all)
    }
}
