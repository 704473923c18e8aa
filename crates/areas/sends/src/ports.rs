//! Sends without a request.

use super::content::{Content, FilledTemplate, text};
use super::recipient::channel_for;
use super::retry::Attempt;
use super::send::{SendParts, Sending};
use auth::keys;
use channels::templates;
use chatnet::SentTemplate;
use conversations::messages::{self, MessageSenderType, Sender};
use model::{ChannelId, Code, ContactId, Error, MessageId, Result, Scope, WorkspaceId};
use ports::{MessageContent, MessageSender, MessageToSend, SentBy, TemplateToSend};
use store::{Read, Tx};

impl MessageSender for SendParts {
    fn check(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        contact: ContactId,
        channel: Option<ChannelId>,
        content: &MessageContent,
    ) -> Result<()> {
        let channel = channel_for(read, workspace, contact, channel)?;
        let MessageContent::Template(wanted) = content else { return Ok(()) };
        let found =
            templates::named(read, channel.id, wanted.namespace.as_deref(), &wanted.name, &wanted.language);
        let components = found.map_err(|error| error.param("template"))?.components()?;
        let checked = components
            .expect_media(wanted.media.is_some())
            .and_then(|()| components.resolve(&sent(wanted.clone())).map(drop))
            .and_then(|()| self.header_file(read, workspace, wanted.media, "media").map(drop));
        checked.map_err(|error| {
            let param = format!("template.{}", error.param_name().unwrap_or("params"));
            error.param(param)
        })
    }

    fn send(&self, tx: &mut Tx, message: &MessageToSend) -> Result<MessageId> {
        let workspace = message.workspace;
        if let Some(sent) = messages::by_client_key(tx, workspace, &message.once)? {
            return Ok(sent);
        }
        expect_may_send(tx, message)?;
        // Another one, if it was merged meanwhile.
        let contact = self.people.find(tx, workspace, &message.contact.into())?;
        let channel = channel_for(tx, workspace, contact.id, message.channel)?;
        let sending = Sending {
            workspace,
            parts: self,
            sender: sender_of(message),
            run: None,
            answering: None,
            once: Some(message.once.clone()),
            dry_run: false,
            attempt: Attempt::default(),
        };
        let what = match message.content.clone() {
            MessageContent::Text(words) => Content::Free(Box::new(text(words, false, None))),
            MessageContent::Template(wanted) => {
                let (namespace, media) = (wanted.namespace.clone(), wanted.media);
                Content::Template(FilledTemplate { template: sent(wanted), media, namespace })
            }
        };
        let queued = sending.send(tx, &channel, Some(contact), what)?;
        queued.message_id.ok_or_else(|| Error::internal("a message that is sent has no id"))
    }
}

fn sender_of(message: &MessageToSend) -> Sender {
    let (kind, id) = match &message.sender {
        SentBy::Key => (MessageSenderType::Api, message.key.to_string()),
        SentBy::Agent(id) => (MessageSenderType::Agent, id.to_string()),
        SentBy::Broadcast(id) => (MessageSenderType::Broadcast, id.to_string()),
        SentBy::Reminder(id) => (MessageSenderType::Reminder, id.to_string()),
        SentBy::Person(id) => (MessageSenderType::User, id.to_string()),
    };
    Sender { kind, id: Some(id) }
}

fn sent(wanted: TemplateToSend) -> SentTemplate {
    SentTemplate {
        name: wanted.name,
        language: wanted.language,
        namespace: wanted.namespace.unwrap_or_default(),
        params: wanted.params,
        header_params: wanted.header_params,
        button_params: wanted.button_params,
    }
}

fn expect_may_send(read: &mut Read, message: &MessageToSend) -> Result<()> {
    let stored = keys::by_id(read, &message.key)?;
    if keys::standing_scopes(read, &stored.key.lineage, message.workspace)?.contains(Scope::ChannelsSend) {
        return Ok(());
    }
    let lacking = "The key that set the action was revoked or lacks the scope `channels:send`.";
    Err(Error::new(Code::MissingScope, lacking).param(Scope::ChannelsSend.as_str()))
}
