//! Who works on a channel: the holder of its lease. Each holder has a higher epoch, so that what an earlier one was at is
//! recognised.

use super::parts::WorkerParts;
use super::settle;
use crate::channels::{self, ChannelRow};
use crate::inbound::pending;
use crate::schema::{
    channel_callbacks as callbacks, channels as table, conversations, held_message_events as held,
    message_attachments as attachments, message_outbox as outbox, messages,
};
use diesel::dsl::exists;
use diesel::prelude::*;
use model::{ChannelId, Result, Timestamp};
use std::collections::BTreeSet;
use std::time::Duration;
use store::{Db, LockMode, Read, Tx, lock_row};

/// How long a lease holds without being renewed.
const LEASE_SECONDS: i64 = 20;
/// How often it is renewed.
pub(super) const RENEWAL: Duration = Duration::from_secs(5);
/// The most channels with work that are looked at together.
const MOST: i64 = 1_000;

/// The right to work on a channel.
pub(super) struct Lease {
    db: Db,
    channel: ChannelId,
    pub(super) epoch: i64,
}

impl Lease {
    /// Takes a channel that no other worker has. Messages that an earlier worker was handing to the network are then
    /// `unknown`.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn take(parts: &WorkerParts, channel: ChannelId) -> Result<Option<(ChannelRow, Self)>> {
        // Most are not free, and taking one waits for what its worker is doing.
        let is_held = parts.db.read(move |read| {
            let held = table::table.find(channel).filter(table::lease_until.gt(read.now()));
            Ok(diesel::select(exists(held)).get_result::<bool>(read.connection())?)
        });
        if is_held.await? {
            return Ok(None);
        }
        let areas = parts.areas.clone();
        let taken = parts.db.write(move |tx| {
            let row = table::table.find(channel);
            channels::hold(tx, channel)?;
            let now = tx.now();
            let free = row.filter(table::lease_until.is_null().or(table::lease_until.le(now)));
            let changed = diesel::update(free)
                .set((
                    table::lease_epoch.eq(table::lease_epoch + 1),
                    table::lease_until.eq(now.plus_seconds(LEASE_SECONDS)),
                ))
                .execute(tx.connection())?;
            if changed == 0 {
                return Ok(None);
            }
            let Some(row) = channels::by_id(tx, channel)? else { return Ok(None) };
            settle::forget_interrupted(tx, &areas, &row)?;
            Ok(Some(row))
        });
        let Some(row) = taken.await? else { return Ok(None) };
        let epoch = row.lease_epoch;
        Ok(Some((row, Self { db: parts.db.clone(), channel, epoch })))
    }

    /// Holds it longer. `false` where another worker has it.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn renew(&self) -> Result<bool> {
        let (channel, epoch) = (self.channel, self.epoch);
        let renew = move |tx: &mut Tx| {
            let own = table::table.find(channel).filter(table::lease_epoch.eq(epoch));
            let until = table::lease_until.eq(tx.now().plus_seconds(LEASE_SECONDS));
            Ok(diesel::update(own).set(until).execute(tx.connection())? > 0)
        };
        self.db.write(renew).await
    }

    /// Lets another worker have the channel. The epoch ends too: a renewal that nobody waits for any more may still run, and
    /// must find nothing to renew.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn give_back(&self) -> Result<()> {
        let (channel, epoch) = (self.channel, self.epoch);
        let give_back = move |tx: &mut Tx| {
            let own = table::table.find(channel).filter(table::lease_epoch.eq(epoch));
            let free = (table::lease_until.eq(None::<Timestamp>), table::lease_epoch.eq(epoch + 1));
            diesel::update(own).set(free).execute(tx.connection())?;
            Ok(())
        };
        self.db.write(give_back).await
    }
}

/// As [`held_by`], for a transaction that changes the channel itself, and messages in the order in which they came. Those of
/// one contact may be changed while others change theirs.
///
/// # Errors
/// When the database fails.
pub(super) fn changed_by(
    tx: &mut Tx,
    channel: ChannelId,
    epoch: i64,
    mode: LockMode,
) -> Result<Option<ChannelRow>> {
    match mode {
        LockMode::Shared => channels::share(tx, channel)?,
        LockMode::Exclusive => channels::hold(tx, channel)?,
    }
    lock_row!(tx, table::table.find(channel).select(table::id), for_no_key_update);
    let row = channels::by_id(tx, channel)?;
    Ok(row.filter(|row| row.lease_epoch == epoch))
}

/// The channel as it is, if the epoch is still that of its worker. It does not change hands until the transaction ends.
///
/// # Errors
/// When the database fails.
pub(super) fn held_by(tx: &mut Tx, channel: ChannelId, epoch: i64) -> Result<Option<ChannelRow>> {
    channels::share(tx, channel)?;
    let row = channels::by_id(tx, channel)?;
    Ok(row.filter(|row| row.lease_epoch == epoch))
}

/// The channels that have something to do now.
///
/// # Errors
/// When the database fails.
pub(super) fn with_work(read: &mut Read) -> Result<BTreeSet<ChannelId>> {
    let now = read.now();
    let mut all: BTreeSet<ChannelId> = BTreeSet::new();
    let found: Vec<ChannelId> =
        pending(now).select(callbacks::channel_id).distinct().limit(MOST).load(read.connection())?;
    all.extend(found);
    let unsent = outbox::table.filter(outbox::due_at.le(now));
    let found: Vec<ChannelId> =
        unsent.select(outbox::channel_id).distinct().limit(MOST).load(read.connection())?;
    all.extend(found);
    let due = conversations::table.filter(conversations::reply_due_at.le(now));
    let found: Vec<ChannelId> =
        due.select(conversations::channel_id).distinct().limit(MOST).load(read.connection())?;
    all.extend(found);
    let answering = conversations::table.filter(conversations::reply_run_id.is_not_null());
    let found: Vec<ChannelId> =
        answering.select(conversations::channel_id).distinct().limit(MOST).load(read.connection())?;
    all.extend(found);
    let waiting = held::table.filter(held::due_at.le(now));
    let found: Vec<ChannelId> =
        waiting.select(held::channel_id).distinct().limit(MOST).load(read.connection())?;
    all.extend(found);
    let unread = attachments::table
        .inner_join(messages::table.on(messages::id.eq(attachments::message_id)))
        .filter(attachments::next_attempt_at.le(now));
    let found: Vec<ChannelId> =
        unread.select(messages::channel_id).distinct().limit(MOST).load(read.connection())?;
    all.extend(found);
    Ok(all)
}

/// Whether a channel has something to do now.
///
/// # Errors
/// When the database fails.
pub(super) fn has_work(read: &mut Read, channel: ChannelId) -> Result<bool> {
    Ok(with_work(read)?.contains(&channel))
}
