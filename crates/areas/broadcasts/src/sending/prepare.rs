//! Prepares recipients: turns the audience into rows, in batches, with the resolved values of their messages.

use crate::checks::check::{self, excluded, included};
use crate::checks::clock::Clock;
use crate::checks::contact::{address, refusal};
use crate::checks::list_file::{self, Listed, ListedContact};
use crate::model::{
    BroadcastAudience, BroadcastFrequencyCap, BroadcastPauseReason as Reason,
    BroadcastRecipientState as State, BroadcastSkipReason as Skip, BroadcastStatus as Status,
    BroadcastTemplate,
};
use crate::rows::counts::{self, ListedLines};
use crate::rows::row::{BroadcastRow, NewRecipient, locked};
use crate::rows::template::FrozenParams;
use crate::schema::broadcast_recipients;
use crate::sending::progress::{Next, pause, reason_of};
use chatnet::TemplateCategory;
use diesel::dsl::count_star;
use diesel::prelude::*;
use model::{Code, ContactId, Error, JsonText, Result, WorkspaceId};
use ports::{Audience, ContactCard, People};
use sends::SendParts;
use std::collections::{BTreeSet, HashMap, HashSet};
use store::{Db, Read, Tx};

/// The number of contacts in a batch.
const PIECE: i64 = 1_000;

/// A batch of contacts of the audience.
#[derive(Clone)]
pub(crate) struct Contacts {
    pub(crate) cards: Vec<ContactCard>,
    /// The last contact that was read.
    pub(crate) last: Option<ContactId>,
    /// The number of bytes that were read of the file with the audience.
    pub(crate) bytes: i64,
    /// The counts of the lines that were read of that file.
    pub(crate) lines: Option<ListedLines>,
    pub(crate) is_end: bool,
}

/// Prepares the next batch. It is read before the transaction, and dropped if another runner has made progress
/// meanwhile. Consent is checked again before anything is sent.
pub(crate) async fn piece(db: &Db, parts: SendParts, row: BroadcastRow) -> Result<Next> {
    let seen = row.clone();
    let read = read(db, parts, row).await;
    db.write(move |tx| {
        let mut row = locked(tx, seen.workspace_id, seen.id)?;
        let place = |row: &BroadcastRow| (row.prepared_to, row.prepared_bytes);
        if row.status != Status::Preparing || place(&row) != place(&seen) {
            return Ok(Next::Piece);
        }
        match &read {
            Ok(contacts) => store(tx, &mut row, contacts)?,
            Err(error) => {
                let cause = row.cause();
                pause(tx, &mut row, &cause, reason_of(copy(error))?)?;
            }
        }
        Ok(Next::Piece)
    })
    .await
}

/// Copies an error. The transaction may run twice, and errors cannot be cloned.
fn copy(error: &Error) -> Error {
    Error::new(error.code(), error.message())
}

/// Reads the next contacts of the audience.
///
/// # Errors
/// `validation_error` if the file with the audience cannot be read.
pub(crate) async fn read(db: &Db, parts: SendParts, row: BroadcastRow) -> Result<Contacts> {
    let audience = row.audience()?.unwrap_or_default();
    let people = parts.people;
    let Some(file) = audience.file_id else {
        return db.read(move |read| contacts(read, &people, &row, &audience)).await;
    };
    let workspace = row.workspace_id;
    let file = db.read(move |read| list_file::file(read, workspace, file)).await?;
    let listed = list_file::read(&parts.files, &file, row.prepared_bytes).await?;
    db.read(move |read| among(read, &people, &row, &audience, &listed)).await
}

fn contacts(
    read: &mut Read,
    people: &People,
    row: &BroadcastRow,
    audience: &BroadcastAudience,
) -> Result<Contacts> {
    let mut cards = people.audience(read, row.workspace_id, &included(audience), row.prepared_to, PIECE)?;
    let last = cards.last().map(|card| card.id);
    let is_end = i64::try_from(cards.len()).unwrap_or(PIECE) < PIECE;
    leave_out(read, people, row, audience, &mut cards)?;
    Ok(Contacts { cards, last, bytes: row.prepared_bytes, lines: None, is_end })
}

/// Returns the contacts that a chunk of a file lists and that match the other conditions. A contact that is listed
/// twice becomes a recipient once.
fn among(
    read: &mut Read,
    people: &People,
    row: &BroadcastRow,
    audience: &BroadcastAudience,
    listed: &Listed,
) -> Result<Contacts> {
    let mut ids = BTreeSet::new();
    let mut lines = ListedLines::default();
    for contact in &listed.contacts {
        match named(read, people, row, contact)? {
            Named::One(id) => {
                lines.listed += 1;
                ids.insert(id);
            }
            Named::None => lines.unmatched += 1,
            Named::Several => lines.contradictory += 1,
        }
    }
    let mut conditions = included(audience);
    if let Some(named) = &conditions.ids {
        let named = current(read, people, row.workspace_id, named)?;
        ids.retain(|id| named.contains(id));
    }
    conditions.ids = Some(ids.into_iter().collect());
    let mut cards = people.audience(read, row.workspace_id, &conditions, None, PIECE)?;
    leave_out(read, people, row, audience, &mut cards)?;
    Ok(Contacts { cards, last: None, bytes: listed.end, lines: Some(lines), is_end: listed.is_end })
}

/// The contact that a line identifies.
enum Named {
    One(ContactId),
    None,
    Several,
}

/// Finds the contact on which all values of a line agree. An id next to other values may be an id of another system,
/// so it alone must not decide who is written to.
fn named(read: &mut Read, people: &People, row: &BroadcastRow, line: &ListedContact) -> Result<Named> {
    let mut find = |contact| match people.find(read, row.workspace_id, contact) {
        Ok(card) => Ok(Some(card.id)),
        Err(error) if error.code() == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let found = line.identities.iter().filter_map(|contact| find(contact).transpose());
    let found: BTreeSet<ContactId> = found.collect::<Result<_>>()?;
    let by_id = match &line.id {
        Some(id) => find(id)?,
        None => None,
    };
    let mut found = found.into_iter();
    Ok(match (found.next(), found.next(), by_id) {
        (Some(_), Some(_), _) => Named::Several,
        (Some(one), None, Some(other)) if one != other => Named::Several,
        (Some(one), None, _) => Named::One(one),
        (None, _, Some(_)) if !line.identities.is_empty() => Named::Several,
        (None, _, Some(one)) => Named::One(one),
        (None, _, None) => Named::None,
    })
}

/// Replaces the ids of merged contacts by those of their survivors.
fn current(
    read: &mut Read,
    people: &People,
    workspace: WorkspaceId,
    ids: &[ContactId],
) -> Result<HashSet<ContactId>> {
    let survivors = people.survivors(read, workspace, ids)?;
    Ok(ids.iter().map(|id| survivors.get(id).copied().unwrap_or(*id)).collect())
}

/// Removes the contacts that the broadcast excludes.
fn leave_out(
    read: &mut Read,
    people: &People,
    row: &BroadcastRow,
    audience: &BroadcastAudience,
    cards: &mut Vec<ContactCard>,
) -> Result<()> {
    let mut out = HashSet::new();
    let Some(exclusion) = &audience.exclude else { return Ok(()) };
    let ids: Vec<ContactId> = cards.iter().map(|card| card.id).collect();
    for conditions in excluded(exclusion) {
        if let Some(named) = &conditions.ids {
            out.extend(current(read, people, row.workspace_id, named)?);
            continue;
        }
        let among = Audience { ids: Some(ids.clone()), ..conditions };
        let found = people.audience(read, row.workspace_id, &among, None, PIECE)?;
        out.extend(found.into_iter().map(|card| card.id));
    }
    if let Some(other) = exclusion.broadcast_id {
        let got: Vec<ContactId> = broadcast_recipients::table
            .filter(broadcast_recipients::broadcast_id.eq(other))
            .filter(broadcast_recipients::contact_id.eq_any(ids))
            .filter(broadcast_recipients::state.ne_all([State::Pending, State::Skipped, State::Cancelled]))
            .select(broadcast_recipients::contact_id)
            .load(read.connection())?;
        out.extend(got);
    }
    cards.retain(|card| !out.contains(&card.id));
    Ok(())
}

/// Counts the broadcasts that were sent to contacts within the period of a frequency cap.
fn sent_lately(
    read: &mut Read,
    cards: &[ContactCard],
    cap: BroadcastFrequencyCap,
) -> Result<HashMap<ContactId, i64>> {
    let since = read.now().plus_seconds(-86_400 * cap.days);
    let sent: Vec<(ContactId, i64)> = broadcast_recipients::table
        .filter(broadcast_recipients::contact_id.eq_any(cards.iter().map(|card| card.id)))
        .filter(broadcast_recipients::sent_at.ge(since))
        .group_by(broadcast_recipients::contact_id)
        .select((broadcast_recipients::contact_id, count_star()))
        .load(read.connection())?;
    Ok(sent.into_iter().collect())
}

/// Builds the recipients for contacts: with the resolved values of their messages, or with the reason why they are
/// skipped.
pub(crate) fn recipients(
    read: &mut Read,
    row: &BroadcastRow,
    cards: &[ContactCard],
) -> Result<Vec<NewRecipient>> {
    let now = read.now();
    let wanted = row.template()?.ok_or_else(|| Error::internal("a broadcast has no template"))?;
    // If the template is gone, assume the strictest category.
    let category = match check::template(read, row, &wanted) {
        Ok(template) => template.category,
        Err(error) if error.code() == Code::TemplateNotFound => TemplateCategory::Marketing,
        Err(error) => return Err(error),
    };
    let cap: Option<BroadcastFrequencyCap> = row.frequency_cap.as_ref().map(JsonText::parse).transpose()?;
    let sent = cap.map(|cap| sent_lately(read, cards, cap)).transpose()?.unwrap_or_default();
    let is_too_often = |card: &ContactCard| {
        cap.is_some_and(|cap| sent.get(&card.id).is_some_and(|sent| *sent >= cap.messages))
    };
    let clock = Clock::of(row.schedule()?.as_ref());
    let recipient = |card: &ContactCard| {
        let params = match refusal(card, category) {
            Some(skip) => Err(skip),
            None if is_too_often(card) => Err(Skip::FrequencyCap),
            None => frozen(card, &wanted),
        };
        NewRecipient {
            contact_id: card.id,
            address: address(card),
            params: params.as_ref().ok().map(JsonText::of),
            skip_reason: params.err(),
            not_before: clock.not_before(card.text("$timezone"), now),
        }
    };
    Ok(cards.iter().map(recipient).collect())
}

/// Stores the recipients of a batch of a locked broadcast.
fn store(tx: &mut Tx, row: &mut BroadcastRow, piece: &Contacts) -> Result<()> {
    let now = tx.now();
    let recipients = recipients(tx, row, &piece.cards)?;
    NewRecipient::insert(tx, row, recipients)?;
    let is_first = row.prepared_bytes == 0;
    let listed = piece.lines.map(|lines| counts::add_lines(tx, row.id, is_first, lines)).transpose()?;
    counts::compact(tx, row.id)?;
    if piece.is_end && listed == Some(0) {
        // Resuming reads the file again from the start, for the case that the contacts are imported meanwhile.
        row.prepared_bytes = 0;
        let cause = row.cause();
        return pause(tx, row, &cause, Reason::AudienceInvalid);
    }
    row.prepared_to = piece.last.or(row.prepared_to);
    row.prepared_bytes = piece.bytes;
    if piece.is_end {
        (row.status, row.prepared_at) = (Status::Sending, Some(now));
        return row.store(tx);
    }
    row.store_progress(tx)
}

/// Resolves the values for a contact that can be sent the message.
fn frozen(card: &ContactCard, wanted: &BroadcastTemplate) -> Result<FrozenParams, Skip> {
    let params = FrozenParams::of(wanted, card).ok_or(Skip::MissingParam)?;
    address(card).map(|_| params).ok_or(Skip::NoAddress)
}
