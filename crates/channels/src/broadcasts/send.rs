//! Sending: pending recipients get messages, as many at a time as the rate allows.

use super::check::Ready;
use super::clock::Clock;
use super::events::publish;
use super::model::{
    BroadcastPauseReason as Reason, BroadcastRecipientState as State, BroadcastSkipReason as Skip,
    BroadcastStatus as Status,
};
use super::prepare::refusal;
use super::row::{BroadcastRow, RecipientRow, locked};
use super::run::{Next, enqueue, pause, reason_of};
use crate::channels::{self, ChannelRow};
use crate::messages::{
    Conversation, Detail, MessageError, MessageSenderType, MessageType, Outgoing, Priority, Sender,
    enqueue as enqueue_message,
};
use crate::schema::broadcast_recipients;
use chatnet::{RefusalCode, TemplateCategory};
use diesel::dsl::{count_star, min};
use diesel::prelude::*;
use model::{BroadcastId, BroadcastRecipientId, Cause, ContactId, JsonText, Result, Timestamp, WorkspaceId};
use operation::ports::{ContactCard, People};
use std::collections::{HashMap, HashSet};
use store::{Read, Tx};

/// The share of a channel that a broadcast takes: the rest is for answers to people.
const SHARE: f64 = 0.8;
/// The most messages of one transaction.
const PIECE: i64 = 250;
/// So many messages can wait in the outbox, or as many as are sent in two seconds, if those are more.
const LEAST_WAITING: i64 = 20;
/// How long a message may wait to be sent.
const EXPIRES_SECONDS: i64 = 4 * 3_600;
/// How often it is looked whether the last messages were sent.
const LOOK_SECONDS: i64 = 2;
/// Failures are counted among so many messages.
const JUDGED: i64 = 200;
/// With more failures than this among them, the broadcast pauses.
const MOST_FAILED: usize = 20;

/// The messages per second of a channel without a limit, such as a simulated one: more than it can send.
const UNLIMITED: f64 = 5_000.0;

/// How many messages per second a broadcast may send.
pub(super) fn messages_per_second(row: &BroadcastRow, channel: &ChannelRow) -> f64 {
    let number = |value: i64| f64::from(i32::try_from(value.max(1)).unwrap_or(i32::MAX));
    let channel = match channel.messages_per_second {
        0 => UNLIMITED,
        limit => number(limit) * SHARE,
    };
    row.rate_per_minute.map_or(channel, |rate| channel.min(number(rate) / 60.0))
}

/// Writes the next messages.
///
/// # Errors
/// When the database fails.
pub(super) fn piece(tx: &mut Tx, people: &People, workspace: WorkspaceId, id: BroadcastId) -> Result<Next> {
    let mut row = locked(tx, workspace, id)?;
    if row.status != Status::Sending {
        return Ok(Next::Piece);
    }
    let ready = match Ready::of(tx, &row) {
        Ok(ready) => ready,
        Err(error) => {
            pause(tx, &mut row, reason_of(error)?)?;
            return Ok(Next::Over);
        }
    };
    if let Some(reason) = obstacle(tx, &row, &ready)? {
        pause(tx, &mut row, reason)?;
        return Ok(Next::Over);
    }
    let now = tx.now();
    let clock = Clock::of(row.schedule()?.as_ref());
    let waiting = count_claimed(tx, id)?;
    let due = due(tx, id, now, PIECE)?;
    if due.is_empty() {
        return finish(tx, &mut row, waiting);
    }
    if let Some(end) = clock.quiet_until(None, now).filter(|_| !clock.is_local()) {
        enqueue(tx, &row, end)?;
        return Ok(Next::Over);
    }
    let mut pace = Pace::new(&row, &ready.channel, waiting, now);
    if let Some(at) = pace.wait(now) {
        enqueue(tx, &row, at)?;
        return Ok(Next::Over);
    }
    let due = due.get(..pace.room()).unwrap_or(&due);
    let sent = write(tx, people, &row, &ready, &clock, due)?;
    pace.take(sent);
    row.next_send_at = Some(pace.next);
    row.store_progress(tx)?;
    Ok(Next::Piece)
}

/// When further messages may be written.
struct Pace {
    per_second: f64,
    /// When the next message may be written.
    next: Timestamp,
    /// How many may be written now.
    room: i64,
    is_full: bool,
}

impl Pace {
    #[expect(clippy::cast_possible_truncation, reason = "messages of two seconds")]
    fn new(row: &BroadcastRow, channel: &ChannelRow, waiting: i64, now: Timestamp) -> Self {
        let per_second = messages_per_second(row, channel);
        // What was not used in the last second is gone, so that no more than the messages of a second go at once.
        let unused = (1_000.0 - 1_000.0 / per_second).max(0.0).ceil() as i64;
        let earliest = Timestamp::from_millis(now.millis() - unused);
        let next = row.next_send_at.unwrap_or(earliest).max(earliest);
        let passed = f64::from(i32::try_from(now.millis() - next.millis()).unwrap_or(i32::MAX)) / 1_000.0;
        let allowed = if next > now { 0 } else { (passed * per_second).floor() as i64 + 1 };
        let most_waiting = LEAST_WAITING.max((2.0 * per_second).ceil() as i64);
        let free = (most_waiting - waiting).max(0);
        Self { per_second, next, room: allowed.min(free), is_full: free == 0 }
    }

    /// Until when nothing may be written.
    fn wait(&self, now: Timestamp) -> Option<Timestamp> {
        (self.room == 0).then(|| if self.is_full { now.plus_seconds(1) } else { self.next })
    }

    fn room(&self) -> usize {
        usize::try_from(self.room).unwrap_or(0)
    }

    #[expect(clippy::cast_possible_truncation, reason = "milliseconds of a piece")]
    fn take(&mut self, sent: usize) {
        let sent = f64::from(u32::try_from(sent).unwrap_or(u32::MAX));
        let millis = (1_000.0 * sent / self.per_second).ceil() as i64;
        self.next = Timestamp::from_millis(self.next.millis() + millis);
    }
}

fn count_claimed(read: &mut Read, id: BroadcastId) -> Result<i64> {
    Ok(broadcast_recipients::table
        .filter(broadcast_recipients::broadcast_id.eq(id))
        .filter(broadcast_recipients::state.eq(State::Claimed))
        .select(count_star())
        .get_result(read.connection())?)
}

fn due(read: &mut Read, id: BroadcastId, now: Timestamp, most: i64) -> Result<Vec<RecipientRow>> {
    Ok(broadcast_recipients::table
        .filter(broadcast_recipients::broadcast_id.eq(id))
        .filter(broadcast_recipients::state.eq(State::Pending))
        .filter(broadcast_recipients::not_before.le(now))
        .order((broadcast_recipients::not_before, broadcast_recipients::id))
        .limit(most)
        .select(RecipientRow::as_select())
        .load(read.connection())?)
}

/// Completes a broadcast of which nothing is pending or on its way; or asks for a run when there may be something to do.
fn finish(tx: &mut Tx, row: &mut BroadcastRow, waiting: i64) -> Result<Next> {
    let now = tx.now();
    let next: Option<Timestamp> = broadcast_recipients::table
        .filter(broadcast_recipients::broadcast_id.eq(row.id))
        .filter(broadcast_recipients::state.eq(State::Pending))
        .select(min(broadcast_recipients::not_before))
        .get_result(tx.connection())?;
    if let Some(at) = next {
        enqueue(tx, row, at)?;
    } else if waiting > 0 {
        enqueue(tx, row, now.plus_seconds(LOOK_SECONDS))?;
    } else {
        (row.status, row.completed_at) = (Status::Completed, Some(now));
        row.store(tx)?;
        publish(tx, &Cause::system("broadcasts"), row)?;
    }
    Ok(Next::Over)
}

/// Why the broadcast must pause.
fn obstacle(read: &mut Read, row: &BroadcastRow, ready: &Ready) -> Result<Option<Reason>> {
    if let Some(reason) = ready.obstacle() {
        return Ok(Some(reason));
    }
    if auth::workspaces::by_id(read, row.workspace_id)?.blocked_reason.is_some() {
        return Ok(Some(Reason::WorkspaceBlocked));
    }
    let since = row.judged_from.unwrap_or(row.created_at);
    let last: Vec<(State, Option<JsonText>)> = broadcast_recipients::table
        .filter(broadcast_recipients::broadcast_id.eq(row.id))
        .filter(broadcast_recipients::settled_at.ge(since))
        .order(broadcast_recipients::settled_at.desc())
        .limit(JUDGED)
        .select((broadcast_recipients::state, broadcast_recipients::error))
        .load(read.connection())?;
    let failed: Vec<MessageError> = last
        .iter()
        .filter(|(state, _)| *state == State::Failed)
        .filter_map(|(_, error)| error.as_ref()?.parse().ok())
        .collect();
    if failed.iter().any(|error| error.code == RefusalCode::MessagingLimit) {
        return Ok(Some(Reason::MessagingLimit));
    }
    Ok((failed.len() > MOST_FAILED).then_some(Reason::FailureRate))
}

/// What becomes of a recipient whose turn has come.
enum Turn<'a> {
    Send(&'a ContactCard),
    Skip(Skip),
    Wait(Timestamp),
}

/// Writes messages for recipients whose turn has come, and gives how many. Whether a contact may be written to is looked at
/// again.
fn write(
    tx: &mut Tx,
    people: &People,
    row: &BroadcastRow,
    ready: &Ready,
    clock: &Clock,
    due: &[RecipientRow],
) -> Result<usize> {
    let now = tx.now();
    channels::share(tx, ready.channel.id)?;
    let due = held(tx, people, row, due)?;
    let ids: Vec<ContactId> = due.iter().map(|recipient| recipient.contact_id).collect();
    let cards = people.cards(tx, row.workspace_id, &ids)?;
    let cards: HashMap<ContactId, ContactCard> = cards.into_iter().map(|card| (card.id, card)).collect();
    let is_marketing = ready.template.category == TemplateCategory::Marketing;
    let mut sent = 0;
    for recipient in due {
        let turn = match cards.get(&recipient.contact_id) {
            None => Turn::Skip(Skip::NoAddress),
            Some(card) => match refusal(card, is_marketing) {
                Some(skip) => Turn::Skip(skip),
                None => match clock.quiet_until(card.text("$timezone"), now) {
                    Some(end) => Turn::Wait(end),
                    None => Turn::Send(card),
                },
            },
        };
        let of = broadcast_recipients::table.find(recipient.id);
        let at = broadcast_recipients::updated_at.eq(now);
        match turn {
            Turn::Send(card) => {
                let message = message(tx, row, ready, &recipient, card.id)?;
                let claimed = (
                    broadcast_recipients::state.eq(State::Claimed),
                    broadcast_recipients::message_id.eq(message),
                );
                diesel::update(of).set((claimed, at)).execute(tx.connection())?;
                sent += 1;
            }
            Turn::Skip(reason) => {
                let skipped = (
                    broadcast_recipients::state.eq(State::Skipped),
                    broadcast_recipients::skip_reason.eq(reason),
                );
                diesel::update(of).set((skipped, at)).execute(tx.connection())?;
            }
            Turn::Wait(until) => {
                diesel::update(of)
                    .set((broadcast_recipients::not_before.eq(until), at))
                    .execute(tx.connection())?;
            }
        }
    }
    Ok(sent)
}

/// Those recipients whose contacts are not being merged or changed at this moment, and are not until the transaction ends,
/// in the order in which all who lock several conversations do so. The others have their turn in the next piece.
fn held(tx: &mut Tx, people: &People, row: &BroadcastRow, due: &[RecipientRow]) -> Result<Vec<RecipientRow>> {
    let contacts: Vec<ContactId> = due.iter().map(|recipient| recipient.contact_id).collect();
    let busy = people.hold(tx, row.workspace_id, &contacts)?;
    let held: HashSet<ContactId> = contacts.into_iter().filter(|contact| !busy.contains(contact)).collect();
    // A merge that has just ended may have given them to others.
    let ids: Vec<BroadcastRecipientId> = due.iter().map(|recipient| recipient.id).collect();
    let mut due: Vec<RecipientRow> = broadcast_recipients::table
        .filter(broadcast_recipients::id.eq_any(ids))
        .filter(broadcast_recipients::state.eq(State::Pending))
        .order(broadcast_recipients::contact_id)
        .select(RecipientRow::as_select())
        .load(tx.connection())?;
    due.retain(|recipient| held.contains(&recipient.contact_id));
    Ok(due)
}

fn message(
    tx: &mut Tx,
    row: &BroadcastRow,
    ready: &Ready,
    recipient: &RecipientRow,
    contact: ContactId,
) -> Result<model::MessageId> {
    let conversation = Conversation::of(tx, row.workspace_id, ready.channel.id, contact)?;
    let params = recipient.params()?;
    let content = ready.template.filled(&params.body);
    let template = Some(params.sent(&ready.wanted, &ready.template.namespace));
    let expires_at = tx.now().plus_seconds(EXPIRES_SECONDS);
    let out = Outgoing {
        message_type: MessageType::Template,
        content,
        detail: Some(JsonText::of(&Detail { template, ..Detail::default() })),
        sender: Sender { kind: MessageSenderType::Broadcast, id: Some(row.id.to_string()) },
        reply_to: None,
        client_key: Some(format!("bcast:{}:{contact}:{}", row.id, recipient.attempt)),
        run_id: None,
        broadcast_id: Some(row.id),
        attachment: None,
        priority: Priority::Broadcast,
        expires_at,
    };
    Ok(enqueue_message(tx, &conversation, out)?.id)
}
