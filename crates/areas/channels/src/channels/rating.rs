//! The network's ratings of numbers.

use crate::schema::channels as table;
use chatnet::{Quality, QualityUpdate};
use diesel::prelude::*;
use model::{ChannelId, Result, Timestamp};
use store::Tx;

/// The network's rating of a number.
pub(crate) struct Rating {
    /// The quality; `None` if it is unchanged.
    pub(crate) quality: Option<Quality>,
    /// The number of contacts that the business may write to first within 24 hours. `None` if unchanged; `Some(None)`
    /// means no limit.
    pub(crate) messaging_limit: Option<Option<i64>>,
    /// The time of the rating.
    pub(crate) at: Timestamp,
}

/// Stores the network's rating of a number, unless a later one is stored. Returns whether it was stored.
pub(crate) fn rate(tx: &mut Tx, channel: ChannelId, rating: &Rating) -> Result<bool> {
    // The network's times have a resolution of a second. Among ratings of the same second the last one to arrive
    // applies.
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

/// Stores the rating of a callback and increments the channel's version, unless a later rating is stored.
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
