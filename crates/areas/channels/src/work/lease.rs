//! The lease of a channel. Its holder is the channel's only worker. Each holder has a higher epoch, which identifies
//! unfinished work of earlier holders and rejects their writes.

use crate::channels::{self, ChannelRow};
use crate::schema::channels as table;
use diesel::dsl::exists;
use diesel::prelude::*;
use model::{ChannelId, Result, Timestamp};
use std::time::Duration;
use store::{Db, LockMode, Tx, lock_row};

/// How long a lease is valid without renewal, in seconds.
const LEASE_SECONDS: i64 = 20;
/// The same as a duration.
pub const LEASE: Duration = Duration::from_secs(LEASE_SECONDS.unsigned_abs());
/// Interval of renewals.
pub const RENEWAL: Duration = Duration::from_secs(5);

/// A lease on a channel.
pub struct Lease {
    db: Db,
    channel: ChannelId,
    /// The epoch of the holder.
    pub epoch: i64,
}

impl Lease {
    /// Takes the lease of a channel if no other worker has it, and runs `begin` in the same transaction. Returns
    /// `None` if another worker has it.
    pub async fn take(
        db: &Db,
        channel: ChannelId,
        begin: impl Fn(&mut Tx, &ChannelRow) -> Result<()> + Send + 'static,
    ) -> Result<Option<(ChannelRow, Self)>> {
        // Check with a read first: most channels are leased, and the transaction below would wait for locks of their
        // workers.
        let is_taken = db.read(move |read| {
            let taken = table::table.find(channel).filter(table::lease_until.gt(read.now()));
            Ok(diesel::select(exists(taken)).get_result::<bool>(read.connection())?)
        });
        if is_taken.await? {
            return Ok(None);
        }
        let taken = db.write(move |tx| {
            let row = table::table.find(channel);
            // Transactions of the previous holder have a shared lock, so this waits for their end.
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
            begin(tx, &row)?;
            Ok(Some(row))
        });
        let Some(row) = taken.await? else { return Ok(None) };
        let epoch = row.lease_epoch;
        Ok(Some((row, Self { db: db.clone(), channel, epoch })))
    }

    /// Renews the lease. Returns `false` if another worker has taken it.
    pub async fn renew(&self) -> Result<bool> {
        let (channel, epoch) = (self.channel, self.epoch);
        let renew = move |tx: &mut Tx| {
            let own = table::table.find(channel).filter(table::lease_epoch.eq(epoch));
            let until = table::lease_until.eq(tx.now().plus_seconds(LEASE_SECONDS));
            Ok(diesel::update(own).set(until).execute(tx.connection())? > 0)
        };
        self.db.write(renew).await
    }

    /// Releases the lease and ends its epoch. A renewal that is still running must not extend the lease again.
    pub async fn give_back(&self) -> Result<()> {
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

/// Like [`leased`], but also locks the channel's row, for a transaction that changes the channel itself, or messages in
/// the order of their arrival. The lock `mode` may be shared if all of the messages are of one contact.
pub fn leased_for_change(
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

/// Returns the channel if `epoch` is still that of its worker. The shared lock prevents a takeover until the
/// transaction ends.
pub fn leased(tx: &mut Tx, channel: ChannelId, epoch: i64) -> Result<Option<ChannelRow>> {
    channels::share(tx, channel)?;
    let row = channels::by_id(tx, channel)?;
    Ok(row.filter(|row| row.lease_epoch == epoch))
}
