//! Handing messages to the network: they are claimed, sent at the same time, and settled as the answers come.

use super::{Worker, lease, settle};
use crate::channels::ChannelRow;
use crate::messages::{Conversation, Detail, MessageError, MessageRow, MessageStatus, MessageType};
use crate::schema::{conversations, message_attachments as attachments, message_outbox as outbox, messages};
use crate::sends::reach;
use crate::templates;
use crate::worker::rates::Rates;
use crate::worker::send::{Claimed, content};
use ::files::FileRow;
use chatnet::{OutboundMessage, RefusalCode, TemplateCategory};
use diesel::prelude::*;
use futures::StreamExt;
use model::{ConversationId, FileId, JsonText, MessageId, Result, Timestamp};
use operation::ports::{ContactCard, People};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::Tx;

/// The most messages that are claimed together.
const MOST: usize = 200;
/// The most that are being sent at once.
const AT_ONCE: usize = 64;
/// The most answers that are settled in one transaction.
const SETTLED_TOGETHER: usize = 64;

impl Worker {
    /// Sends what is due, as far as the rates allow. Says whether anything was.
    pub(super) async fn outbox(&self) -> Result<bool> {
        let (channel, epoch) = (self.channel.id, self.lease.epoch);
        let (people, rates) = (self.parts.people.clone(), self.rates.clone());
        let claim = move |tx: &mut Tx| {
            let Some(channel) = lease::held_by(tx, channel, epoch)? else {
                return Ok((None, Vec::new(), false));
            };
            let (claimed, settled) = claim(tx, &channel, &people, &rates)?;
            Ok((Some(channel), claimed, settled))
        };
        let (channel, claimed, settled) = self.parts.db.write(claim).await?;
        let Some(channel) = channel.filter(|_| !claimed.is_empty()) else { return Ok(settled) };
        let account = channel.account(&self.parts.seal)?;
        let sending = futures::stream::iter(claimed).map(|message| self.hand_over(&account, message));
        let mut answers = sending.buffer_unordered(AT_ONCE).ready_chunks(SETTLED_TOGETHER);
        while let Some(chunk) = answers.next().await {
            if chunk.iter().any(|(_, outcome)| settle::is_too_fast(outcome)) {
                self.rates().drain(self.parts.db.now());
            }
            let (people, channel, chunk) = (self.parts.people.clone(), channel.clone(), Arc::new(chunk));
            self.parts.db.write(move |tx| settle::settle(tx, &channel, &people, &chunk)).await?;
        }
        Ok(true)
    }

    fn rates(&self) -> std::sync::MutexGuard<'_, Rates> {
        self.rates.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The messages that are first in their conversations, as many as the rates allow.
fn due(
    tx: &mut Tx,
    channel: &ChannelRow,
    rates: &Mutex<Rates>,
) -> Result<Vec<(MessageId, ConversationId, Timestamp)>> {
    let now = tx.now();
    let mut rates = rates.lock().unwrap_or_else(PoisonError::into_inner);
    let mut chosen = Vec::new();
    for priority in [0_i64, 1] {
        let room = rates.available(now, priority == 0).min(MOST.saturating_sub(chosen.len()));
        if room == 0 {
            continue;
        }
        let earlier = diesel::alias!(outbox as earlier);
        let is_first = diesel::dsl::not(diesel::dsl::exists(
            earlier
                .filter(earlier.field(outbox::conversation_id).eq(outbox::conversation_id))
                .filter(earlier.field(outbox::message_id).lt(outbox::message_id)),
        ));
        let found: Vec<(MessageId, ConversationId, Timestamp)> = outbox::table
            .filter(outbox::channel_id.eq(channel.id))
            .filter(outbox::priority.eq(priority))
            .filter(outbox::due_at.le(now))
            .filter(outbox::claimed_epoch.is_null())
            .filter(is_first)
            .order((outbox::due_at, outbox::message_id))
            .limit(i64::try_from(room).unwrap_or(i64::MAX))
            .select((outbox::message_id, outbox::conversation_id, outbox::expires_at))
            .load(tx.connection())?;
        chosen.extend(found.into_iter().filter(|(_, conversation, _)| rates.take(*conversation, now)));
    }
    Ok(chosen)
}

/// Claims messages. Those that may no longer be sent are settled at once; says whether there were any.
fn claim(
    tx: &mut Tx,
    channel: &ChannelRow,
    people: &People,
    rates: &Mutex<Rates>,
) -> Result<(Vec<Claimed>, bool)> {
    let due = due(tx, channel, rates)?;
    if due.is_empty() {
        return Ok((Vec::new(), false));
    }
    let ids: Vec<MessageId> = due.iter().map(|(id, ..)| *id).collect();
    let expiry: HashMap<MessageId, Timestamp> = due.iter().map(|(id, _, at)| (*id, *at)).collect();
    let rows: Vec<MessageRow> = messages::table
        .filter(messages::id.eq_any(&ids))
        .select(MessageRow::as_select())
        .load(tx.connection())?;
    let around = Around::read(tx, channel, people, &rows)?;
    let (mut claimed, mut settled) = (Vec::new(), false);
    for row in rows {
        let expires_at = expiry.get(&row.id).copied();
        match around.ready(tx, channel, &row, expires_at)? {
            Ok(message) => claimed.push(message),
            Err(error) => {
                settle::fail(tx, channel, people, row.id, error)?;
                settled = true;
            }
        }
    }
    let ids: Vec<MessageId> = claimed.iter().map(|claimed| claimed.id).collect();
    diesel::update(outbox::table.filter(outbox::message_id.eq_any(&ids)))
        .set((outbox::claimed_epoch.eq(channel.lease_epoch), outbox::attempts.eq(outbox::attempts + 1)))
        .execute(tx.connection())?;
    diesel::update(messages::table.filter(messages::id.eq_any(&ids)))
        .set((
            messages::status.eq(MessageStatus::Sending),
            messages::status_rank.eq(MessageStatus::Sending.rank()),
        ))
        .execute(tx.connection())?;
    Ok((claimed, settled))
}

/// What belongs to messages that are claimed together.
struct Around {
    contacts: HashMap<model::ContactId, ContactCard>,
    conversations: HashMap<ConversationId, Conversation>,
    files: HashMap<MessageId, (chatnet::MediaKind, FileRow)>,
    replied: HashMap<MessageId, String>,
}

impl Around {
    fn read(tx: &mut Tx, channel: &ChannelRow, people: &People, rows: &[MessageRow]) -> Result<Self> {
        let contacts: Vec<_> = rows.iter().map(|row| row.contact_id).collect();
        let contacts = people.cards(tx, channel.workspace_id, &contacts)?;
        let of: Vec<ConversationId> = rows.iter().map(|row| row.conversation_id).collect();
        let found: Vec<Conversation> = conversations::table
            .filter(conversations::id.eq_any(of))
            .select(Conversation::as_select())
            .load(tx.connection())?;
        let ids: Vec<MessageId> = rows.iter().map(|row| row.id).collect();
        let attached: Vec<(MessageId, chatnet::MediaKind, Option<FileId>)> = attachments::table
            .filter(attachments::message_id.eq_any(ids))
            .select((attachments::message_id, attachments::media_type, attachments::file_id))
            .load(tx.connection())?;
        let file_ids: Vec<FileId> = attached.iter().filter_map(|(.., file)| *file).collect();
        let files = ::files::among(tx, channel.workspace_id, &file_ids)?;
        let files: HashMap<FileId, FileRow> = files.into_iter().map(|row| (row.id, row)).collect();
        let files = attached.into_iter().filter_map(|(message, kind, file)| {
            let row = files.get(&file?)?.clone();
            Some((message, (kind, row)))
        });
        let replied: Vec<MessageId> = rows.iter().filter_map(|row| row.reply_to_id).collect();
        let replied: Vec<(MessageId, Option<String>)> = messages::table
            .filter(messages::id.eq_any(replied))
            .select((messages::id, messages::provider_message_id))
            .load(tx.connection())?;
        Ok(Self {
            contacts: contacts.into_iter().map(|card| (card.id, card)).collect(),
            conversations: found.into_iter().map(|row| (row.id, row)).collect(),
            files: files.collect(),
            replied: replied.into_iter().filter_map(|(id, provider)| Some((id, provider?))).collect(),
        })
    }

    /// A message for the network, or why it may no longer be sent.
    fn ready(
        &self,
        tx: &mut Tx,
        channel: &ChannelRow,
        row: &MessageRow,
        expires_at: Option<Timestamp>,
    ) -> Result<Result<Claimed, MessageError>> {
        let now = tx.now();
        let refuse = |code, message: &str| Ok(Err(refusal(code, message)));
        if !channel.status.can_send() {
            return refuse(RefusalCode::ChannelDisconnected, "The channel is not connected.");
        }
        let Some(contact) = self.contacts.get(&row.contact_id) else {
            return refuse(RefusalCode::Undeliverable, "The contact was deleted.");
        };
        if contact.is_blocked {
            return refuse(RefusalCode::ContactBlocked, "The contact is blocked.");
        }
        let Some(to) = reach(contact) else {
            return refuse(RefusalCode::Undeliverable, "The contact has no address on the network.");
        };
        let detail: Detail = row.detail.as_ref().map(JsonText::parse).transpose()?.unwrap_or_default();
        let is_template = row.message_type == MessageType::Template;
        let is_open = self.conversations.get(&row.conversation_id).is_some_and(|one| one.is_open_at(now));
        if !is_template && !is_open {
            return refuse(
                RefusalCode::WindowClosed,
                "The 24-hour window closed before the message was sent.",
            );
        }
        if expires_at.is_some_and(|end| end <= now) {
            return refuse(RefusalCode::Expired, "The message waited too long to be sent.");
        }
        let mut components = None;
        if let Some(filled) = &detail.template {
            let named = templates::named(tx, channel.id, None, &filled.name, &filled.language);
            let Ok(template) = named else {
                return refuse(RefusalCode::TemplateNotFound, "The template was deleted.");
            };
            if templates::expect_approved(&template).is_err() {
                return refuse(RefusalCode::TemplateNotApproved, "The template is no longer approved.");
            }
            if template.category == TemplateCategory::Marketing && contact.is_opted_out {
                return refuse(RefusalCode::RecipientOptedOut, "The contact wants no marketing messages.");
            }
            components = Some(template.components()?);
        }
        let file = self.files.get(&row.id).cloned();
        let provider_id = |id: &MessageId| self.replied.get(id).cloned();
        let Some(content) = content(row, &detail, components.as_ref(), &provider_id) else {
            return refuse(RefusalCode::InvalidMessage, "The message has no content that can be sent.");
        };
        let is_reaction = row.message_type == MessageType::Reaction;
        let reply_to = row.reply_to_id.as_ref().filter(|_| !is_reaction).and_then(provider_id);
        Ok(Ok(Claimed { id: row.id, message: OutboundMessage { to, reply_to, content }, file }))
    }
}

/// Why a message is not sent.
pub(super) fn refusal(code: RefusalCode, message: &str) -> MessageError {
    MessageError { code, message: message.to_owned(), provider_code: None, retryable: false }
}
