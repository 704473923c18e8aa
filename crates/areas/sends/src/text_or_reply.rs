//! What is said to a contact: a text, a quick reply with all that it has, or a file.

use super::content::{Content, FreeMessage, interactive, media, text};
use super::result::SendResult;
use super::send::Sending;
use crate::quick_replies::{self, Filling, Rendered};
use channels::ChannelRow;
use chatnet::{Interactive, MediaKind};
use model::{Caller, Code, Error, FileId, MessageId, QuickReplyId, Result};
use ports::{ContactCard, WorkspaceVariables};
use serde::Deserialize;
use std::collections::BTreeMap;
use store::Tx;
use utoipa::ToSchema;

/// A file that is sent in the place of a text.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "file_id": 1, "caption": "Our price list" }))]
pub struct MessageFile {
    /// The id of the file.
    pub(crate) file_id: FileId,
    /// What it is sent as. By default what its MIME type says.
    #[serde(default, rename = "type")]
    pub(crate) kind: Option<MediaKind>,
    /// The text below it. Audio and stickers have none.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 1_024, pattern = r"\S")]
    pub(crate) caption: Option<String>,
}

/// A text or a quick reply, and files behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextOrReply<'a> {
    pub(super) text: Option<&'a str>,
    pub(super) quick_reply: Option<QuickReplyId>,
    pub(super) answers: &'a BTreeMap<String, String>,
    /// A text with buttons or a list, instead of the text.
    pub(super) interactive: Option<&'a Interactive>,
    /// A file with a caption, instead of the text.
    pub(super) attachment: Option<&'a MessageFile>,
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
        let reply_to = message.reply_to;
        let mut messages = match (message.text, message.quick_reply, message.interactive, message.attachment)
        {
            (Some(words), None, None, None) => vec![text(words.to_owned(), preview_url, reply_to)],
            (None, Some(reply), None, None) => {
                let filling = Filling { contact, variables, answers: message.answers };
                let rendered = quick_replies::rendered(tx, caller, reply, &filling, !self.dry_run);
                let rendered = rendered.map_err(|error| match error.code() {
                    Code::NotFound => error.param("quick_reply_id"),
                    _ => error,
                })?;
                self.messages(tx, channel, rendered, reply_to)?
            }
            (None, None, Some(shown), None) => vec![interactive(shown.clone(), reply_to)?],
            (None, None, None, Some(file)) => {
                vec![self.captioned(tx, channel, file, reply_to).map_err(|error| error.below("attachment"))?]
            }
            (None, None, None, None) if !message.files.is_empty() => Vec::new(),
            _ => {
                let rule = "is required, or `quick_reply_id`, `interactive` or `attachment` where the operation takes it, \
                     and only one of them";
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

    /// The message of a file with its caption.
    ///
    /// # Errors
    /// `not_found` and `validation_error` with the field of the file.
    pub(super) fn captioned(
        &self,
        tx: &mut Tx,
        channel: &ChannelRow,
        file: &MessageFile,
        reply_to: Option<MessageId>,
    ) -> Result<FreeMessage> {
        // It is not deleted before the message waits to be sent, and so refers to it.
        files::held(tx, channel.workspace_id, &[file.file_id])?;
        let attachment = self.parts.file(tx, channel.workspace_id, file.file_id, file.kind, "file_id")?;
        media(attachment, file.caption.clone(), reply_to)
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
        let message =
            |file: &FileId| media(self.parts.file(tx, channel.workspace_id, *file, None, param)?, None, None);
        files.iter().map(message).collect()
    }
}
