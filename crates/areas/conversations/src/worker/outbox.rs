//! Handing messages to the network: they are claimed as there is room, sent at the same time, and settled as the answers
//! come.

use super::{LOOK, Worker, settle};
use crate::messages::{Conversation, Detail, MessageError, MessageRow, MessageStatus, MessageType};
use crate::other_areas::OtherAreas;
use crate::schema::{conversations, message_attachments as attachments, message_outbox as outbox, messages};
use crate::worker::send::{Claimed, content};
use ::files::FileRow;
use channels::ChannelRow;
use channels::reach;
use channels::templates;
use channels::work::{Rates, Work, leased};
use chatnet::{OutboundMessage, RefusalCode, SendOutcome, TemplateCategory};
use diesel::prelude::*;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use model::{ConversationId, FileId, JsonText, MessageId, Result, Timestamp};
use ports::{ContactCard, People};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use store::Tx;
use tokio_util::sync::CancellationToken;

/// The most that are being sent at once.
const AT_ONCE: usize = 128;
/// Further ones are claimed when there is room for so many.
const ROOM: usize = 64;
/// The most answers that are settled in one transaction.
const SETTLED_TOGETHER: usize = 64;
/// How long the outbox rests when the database fails.
const REST: Duration = Duration::from_millis(500);

type Answer = (MessageId, SendOutcome);

/// Messages that are with the network, and its answers that are not written down yet.
#[derive(Default)]
pub(super) struct Sending<'a> {
    /// The channel as it was when the last messages were claimed.
    channel: Option<ChannelRow>,
    under_way: FuturesUnordered<BoxFuture<'a, Answer>>,
    answers: Vec<Answer>,
}

impl Sending<'_> {
    fn has_room(&self) -> bool {
        self.under_way.len() + ROOM <= AT_ONCE
    }

    fn is_empty(&self) -> bool {
        self.under_way.is_empty() && self.answers.is_empty()
    }

    /// Waits for an answer, and takes those that are there with it.
    async fn answer(&mut self) {
        let Some(first) = self.under_way.next().await else { return };
        self.answers.push(first);
        while self.answers.len() < SETTLED_TOGETHER
            && let Some(Some(next)) = self.under_way.next().now_or_never()
        {
            self.answers.push(next);
        }
    }

    /// Does something while the messages go on to be sent.
    async fn during<T>(&mut self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return done,
                Some(answer) = self.under_way.next(), if !self.under_way.is_empty() => self.answers.push(answer),
            }
        }
    }
}

impl Worker {
    /// Sends what is due, and goes on until it is to end and what is under way is settled. A message that the network does
    /// not answer keeps those of its own contact waiting, and no others.
    pub(super) async fn send_all(&self, done: &CancellationToken) {
        let (mut sending, mut looks) = (Sending::default(), true);
        loop {
            if looks && sending.has_room() && !done.is_cancelled() {
                looks = self.log_failure(self.claim_into(&mut sending).await);
            }
            if !sending.answers.is_empty() {
                self.settle_or_keep(&mut sending).await;
                // Behind a message that is settled there may be another one for the contact.
                looks = looks || self.has_more(&mut sending).await;
                continue;
            }
            if done.is_cancelled() && sending.is_empty() {
                return;
            }
            if looks && sending.has_room() && !done.is_cancelled() {
                continue;
            }
            let is_under_way = !sending.under_way.is_empty();
            tokio::select! {
                () = sending.answer(), if is_under_way => {}
                () = done.cancelled(), if !done.is_cancelled() => {}
                () = self.signals.notified(Work::Outbox) => looks = true,
                () = tokio::time::sleep(LOOK) => looks = self.has_more(&mut sending).await,
            }
        }
    }

    /// Sends what is due and settles it. Says whether anything was.
    pub(super) async fn outbox(&self) -> Result<bool> {
        let mut sending = Sending::default();
        let may_be_more = self.claim_into(&mut sending).await?;
        let did = may_be_more || !sending.is_empty();
        while !sending.is_empty() {
            sending.answer().await;
            let answers = std::mem::take(&mut sending.answers);
            self.settle(&mut sending, &Arc::new(answers)).await?;
        }
        Ok(did)
    }

    /// Claims messages, as far as there is room and the rates allow, and begins to send them. Says whether there may be
    /// more.
    async fn claim_into<'a>(&'a self, sending: &mut Sending<'a>) -> Result<bool> {
        let (channel, epoch) = (self.channel.id, self.lease.epoch);
        let (areas, rates) = (self.parts.areas.clone(), self.rates.clone());
        let most = AT_ONCE.saturating_sub(sending.under_way.len());
        let claim = self.parts.db.write(move |tx| {
            let Some(channel) = leased(tx, channel, epoch)? else { return Ok(None) };
            let (claimed, settled) = claim(tx, &channel, &areas, &rates, most)?;
            Ok(Some((channel, claimed, settled)))
        });
        let Some((channel, claimed, settled)) = sending.during(claim).await? else { return Ok(false) };
        let is_full = claimed.len() == most;
        if !claimed.is_empty() {
            let account = Arc::new(channel.account(&self.parts.seal)?);
            for message in claimed {
                sending.under_way.push(Box::pin(self.hand_over(account.clone(), message)));
            }
        }
        sending.channel = Some(channel);
        Ok(settled || is_full)
    }

    /// Whether there may be messages that can be claimed: a look that costs a fraction of an attempt.
    async fn has_more(&self, sending: &mut Sending<'_>) -> bool {
        let channel = self.channel.id;
        let look = self.parts.db.read(move |read| {
            let waiting = outbox::table.filter(outbox::channel_id.eq(channel));
            let due = waiting.filter(outbox::due_at.le(read.now())).filter(outbox::claimed_epoch.is_null());
            Ok(diesel::select(diesel::dsl::exists(due)).get_result::<bool>(read.connection())?)
        });
        // Where the look fails, the attempt says why.
        sending.during(look).await.unwrap_or(true)
    }

    /// Writes down what the network answered. What cannot be written down now is kept.
    async fn settle_or_keep(&self, sending: &mut Sending<'_>) {
        let mut answers = std::mem::take(&mut sending.answers);
        let later = answers.split_off(answers.len().min(SETTLED_TOGETHER));
        sending.answers = later;
        let answers = Arc::new(answers);
        if self.log_failure(self.settle(sending, &answers).await.map(|()| true)) {
            return;
        }
        // One that always fails must not keep the others.
        for answer in answers.iter() {
            let alone = Arc::new(vec![answer.clone()]);
            if !self.log_failure(self.settle(sending, &alone).await.map(|()| true)) {
                sending.answers.push(answer.clone());
            }
        }
        if !sending.answers.is_empty() {
            sending.during(tokio::time::sleep(REST)).await;
        }
    }

    async fn settle(&self, sending: &mut Sending<'_>, answers: &Arc<Vec<Answer>>) -> Result<()> {
        let Some(channel) = sending.channel.clone() else { return Ok(()) };
        if answers.iter().any(|(_, outcome)| settle::is_too_fast(outcome)) {
            self.rates().drain(self.parts.db.now());
        }
        let (areas, answers) = (self.parts.areas.clone(), answers.clone());
        let settled = self.parts.db.write(move |tx| settle::settle(tx, &channel, &areas, &answers));
        sending.during(settled).await
    }

    fn log_failure(&self, result: Result<bool>) -> bool {
        result.unwrap_or_else(|error| {
            tracing::error!(channel = %self.channel.id, what = "outbox", %error, "a round failed");
            false
        })
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
    most: usize,
) -> Result<Vec<(MessageId, ConversationId, Timestamp)>> {
    let now = tx.now();
    let mut rates = rates.lock().unwrap_or_else(PoisonError::into_inner);
    let mut chosen = Vec::new();
    for priority in [0_i64, 1] {
        let room = rates.available(now, priority == 0).min(most.saturating_sub(chosen.len()));
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
    areas: &OtherAreas,
    rates: &Mutex<Rates>,
    most: usize,
) -> Result<(Vec<Claimed>, bool)> {
    let due = due(tx, channel, rates, most)?;
    if due.is_empty() {
        return Ok((Vec::new(), false));
    }
    let ids: Vec<MessageId> = due.iter().map(|(id, ..)| *id).collect();
    let expiry: HashMap<MessageId, Timestamp> = due.iter().map(|(id, _, at)| (*id, *at)).collect();
    let rows: Vec<MessageRow> = messages::table
        .filter(messages::id.eq_any(&ids))
        .select(MessageRow::as_select())
        .load(tx.connection())?;
    let context = SendContext::read(tx, channel, &areas.people, &rows)?;
    let (mut claimed, mut settled) = (Vec::new(), false);
    for row in rows {
        let expires_at = expiry.get(&row.id).copied();
        match context.ready(tx, channel, &row, expires_at)? {
            Ok(message) => claimed.push(message),
            Err(error) => {
                settle::fail(tx, channel, areas, row.id, error)?;
                settled = true;
            }
        }
    }
    let ids: Vec<MessageId> = claimed.iter().map(|claimed| claimed.id).collect();
    // A merge may have cancelled some since they were read.
    let ids: Vec<MessageId> = diesel::update(
        messages::table
            .filter(messages::id.eq_any(&ids))
            .filter(messages::status.is_null().or(messages::status.ne(MessageStatus::Cancelled))),
    )
    .set((
        messages::status.eq(MessageStatus::Sending),
        messages::status_rank.eq(MessageStatus::Sending.rank()),
    ))
    .returning(messages::id)
    .get_results(tx.connection())?;
    claimed.retain(|claimed| ids.contains(&claimed.id));
    diesel::update(outbox::table.filter(outbox::message_id.eq_any(&ids)))
        .set((outbox::claimed_epoch.eq(channel.lease_epoch), outbox::attempts.eq(outbox::attempts + 1)))
        .execute(tx.connection())?;
    Ok((claimed, settled))
}

/// What belongs to messages that are claimed together.
struct SendContext {
    contacts: HashMap<model::ContactId, ContactCard>,
    conversations: HashMap<ConversationId, Conversation>,
    /// `None`: the file was deleted.
    files: HashMap<MessageId, Option<(chatnet::MediaKind, FileRow)>>,
    replied: HashMap<MessageId, String>,
}

impl SendContext {
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
        let files = attached.into_iter().map(|(message, kind, file)| {
            let row = file.and_then(|file| files.get(&file)).cloned();
            (message, row.map(|row| (kind, row)))
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
        let file = match self.files.get(&row.id) {
            Some(None) => return refuse(RefusalCode::MediaInvalid, "The file was deleted."),
            file => file.cloned().flatten(),
        };
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
