//! Moments within expressions, as the clocks of a time zone show them.

use chrono::{DateTime, NaiveDateTime, Offset, TimeZone};
use chrono_tz::Tz;
use model::Timestamp;

/// A moment, and the time zone in which it is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// The moment.
    pub at: Timestamp,
    /// The time zone, for its day, its hour and its text.
    pub zone: Tz,
}

impl PartialEq for Moment {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Moment {
    /// A moment in a time zone.
    pub fn new(at: Timestamp, zone: Tz) -> Self {
        Self { at, zone }
    }

    /// The time on the clocks.
    pub(crate) fn local(self) -> NaiveDateTime {
        self.instant().with_timezone(&self.zone).naive_local()
    }

    pub(crate) fn instant(self) -> DateTime<chrono::Utc> {
        DateTime::from_timestamp_millis(self.at.millis()).unwrap_or_default()
    }

    /// It as people read it: RFC 3339, with the offset of its zone.
    pub(crate) fn text(self) -> String {
        if self.zone == Tz::UTC {
            return self.at.rfc3339();
        }
        self.instant().with_timezone(&self.zone).format("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string()
    }

    /// The moment at which the clocks show a time: of two the one with the offset that this one has, and of a time that they
    /// skip, as much later.
    pub(crate) fn with_local(self, local: NaiveDateTime) -> Self {
        let offset = self.instant().with_timezone(&self.zone).offset().fix();
        let latest = self.zone.from_local_datetime(&local).latest();
        let at = match latest.filter(|latest| latest.offset().fix() == offset) {
            Some(latest) => Timestamp::from_millis(latest.timestamp_millis()),
            None => calendar::instant(self.zone, local),
        };
        Self { at, ..self }
    }
}
