//! What clocks show, and when.

use chrono::{DateTime, Duration, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;
use model::Timestamp;

/// What the clock shows at a moment.
pub(super) fn local(zone: Tz, at: Timestamp) -> NaiveDateTime {
    let at = DateTime::from_timestamp_millis(at.millis()).unwrap_or_default();
    at.with_timezone(&zone).naive_local()
}

/// The moment at which the clock shows a time: the first such, or where it skips the time, as much later.
pub(super) fn instant(zone: Tz, time: NaiveDateTime) -> Timestamp {
    if let Some(found) = zone.from_local_datetime(&time).earliest() {
        return Timestamp::from_millis(found.timestamp_millis());
    }
    // By the clock of the day before, which was not put forward yet.
    let before = zone.offset_from_utc_datetime(&(time - Duration::days(1))).fix();
    Timestamp::from_millis((time - before).and_utc().timestamp_millis())
}
