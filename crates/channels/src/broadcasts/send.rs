//! Sending: pending recipients get messages, as many at a time as the rate allows.

use super::check::Ready;
use super::clock::Clock;
use super::contact::refusal;
use super::counts;
use super::events::publish;
use super::model::{
    BroadcastPauseReason as Reason, BroadcastRecipientState as State, BroadcastSkipReason as Skip,
    BroadcastStatus as Status,
};
use super::pace::Pace;
use super::progress::{ACTOR, Due, LOOK_SECONDS, Next, count_claimed, enqueue, pause, reason_of};
use super::row::{BroadcastRow, RecipientRow, locked};
use super::withdraw::cancel_messages;
use crate::channels;
use crate::messages::{
    Conversation, Detail, MessageError, MessageSenderType, MessageType, Outgoing, Priority, Sender,
    enqueue as enqueue_message, requeue,
};
use crate::schema::broadcast_recipients;
use crate::sends::SendParts;
use crate::templates;
use chatnet::RefusalCode;
use diesel::dsl::min;
use diesel::prelude::*;
use model::{BroadcastId, BroadcastRecipientId, Cause, ContactId, JsonText, MessageId, Result, Timestamp};
use operation::ports::ContactCard;
use std::collections::{HashMap, HashSet};
use store::{Read, Tx};

/// The most messages of one transaction.
const PIECE: i64 = 250;
/// How long a message may wait to be sent.
const EXPIRES_SECONDS: i64 = 4 * 3_600;
/// Failures are counted among so many messages.
const JUDGED: i64 = 200;
/// With more failures than this among them, the broadcast pauses.
const MOST_FAILED: usize = 20;

/// Writes the next messages.
///
/// # Errors
/// When the database fails.
pub(super) fn piece(tx: &mut Tx, parts: &SendParts, due: Due) -> Result<Next> {
    let mut row = locked(tx, due.workspace, due.broadcast)?;
    if row.status != Status::Sending {
        return Ok(Next::Piece);
    }
    let (reason, ready) = match Ready::of(tx, parts, &row) {
        Ok(ready) => (obstacle(tx, &row, &ready)?, Some(ready)),
        Err(error) => (Some(reason_of(error)?), None),
    };
    if let Some(reason) = reason {
        pause(tx, &mut row, &Cause::system(ACTOR), reason)?;
        return Ok(Next::Over);
    }
    let Some(ready) = ready else { return Ok(Next::Over) };
    let now = tx.now();
    let clock = Clock::of(row.schedule()?.as_ref());
    let waiting = count_claimed(tx, row.id)?;
    let due = next(tx, row.id, now, PIECE)?;
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
    let sent = Writing { parts, row: &row, ready: &ready, clock }.write(tx, due)?;
    if sent > 0 {
        parts.wakes.send_after(tx, ready.channel.id);
    }
    counts::fold(tx, row.id)?;
    pace.take(sent);
    row.next_send_at = Some(pace.next);
    row.store_progress(tx)?;
    Ok(Next::Piece)
}

fn next(read: &mut Read, id: BroadcastId, now: Timestamp, most: i64) -> Result<Vec<RecipientRow>> {
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
        publish(tx, &Cause::system(ACTOR), row)?;
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

/// With what messages are written.
struct Writing<'a> {
    parts: &'a SendParts,
    row: &'a BroadcastRow,
    ready: &'a Ready,
    clock: Clock,
}

impl Writing<'_> {
    /// Writes messages for recipients whose turn has come, and gives how many. Whether a contact may be written to is looked
    /// at again.
    fn write(&self, tx: &mut Tx, due: &[RecipientRow]) -> Result<usize> {
        let now = tx.now();
        channels::share(tx, self.ready.channel.id)?;
        let due = self.held(tx, due)?;
        let ids: Vec<ContactId> = due.iter().map(|recipient| recipient.contact_id).collect();
        let cards = self.parts.people.cards(tx, self.row.workspace_id, &ids)?;
        let cards: HashMap<ContactId, ContactCard> = cards.into_iter().map(|card| (card.id, card)).collect();
        let mut sent = 0;
        for recipient in due {
            let of = broadcast_recipients::table.find(recipient.id);
            let at = broadcast_recipients::updated_at.eq(now);
            match self.turn(cards.get(&recipient.contact_id), now) {
                Turn::Send(card) => sent += usize::from(self.send(tx, &recipient, card)?),
                Turn::Skip(reason) => {
                    let skipped = (
                        broadcast_recipients::state.eq(State::Skipped),
                        broadcast_recipients::skip_reason.eq(reason),
                    );
                    diesel::update(of).set((skipped, at)).execute(tx.connection())?;
                    cancel_messages(tx, recipient.message_id.as_slice())?;
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

    /// Those recipients whose contacts are not being merged or changed at this moment, and are not until the transaction
    /// ends, in the order in which all who lock several conversations do so. The others have their turn in the next piece.
    fn held(&self, tx: &mut Tx, due: &[RecipientRow]) -> Result<Vec<RecipientRow>> {
        let contacts: Vec<ContactId> = due.iter().map(|recipient| recipient.contact_id).collect();
        let busy = self.parts.people.hold(tx, self.row.workspace_id, &contacts)?;
        let held: HashSet<ContactId> =
            contacts.into_iter().filter(|contact| !busy.contains(contact)).collect();
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

    fn turn<'b>(&self, card: Option<&'b ContactCard>, now: Timestamp) -> Turn<'b> {
        let Some(card) = card else { return Turn::Skip(Skip::NoAddress) };
        if let Some(reason) = refusal(card, self.ready.template.category) {
            return Turn::Skip(reason);
        }
        let quiet_until = self.clock.quiet_until(card.text("$timezone"), now);
        quiet_until.map_or(Turn::Send(card), Turn::Wait)
    }

    /// Puts a recipient's message into the outbox: the one that was taken back, or a new one. Says whether there is one.
    fn send(&self, tx: &mut Tx, recipient: &RecipientRow, card: &ContactCard) -> Result<bool> {
        let expires_at = tx.now().plus_seconds(EXPIRES_SECONDS);
        let message = match recipient.message_id {
            Some(id) => Ok(requeue(tx, id, Priority::Broadcast, expires_at)?.id),
            None => self.message(tx, recipient, card.id, expires_at)?,
        };
        let now = tx.now();
        let of = broadcast_recipients::table.find(recipient.id);
        let at = broadcast_recipients::updated_at.eq(now);
        match &message {
            Ok(id) => {
                let claimed =
                    (broadcast_recipients::state.eq(State::Claimed), broadcast_recipients::message_id.eq(id));
                diesel::update(of).set((claimed, at)).execute(tx.connection())?;
            }
            Err(error) => {
                let failed = (
                    broadcast_recipients::state.eq(State::Failed),
                    broadcast_recipients::error.eq(JsonText::of(error)),
                    broadcast_recipients::settled_at.eq(now),
                );
                diesel::update(of).set((failed, at)).execute(tx.connection())?;
            }
        }
        Ok(message.is_ok())
    }

    /// A new message, or why the template does not take the recipient's values.
    fn message(
        &self,
        tx: &mut Tx,
        recipient: &RecipientRow,
        contact: ContactId,
        expires_at: Timestamp,
    ) -> Result<Result<MessageId, MessageError>> {
        let (row, ready) = (self.row, self.ready);
        let template = recipient.params()?.sent(&ready.wanted, &ready.template.namespace);
        let content = match templates::resolve(&ready.components, &template) {
            Ok(resolved) => resolved.body,
            Err(error) => {
                return Ok(Err(MessageError {
                    code: RefusalCode::TemplateParamsMismatch,
                    message: error.message().to_owned(),
                    provider_code: None,
                    retryable: false,
                }));
            }
        };
        let conversation = Conversation::of(tx, row.workspace_id, ready.channel.id, contact)?;
        let out = Outgoing {
            message_type: MessageType::Template,
            content,
            detail: Some(JsonText::of(&Detail { template: Some(template), ..Detail::default() })),
            sender: Sender { kind: MessageSenderType::Broadcast, id: Some(row.id.to_string()) },
            reply_to: None,
            client_key: Some(format!("bcast:{}:{contact}:{}", row.id, recipient.attempt)),
            run_id: None,
            broadcast_id: Some(row.id),
            attachment: ready.attachment.clone(),
            priority: Priority::Broadcast,
            expires_at,
        };
        Ok(Ok(enqueue_message(tx, &conversation, out)?.id))
    }
}
