//! Statuses of messages: they come in any order, twice, and sometimes before the answer to the send.

use super::changes::{self, Known};
use crate::events::MessageEvent;
use crate::messages::{Alike, MessageError, MessageRow, MessageStatus};
use crate::other_areas::OtherAreas;
use crate::schema::{
    early_statuses as early, message_outbox as outbox, message_statuses as history, messages as table,
};
use channels::ChannelRow;
use chatnet::{NetworkStatus, RefusalCode, StatusUpdate};
use diesel::prelude::*;
use model::{Cause, Chain, ContactId, JsonText, MessageId, Result, Timestamp, whole_number};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use store::{Tx, each, lock_row};

/// What the network says of a message.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StatusReport {
    pub(crate) provider_id: String,
    /// The id of the message, where the network echoes it.
    pub(crate) reference: Option<MessageId>,
    pub(crate) status: MessageStatus,
    pub(crate) error: Option<MessageError>,
    pub(crate) at: Timestamp,
}

impl StatusReport {
    pub(crate) fn of(update: &StatusUpdate) -> Self {
        let status = match update.status {
            NetworkStatus::Sent => MessageStatus::Sent,
            NetworkStatus::Delivered => MessageStatus::Delivered,
            NetworkStatus::Read => MessageStatus::Read,
            NetworkStatus::Failed => MessageStatus::Failed,
        };
        let error = update.error.as_ref().map(|error| MessageError {
            code: error.code,
            message: error.message.clone(),
            provider_code: error.provider_code,
            retryable: false,
        });
        let unexplained = || MessageError {
            code: RefusalCode::NetworkError,
            message: "The network gave no reason.".to_owned(),
            provider_code: None,
            retryable: false,
        };
        Self {
            provider_id: update.provider_id.clone(),
            reference: update.reference.as_deref().and_then(whole_number).map(MessageId),
            status,
            error: error.or_else(|| (status == MessageStatus::Failed).then(unexplained)),
            at: update.at,
        }
    }
}

/// Applies statuses to their messages. One whose message is not known yet waits for it.
pub(crate) fn report(
    tx: &mut Tx,
    channel: &ChannelRow,
    areas: &OtherAreas,
    reports: &[StatusReport],
) -> Result<()> {
    let mut known = by_provider_ids(tx, channel, reports)?;
    let mut rises = Vec::with_capacity(reports.len());
    for report in reports {
        let mut id = known.get(&report.provider_id).copied();
        if id.is_none() {
            id = by_reference(tx, channel, report)?;
            known.extend(id.map(|id| (report.provider_id.clone(), id)));
        }
        match id {
            Some(id) => rises.push((id, report)),
            None => park(tx, channel, report)?,
        }
    }
    rise(tx, channel, areas, &rises)
}

/// The messages of statuses, by the network's ids.
fn by_provider_ids(
    tx: &mut Tx,
    channel: &ChannelRow,
    reports: &[StatusReport],
) -> Result<HashMap<String, MessageId>> {
    let ids: HashSet<&str> = reports.iter().map(|report| report.provider_id.as_str()).collect();
    let found: Vec<(Option<String>, MessageId)> = table::table
        .filter(table::channel_id.eq(channel.id))
        .filter(table::provider_message_id.eq_any(ids))
        .select((table::provider_message_id, table::id))
        .load(tx.connection())?;
    Ok(found.into_iter().filter_map(|(provider_id, id)| Some((provider_id?, id))).collect())
}

/// The message that a status names by our own id: the answer to its send was lost, or is on its way.
fn by_reference(tx: &mut Tx, channel: &ChannelRow, report: &StatusReport) -> Result<Option<MessageId>> {
    let Some(id) = report.reference else { return Ok(None) };
    let of = table::table
        .find(id)
        .filter(table::channel_id.eq(channel.id))
        .filter(table::provider_message_id.is_null());
    let changed = diesel::update(of)
        .set(table::provider_message_id.eq(&report.provider_id))
        .execute(tx.connection())?;
    if changed == 0 {
        return Ok(None);
    }
    // The network has it, though it may have answered that it has not: it is not to be sent again.
    diesel::delete(outbox::table.find(id).filter(outbox::claimed_epoch.is_null()))
        .execute(tx.connection())?;
    let known = Known { id, provider_id: &report.provider_id, from: None };
    changes::catch_up(tx, channel.id, None, &[known])?;
    Ok(Some(id))
}

/// Applies the statuses, changes and replies that came before it was known what the network calls their messages.
pub(crate) fn apply_early(
    tx: &mut Tx,
    channel: &ChannelRow,
    areas: &OtherAreas,
    messages: &[(MessageId, &str)],
) -> Result<()> {
    let known = messages.iter().map(|(id, provider_id)| Known { id: *id, provider_id, from: None });
    changes::catch_up(tx, channel.id, None, &known.collect::<Vec<_>>())?;
    let of = early::table
        .filter(early::channel_id.eq(channel.id))
        .filter(early::provider_message_id.eq_any(messages.iter().map(|(_, provider_id)| *provider_id)));
    let waiting: Vec<(i64, String, MessageStatus, Option<JsonText>, Timestamp)> = of
        .order(early::id)
        .select((early::id, early::provider_message_id, early::status, early::error, early::reported_at))
        .load(tx.connection())?;
    if waiting.is_empty() {
        return Ok(());
    }
    let waited: Vec<i64> = waiting.iter().map(|(id, ..)| *id).collect();
    diesel::delete(early::table.filter(early::id.eq_any(waited))).execute(tx.connection())?;
    let mut parked = Vec::with_capacity(waiting.len());
    for (_, provider_id, status, error, at) in waiting {
        let error = error.as_ref().map(JsonText::parse).transpose()?;
        parked.push(StatusReport { provider_id, reference: None, status, error, at });
    }
    let ids: HashMap<&str, MessageId> =
        messages.iter().map(|(id, provider_id)| (*provider_id, *id)).collect();
    let rises: Vec<(MessageId, &StatusReport)> =
        parked.iter().filter_map(|report| Some((*ids.get(report.provider_id.as_str())?, report))).collect();
    rise(tx, channel, areas, &rises)
}

/// Notes statuses, and gives each message those that are further than what it has.
pub(crate) fn rise(
    tx: &mut Tx,
    channel: &ChannelRow,
    areas: &OtherAreas,
    reports: &[(MessageId, &StatusReport)],
) -> Result<()> {
    let mut rows = locked(tx, reports)?;
    let mut known = history_of(tx, rows.keys())?;
    let now = tx.now();
    let (mut noted, mut steps) = (Vec::new(), Vec::new());
    for (id, report) in reports {
        let Some(row) = rows.get_mut(id) else { continue };
        if !known.insert((*id, report.status.as_str(), report.at)) {
            continue;
        }
        noted.push((
            history::message_id.eq(*id),
            history::status.eq(report.status),
            history::error.eq(report.error.as_ref().map(JsonText::of)),
            history::reported_at.eq(report.at),
            history::created_at.eq(now),
        ));
        let before = row.status.unwrap_or(MessageStatus::Queued);
        if !report.status.follows(before) {
            continue;
        }
        let was_unsent = row.status_rank < MessageStatus::Sent.rank();
        row.status = Some(report.status);
        row.status_rank = report.status.rank();
        row.error = report.error.as_ref().map(JsonText::of);
        row.updated_at = now;
        steps.push(StatusStep { row: row.clone(), error: report.error.clone(), was_unsent });
    }
    let insert = diesel::insert_into(history::table).values(&noted);
    each!(tx.connection(), |connection| insert.execute(connection))?;
    // Of several steps of one message the last one is stored.
    let changed: BTreeMap<MessageId, &MessageRow> =
        steps.iter().map(|step: &StatusStep| (step.row.id, &step.row)).collect();
    let changed: Vec<&MessageRow> = changed.into_values().collect();
    store(tx, &changed)?;
    areas.broadcasts.messages_changed(tx, &changed)?;
    publish(tx, channel, areas, &steps)
}

/// A step that a message made.
struct StatusStep {
    row: MessageRow,
    error: Option<MessageError>,
    /// Whether the network had not taken it before.
    was_unsent: bool,
}

impl StatusStep {
    /// What is published of the step, if anything.
    fn event(&self, channel: &ChannelRow, app_url: Option<String>) -> Option<MessageEvent> {
        let status = self.row.status?;
        if matches!(status, MessageStatus::Failed | MessageStatus::Unknown | MessageStatus::Expired) {
            return Some(MessageEvent::failed(&self.row, self.error.clone(), app_url));
        }
        let is_sent = self.was_unsent && status.rank() >= MessageStatus::Sent.rank();
        is_sent.then(|| MessageEvent::sent(&self.row, channel.channel_type, app_url))
    }
}

/// The messages of statuses, which nobody else changes until the transaction ends.
fn locked(tx: &mut Tx, reports: &[(MessageId, &StatusReport)]) -> Result<HashMap<MessageId, MessageRow>> {
    let ids: BTreeSet<MessageId> = reports.iter().map(|(id, _)| *id).collect();
    let of = table::table.filter(table::id.eq_any(ids)).order(table::id);
    lock_row!(tx, of.clone().select(table::id), for_no_key_update);
    let rows: Vec<MessageRow> = of.select(MessageRow::as_select()).load(tx.connection())?;
    Ok(rows.into_iter().map(|row| (row.id, row)).collect())
}

/// The statuses that messages had, each with its moment.
fn history_of<'a>(
    tx: &mut Tx,
    ids: impl Iterator<Item = &'a MessageId>,
) -> Result<HashSet<(MessageId, &'static str, Timestamp)>> {
    let known: Vec<(MessageId, MessageStatus, Timestamp)> = history::table
        .filter(history::message_id.eq_any(ids.copied().collect::<Vec<_>>()))
        .select((history::message_id, history::status, history::reported_at))
        .load(tx.connection())?;
    Ok(known.into_iter().map(|(id, status, at)| (id, status.as_str(), at)).collect())
}

/// Stores the statuses of messages: those that are alike in one statement.
fn store(tx: &mut Tx, rows: &[&MessageRow]) -> Result<()> {
    let now = tx.now();
    for alike in Alike::among(rows.iter().copied()) {
        diesel::update(table::table.filter(table::id.eq_any(alike.ids)))
            .set((
                table::status.eq(alike.status),
                table::status_rank.eq(alike.status.rank()),
                table::error.eq(alike.error),
                table::updated_at.eq(now),
            ))
            .execute(tx.connection())?;
    }
    Ok(())
}

fn publish(tx: &mut Tx, channel: &ChannelRow, areas: &OtherAreas, steps: &[StatusStep]) -> Result<()> {
    let published: Vec<&StatusStep> =
        steps.iter().filter(|step| step.event(channel, None).is_some()).collect();
    let contacts: BTreeSet<ContactId> = published.iter().map(|step| step.row.contact_id).collect();
    if contacts.is_empty() {
        return Ok(());
    }
    let contacts: Vec<ContactId> = contacts.into_iter().collect();
    let cards = areas.people.cards(tx, channel.workspace_id, &contacts)?;
    let urls: HashMap<ContactId, Option<String>> =
        cards.into_iter().map(|card| (card.id, card.app_url)).collect();
    for step in published {
        let Some(url) = urls.get(&step.row.contact_id) else { continue };
        if let Some(event) = step.event(channel, url.clone()) {
            let cause = Cause::system("channels").at(Chain::stored(step.row.chain.as_ref()));
            tx.emit(step.row.workspace_id, &cause, true, &event)?;
        }
    }
    Ok(())
}

fn park(tx: &mut Tx, channel: &ChannelRow, report: &StatusReport) -> Result<()> {
    let now = tx.now();
    diesel::insert_into(early::table)
        .values((
            early::channel_id.eq(channel.id),
            early::provider_message_id.eq(&report.provider_id),
            early::status.eq(report.status),
            early::error.eq(report.error.as_ref().map(JsonText::of)),
            early::reported_at.eq(report.at),
            early::created_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}
