//! A send from its checks to the outbox.

use super::checks::{
    Checks, expect_not_blocked, expect_not_handed_over, expect_opted_in, expect_reachable, expect_window,
};
use super::content::{Content, FilledTemplate, FreeMessage};
use super::media;
use super::result::{MessageRecipient, SendResult};
use super::retry::{self, Attempt};
use channels::ChannelRow;
use channels::Network;
use channels::templates;
use channels::work::WorkNotifier;
use chatnet::{MediaKind, Recipient, ResolvedMessage, SentTemplate};
use conversations::messages::{
    self, BroadcastRecipients, Conversation, Detail, MessageRow, MessageSenderType, MessageType,
    NewAttachment, Outgoing, Priority, Sender,
};
use files::Files;
use model::{ActorType, Answering, Caller, Error, FileId, MessageId, Result, RunId, Timestamp, WorkspaceId};
use ports::{ContactCard, People};
use std::collections::BTreeSet;
use std::sync::Arc;
use store::{Read, Tx};

/// For how long a template waits to be sent, in seconds.
const TEMPLATE_PATIENCE: i64 = 4 * 3_600;

/// How often a contact is looked for again that others merge meanwhile.
const TRIES: usize = 5;

/// What sends are made with. A service that operations ask for.
#[derive(Clone)]
pub struct SendParts {
    /// The contacts.
    pub people: People,
    /// The recipients of broadcasts, which follow the messages that are sent again.
    pub(crate) broadcasts: Arc<dyn BroadcastRecipients>,
    /// The files.
    pub files: Arc<Files>,
    pub(crate) network: Network,
    /// Notifies the workers.
    pub notifier: WorkNotifier,
}

impl SendParts {
    /// A file as an attachment of a message, as `kind` or as what it is.
    ///
    /// # Errors
    /// `not_found` with `param`; `validation_error` where the network does not take the file.
    pub fn file(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        file: FileId,
        kind: Option<MediaKind>,
        param: &str,
    ) -> Result<NewAttachment> {
        media::attachment(read, workspace, file, kind, self.network.0.capabilities(), param)
    }

    /// The file above the text of a template, if there is one.
    ///
    /// # Errors
    /// As those of [`file`](Self::file).
    pub fn header_file(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        file: Option<FileId>,
        param: &str,
    ) -> Result<Option<NewAttachment>> {
        file.map(|file| self.file(read, workspace, file, None, param)).transpose()
    }
}

/// Sends a template to a contact in the name of a request, or only checks it. Returns the message, if one was queued, and
/// what the contact reads.
///
/// # Errors
/// Those of the first check that fails.
pub fn send_template(
    tx: &mut Tx,
    caller: &Caller,
    parts: &SendParts,
    channel: &ChannelRow,
    contact: ContactCard,
    (template, media): (SentTemplate, Option<FileId>),
    dry_run: bool,
) -> Result<(Option<MessageId>, ResolvedMessage)> {
    let sending = Sending::new(caller, parts, dry_run, Attempt::default())?;
    let namespace = Some(template.namespace.clone());
    let what = Content::Template(FilledTemplate { template, media, namespace });
    let result = sending.send(tx, channel, Some(contact), what)?;
    Ok((result.message_id, result.message))
}

/// Who sends how.
pub(super) struct Sending<'a> {
    pub(super) workspace: WorkspaceId,
    pub(super) parts: &'a SendParts,
    pub(super) sender: Sender,
    /// The run of the agent that sends.
    pub(super) run: Option<RunId>,
    /// The contact whom that agent answers by itself.
    pub(super) answering: Option<Answering>,
    /// What names the message among all of the workspace, where no second one may have the name.
    pub(super) once: Option<String>,
    pub(super) dry_run: bool,
    pub(super) attempt: Attempt,
}

/// Who sends, for a request.
pub(super) fn sender_of(caller: &Caller) -> Result<Sender> {
    let actor: model::Actor = caller.cause().actor.parse()?;
    let kind = match actor.kind {
        ActorType::Agent => MessageSenderType::Agent,
        ActorType::Flow => MessageSenderType::Flow,
        ActorType::User => MessageSenderType::User,
        _ => MessageSenderType::Api,
    };
    Ok(Sender { kind, id: Some(actor.id) })
}

impl<'a> Sending<'a> {
    /// A request that sends in its own name.
    pub(super) fn new(
        caller: &'a Caller,
        parts: &'a SendParts,
        dry_run: bool,
        attempt: Attempt,
    ) -> Result<Self> {
        let run = caller.actor.as_ref().and_then(|actor| actor.run_id.clone());
        let (workspace, sender) = (caller.workspace_id(), sender_of(caller)?);
        let answering = caller.answering;
        Ok(Self { workspace, parts, sender, run, answering, once: None, dry_run, attempt })
    }

    /// Checks what is to be sent and, unless that is all, queues it.
    ///
    /// # Errors
    /// Those of the first check that fails.
    pub(super) fn send(
        &self,
        tx: &mut Tx,
        channel: &ChannelRow,
        contact: Option<ContactCard>,
        what: Content,
    ) -> Result<SendResult> {
        let contact = match contact {
            Some(contact) if !self.dry_run => Some(self.locked(tx, &contact)?),
            contact => contact,
        };
        let mut checks = Checks::default();
        if let (Some(contact), Some(answering)) = (&contact, self.answering) {
            let begun_as = self.parts.people.find(tx, self.workspace, &answering.contact.into());
            checks.note("not_handed_over", expect_not_handed_over(contact, begun_as, answering.epoch));
        }
        checks.note("channel_connected", channel.expect_connected());
        let address = match &contact {
            Some(contact) => {
                checks.note("recipient_not_blocked", expect_not_blocked(contact));
                checks.note("recipient_reachable", expect_reachable(contact))
            }
            None => None,
        };
        let conversation = match &contact {
            Some(contact) => Conversation::find(tx, channel.id, contact.id)?,
            None => None,
        };
        let (mut draft, expires_at) =
            self.prepare(tx, channel, contact.as_ref(), conversation.as_ref(), what, &mut checks)?;
        draft.detail.at_least_once = self.attempt.at_least_once;
        if let Some(id) = self.attempt.retry_of {
            let retry = retry::expect_retryable(tx, conversation.as_ref(), id, &draft);
            checks.note("retry_allowed", retry);
        }
        let checks = checks.passed(self.dry_run)?;
        let (phone, user_id) = match address {
            Some(Recipient::Phone(phone)) => (Some(phone), None),
            Some(Recipient::UserId(id)) => (None, Some(id)),
            None => (None, None),
        };
        let result = SendResult {
            object: "send_result",
            dry_run: true,
            would_send: true,
            message_id: None,
            status: None,
            conversation_id: conversation.as_ref().map(|conversation| conversation.id),
            channel_id: channel.id,
            recipient: MessageRecipient {
                contact_id: contact.as_ref().map(|contact| contact.id),
                phone,
                user_id,
            },
            message: draft.shown.clone(),
            template: draft.detail.template.clone(),
            checks,
        };
        match contact {
            Some(contact) if !self.dry_run => {
                let row = self.queue(tx, channel, &contact, draft, expires_at)?;
                Ok(result.queued(&row))
            }
            _ => Ok(result),
        }
    }

    /// The contact, which nobody changes until the message is queued.
    fn locked(&self, tx: &mut Tx, contact: &ContactCard) -> Result<ContactCard> {
        let people = &self.parts.people;
        let mut id = contact.id;
        for _ in 0..TRIES {
            let locked = people.lock(tx, self.workspace, &BTreeSet::from([id]))?;
            if let Some(contact) = locked.into_iter().next() {
                return Ok(contact);
            }
            // While this transaction waited for it, the contact was deleted, or merged into another.
            id = people.find(tx, self.workspace, &id.into())?.id;
        }
        Err(Error::not_found("contact"))
    }

    fn prepare(
        &self,
        tx: &mut Tx,
        channel: &ChannelRow,
        contact: Option<&ContactCard>,
        conversation: Option<&Conversation>,
        what: Content,
        checks: &mut Checks,
    ) -> Result<(FreeMessage, Timestamp)> {
        let now = tx.now();
        match what {
            Content::Free(free) => {
                let window = expect_window(tx, channel, conversation);
                let end = checks.note("window_open", window);
                Ok((*free, end.unwrap_or(now)))
            }
            Content::Template(FilledTemplate { template: filled, media, namespace }) => {
                let namespace = namespace.as_deref();
                let template = templates::named(tx, channel.id, namespace, &filled.name, &filled.language)?;
                checks.note("template_approved", templates::expect_approved(&template));
                if let Some(contact) = contact {
                    checks.note("recipient_opted_in", expect_opted_in(contact, template.category));
                }
                let components = template.components()?;
                files::held(tx, channel.workspace_id, media.as_slice())?;
                let attachment = self.parts.header_file(tx, channel.workspace_id, media, "media")?;
                let resolved =
                    components.expect_media(attachment.is_some()).and_then(|()| components.resolve(&filled));
                let shown = checks.note("params_match", resolved).unwrap_or_default();
                let filled = SentTemplate { namespace: template.namespace, ..filled };
                let free = FreeMessage {
                    message_type: MessageType::Template,
                    content: shown.body.clone(),
                    detail: Detail { template: Some(filled), ..Detail::default() },
                    attachment,
                    shown,
                    reply_to: None,
                };
                Ok((free, now.plus_seconds(TEMPLATE_PATIENCE)))
            }
        }
    }

    fn queue(
        &self,
        tx: &mut Tx,
        channel: &ChannelRow,
        contact: &ContactCard,
        draft: FreeMessage,
        expires_at: Timestamp,
    ) -> Result<MessageRow> {
        let conversation = Conversation::of(tx, channel.workspace_id, channel.id, contact.id)?;
        if let Some(id) = draft.reply_to {
            messages::expect_in(tx, conversation.id, id).map_err(|error| error.param("reply_to"))?;
        }
        if let Some(id) = self.attempt.retry_of {
            let row = retry::again(tx, &*self.parts.broadcasts, &conversation, id, &draft, expires_at)?;
            self.parts.notifier.notify_of_outbox(tx, conversation.channel_id);
            return Ok(row);
        }
        let out = Outgoing { chain: tx.chain().cloned(), ..self.outgoing(draft, expires_at) };
        let row = messages::enqueue(tx, &conversation, out)?;
        self.parts.notifier.notify_of_outbox(tx, conversation.channel_id);
        Ok(row)
    }

    fn outgoing(&self, draft: FreeMessage, expires_at: Timestamp) -> Outgoing {
        let detail = draft.stored_detail();
        Outgoing {
            message_type: draft.message_type,
            content: draft.content,
            detail,
            sender: self.sender.clone(),
            reply_to: draft.reply_to,
            client_key: self.once.clone(),
            run_id: self.run.clone(),
            broadcast_id: None,
            attachment: draft.attachment,
            chain: None,
            priority: Priority::Live,
            expires_at,
        }
    }
}
