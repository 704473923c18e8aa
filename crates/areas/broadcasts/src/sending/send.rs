//! Sends: writes messages for pending recipients, as many as the rate allows.

use crate::checks::check::Ready;
use crate::checks::clock::Clock;
use crate::checks::contact::refusal;
use crate::model::{
    BroadcastPauseReason as Reason, BroadcastRecipientState as State, BroadcastSkipReason as Skip,
    BroadcastStatus as Status,
};
use crate::recipients::references::RecipientReferences;
use crate::rows::counts;
use crate::rows::events::publish;
use crate::rows::pace::Pace;
use crate::rows::row::{BroadcastRow, RecipientRow, locked};
use crate::sending::progress::{Due, LOOK_SECONDS, Next, count_claimed, enqueue, pause, reason_of};

use crate::schema::broadcast_recipients;
use chatnet::RefusalCode;
use conversations::messages::{
    self, Conversation, Detail, MessageError, MessageSenderType, MessageType, Outgoing, Priority, Sender,
    enqueue_all, requeue,
};
use diesel::dsl::min;
use diesel::prelude::*;
use model::{BroadcastId, BroadcastRecipientId, Code, ContactId, JsonText, MessageId, Result, Timestamp};
use ports::{ContactCard, ContactReferences as _};
use sends::SendParts;
use std::collections::{HashMap, HashSet};
use store::{Read, Rows, Tx};

/// The most messages to write in one transaction.
const PIECE: i64 = 100;
/// The time after which an unsent message expires, in seconds.
const EXPIRES_SECONDS: i64 = 4 * 3_600;
/// The number of last messages by which the failure rate is judged.
const JUDGED: i64 = 200;
/// The number of failures among them above which the broadcast pauses.
const MAX_FAILED: usize = 20;

/// Writes the next messages.
pub(crate) fn piece(tx: &mut Tx, parts: &SendParts, due: Due) -> Result<Next> {
    let mut row = locked(tx, due.workspace, due.broadcast)?;
    if row.status != Status::Sending {
        return Ok(Next::Piece);
    }
    let (reason, ready) = match Ready::of(tx, parts, &row) {
        Ok(ready) => (obstacle(tx, &row, &ready)?, Some(ready)),
        Err(error) => (Some(reason_of(error)?), None),
    };
    if let Some(reason) = reason {
        let cause = row.cause();
        pause(tx, &mut row, &cause, reason)?;
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
        parts.notifier.notify_of_outbox(tx, ready.channel.id);
    }
    counts::compact(tx, row.id)?;
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

/// Completes a broadcast if no recipient is pending or being sent to. Otherwise enqueues the next run.
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
        publish(tx, &row.cause(), row)?;
    }
    Ok(Next::Over)
}

/// Returns the reason why the broadcast has to pause.
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
    Ok((failed.len() > MAX_FAILED).then_some(Reason::FailureRate))
}

/// The decision for a recipient who is due.
enum Turn {
    Send,
    Skip(Skip),
    Wait(Timestamp),
}

/// The context for writing messages.
struct Writing<'a> {
    parts: &'a SendParts,
    row: &'a BroadcastRow,
    ready: &'a Ready,
    clock: Clock,
}

impl Writing<'_> {
    /// Writes messages for due recipients, and returns their number. Consent and blocks are checked again, because
    /// they may have changed since the preparation.
    fn write(&self, tx: &mut Tx, due: &[RecipientRow]) -> Result<usize> {
        let now = tx.now();
        channels::share(tx, self.ready.channel.id)?;
        let due = self.held(tx, due)?;
        let ids: Vec<ContactId> = due.iter().map(|recipient| recipient.contact_id).collect();
        let cards = self.parts.people.cards(tx, self.row.workspace_id, &ids)?;
        let cards: HashMap<ContactId, ContactCard> = cards.into_iter().map(|card| (card.id, card)).collect();
        if self.follow_merges(tx, ids.into_iter().filter(|contact| !cards.contains_key(contact)))? {
            return Ok(0);
        }
        let expires_at = now.plus_seconds(EXPIRES_SECONDS);
        let (mut claimed, mut new) = (Vec::new(), Vec::new());
        for recipient in due {
            let of = broadcast_recipients::table.find(recipient.id);
            let at = broadcast_recipients::updated_at.eq(now);
            match self.turn(&recipient, cards.get(&recipient.contact_id), now) {
                // The recipient's message was withdrawn before, and is queued again.
                Turn::Send if let Some(id) = recipient.message_id => {
                    claimed.push((recipient.id, requeue(tx, id, Priority::Broadcast, expires_at)?.id));
                }
                Turn::Send => match self.message(&recipient, expires_at)? {
                    Ok(out) => new.push((recipient, out)),
                    Err(error) => {
                        let failed = (
                            broadcast_recipients::state.eq(State::Failed),
                            broadcast_recipients::error.eq(JsonText::of(&error)),
                            broadcast_recipients::settled_at.eq(now),
                        );
                        diesel::update(of).set((failed, at)).execute(tx.connection())?;
                    }
                },
                Turn::Skip(reason) => {
                    let skipped = (
                        broadcast_recipients::state.eq(State::Skipped),
                        broadcast_recipients::skip_reason.eq(reason),
                    );
                    diesel::update(of).set((skipped, at)).execute(tx.connection())?;
                    messages::cancel(tx, recipient.message_id.as_slice())?;
                }
                Turn::Wait(until) => {
                    diesel::update(of)
                        .set((broadcast_recipients::not_before.eq(until), at))
                        .execute(tx.connection())?;
                }
            }
        }
        claimed.extend(self.enqueue(tx, new)?);
        set_claimed(tx, &claimed)?;
        Ok(claimed.len())
    }

    /// Writes new messages, in the order of their contacts.
    fn enqueue(
        &self,
        tx: &mut Tx,
        new: Vec<(RecipientRow, Outgoing)>,
    ) -> Result<Vec<(BroadcastRecipientId, MessageId)>> {
        let contacts: Vec<ContactId> = new.iter().map(|(recipient, _)| recipient.contact_id).collect();
        let conversations =
            Conversation::of_all(tx, self.row.workspace_id, self.ready.channel.id, &contacts)?;
        let conversations: HashMap<ContactId, Conversation> =
            conversations.into_iter().map(|one| (one.contact_id, one)).collect();
        let recipients: HashMap<ContactId, BroadcastRecipientId> =
            new.iter().map(|(recipient, _)| (recipient.contact_id, recipient.id)).collect();
        let out = new
            .into_iter()
            .filter_map(|(recipient, out)| Some((conversations.get(&recipient.contact_id)?, out)))
            .collect();
        let rows = enqueue_all(tx, out)?;
        Ok(rows.iter().filter_map(|row| Some((*recipients.get(&row.contact_id)?, row.id))).collect())
    }

    /// Returns the recipients whose contacts no other transaction is changing or merging, and locks these contacts
    /// until the transaction ends. They are sorted by contact, which is the order in which conversations are locked.
    /// The other recipients follow in the next batch.
    fn held(&self, tx: &mut Tx, due: &[RecipientRow]) -> Result<Vec<RecipientRow>> {
        let contacts: Vec<ContactId> = due.iter().map(|recipient| recipient.contact_id).collect();
        let busy = self.parts.people.hold(tx, self.row.workspace_id, &contacts)?;
        let held: HashSet<ContactId> =
            contacts.into_iter().filter(|contact| !busy.contains(contact)).collect();
        // Read the recipients again, because a merge that has just ended may have moved them.
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

    /// Moves the recipients of merged contacts to the survivors. A merge can miss a recipient that is inserted
    /// concurrently. Returns whether there was any; they follow in the next batch.
    fn follow_merges(&self, tx: &mut Tx, gone: impl Iterator<Item = ContactId>) -> Result<bool> {
        let (people, workspace) = (&self.parts.people, self.row.workspace_id);
        let mut merged = false;
        for contact in gone {
            let survivor = match people.find(tx, workspace, &contact.into()) {
                Ok(card) => card.id,
                Err(error) if error.code() == Code::NotFound => continue,
                Err(error) => return Err(error),
            };
            merged = true;
            if people.hold(tx, workspace, &[survivor])?.is_empty() {
                RecipientReferences.replace(tx, workspace, contact, survivor)?;
            }
        }
        Ok(merged)
    }

    fn turn(&self, recipient: &RecipientRow, card: Option<&ContactCard>, now: Timestamp) -> Turn {
        // Deleting a message clears the address together with the values, without which there is no message.
        let card = card.filter(|_| recipient.address.is_some());
        let Some(card) = card else { return Turn::Skip(Skip::NoAddress) };
        if let Some(reason) = refusal(card, self.ready.template.category) {
            return Turn::Skip(reason);
        }
        let quiet_until = self.clock.quiet_until(card.text("$timezone"), now);
        quiet_until.map_or(Turn::Send, Turn::Wait)
    }

    /// Builds a new message, or the reason why the template does not accept the recipient's values.
    fn message(
        &self,
        recipient: &RecipientRow,
        expires_at: Timestamp,
    ) -> Result<Result<Outgoing, MessageError>> {
        let (row, ready) = (self.row, self.ready);
        let template = recipient.params()?.sent(&ready.wanted, &ready.template.namespace);
        let content = match ready.components.resolve(&template) {
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
        Ok(Ok(Outgoing {
            message_type: MessageType::Template,
            content,
            detail: Some(JsonText::of(&Detail { template: Some(template), ..Detail::default() })),
            sender: Sender { kind: MessageSenderType::Broadcast, id: Some(row.id.to_string()) },
            reply_to: None,
            client_key: Some(format!("bcast:{}:{}:{}", row.id, recipient.contact_id, recipient.attempt)),
            run_id: None,
            broadcast_id: Some(row.id),
            attachment: ready.attachment.clone(),
            chain: row.leads_to(),
            priority: Priority::Broadcast,
            expires_at,
        }))
    }
}

/// Marks recipients as claimed, each with its message. On PostgreSQL, one statement updates the pairs of ids that it
/// gets as arrays.
fn set_claimed(tx: &mut Tx, claimed: &[(BroadcastRecipientId, MessageId)]) -> Result<()> {
    let now = tx.now();
    Rows::of(claimed)
        .big_int("id", |(id, _)| *id)
        .big_int("message", |(_, message)| *message)
        .given_text("state", State::Claimed)
        .given_time("now", now)
        .execute(
            tx,
            "UPDATE broadcast_recipients SET state = {state}, message_id = claimed.message, updated_at = {now}
            FROM {claimed} WHERE broadcast_recipients.id = claimed.id",
        )?;
    Ok(())
}
