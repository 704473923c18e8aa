//! The network's ratings of numbers.

use crate::schema::channels as table;
use chatnet::{Quality, QualityUpdate};
use diesel::prelude::*;
use model::{ChannelId, Result, Timestamp};
use store::Tx;

/// The network's rating of a number.
pub(crate) struct Rating {
    /// `None`: nothing.
    pub(crate) quality: Option<Quality>,
    /// How many contacts may be written to first within 24 hours. `None`: nothing; `Some(None)`: that there is no limit.
    pub(crate) messaging_limit: Option<Option<i64>>,
    /// When it was so.
    pub(crate) at: Timestamp,
}

/// Stores the network's rating of a number, unless a later one is stored. Returns whether it was stored.
pub(crate) fn rate(tx: &mut Tx, channel: ChannelId, rating: &Rating) -> Result<bool> {
    // Networks count seconds: of the same one, what arrives later counts.
    let second = rating.at.min(tx.now()).seconds();
    let at = Timestamp::from_millis(second * 1_000);
    let mut changed = 0;
    if let Some(quality) = rating.quality {
        let earlier = table::quality_at.is_null().or(table::quality_at.le(at));
        changed += diesel::update(table::table.find(channel).filter(earlier))
            .set((table::quality.eq(quality), table::quality_at.eq(at)))
            .execute(tx.connection())?;
    }
    if let Some(limit) = rating.messaging_limit {
        let earlier = table::messaging_limit_at.is_null().or(table::messaging_limit_at.le(at));
        changed += diesel::update(table::table.find(channel).filter(earlier))
            .set((table::messaging_limit.eq(limit), table::messaging_limit_at.eq(at)))
            .execute(tx.connection())?;
    }
    Ok(changed > 0)
}

/// Stores the rating in a callback, with a new version of the channel, unless a later one is stored.
pub fn note_quality(tx: &mut Tx, channel: ChannelId, update: &QualityUpdate) -> Result<()> {
    let now = tx.now();
    let rating = Rating {
        quality: update.quality,
        messaging_limit: update.messaging_limit.map(Some),
        at: update.at.unwrap_or(now),
    };
    if rate(tx, channel, &rating)? {
        diesel::update(table::table.find(channel))
            .set((table::version.eq(table::version + 1), table::updated_at.eq(now)))
            .execute(tx.connection())?;
    }
    Ok(())
}
