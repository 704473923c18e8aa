//! The times at which messages may be sent: quiet hours, and the local time of contacts.

use crate::model::{BroadcastQuietHours, BroadcastSchedule};
use calendar::{QuietHours, instant, local};
use chrono::Duration;
use chrono_tz::Tz;
use model::Timestamp;

/// The most hours by which local time is ahead of UTC.
const MAX_AHEAD_HOURS: i64 = 14;

/// The times at which the messages of a broadcast may be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    send_at: Option<Timestamp>,
    zone: Tz,
    is_local: bool,
    quiet: Option<BroadcastQuietHours>,
}

impl Clock {
    /// Builds the clock of a validated schedule.
    pub(crate) fn of(schedule: Option<&BroadcastSchedule>) -> Self {
        let zone = schedule.and_then(|schedule| schedule.time_zone.as_deref()?.parse().ok());
        Self {
            send_at: schedule.and_then(|schedule| schedule.send_at),
            zone: zone.unwrap_or(Tz::UTC),
            is_local: schedule.is_some_and(|schedule| schedule.contact_local_time),
            quiet: schedule.and_then(|schedule| schedule.quiet_hours),
        }
    }

    /// Returns whether messages are sent at the local time of each contact.
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    /// Returns the time at which the first contact may be sent its message. For local times that is the earliest one
    /// in the world.
    pub(crate) fn starts_at(&self) -> Option<Timestamp> {
        let send_at = self.send_at?;
        if !self.is_local {
            return Some(send_at);
        }
        let earliest = local(self.zone, send_at) - Duration::hours(MAX_AHEAD_HOURS);
        Some(Timestamp::from_millis(earliest.and_utc().timestamp_millis()))
    }

    /// Returns the time zone that applies to a contact with this time zone.
    fn zone_of(&self, zone: Option<&str>) -> Tz {
        let own = zone.filter(|_| self.is_local).and_then(|zone| zone.parse().ok());
        own.unwrap_or(self.zone)
    }

    /// Returns the earliest time for a contact with this time zone.
    pub(crate) fn not_before(&self, zone: Option<&str>, now: Timestamp) -> Timestamp {
        let local_time = |send_at| instant(self.zone_of(zone), local(self.zone, send_at));
        self.send_at.filter(|_| self.is_local).map_or(now, local_time).max(now)
    }

    /// Returns the end of the quiet hours, if they apply now to a contact with this time zone.
    pub(crate) fn quiet_until(&self, zone: Option<&str>, now: Timestamp) -> Option<Timestamp> {
        let BroadcastQuietHours { from, to } = self.quiet?;
        let hours = QuietHours { from: from.minutes(), to: to.minutes() };
        hours.until(self.zone_of(zone), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::time_of_day::BroadcastTimeOfDay;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    fn clock(is_local: bool, quiet: Option<(&str, &str)>) -> Clock {
        let quiet = quiet.map(|(from, to)| BroadcastQuietHours {
            from: BroadcastTimeOfDay::parse(from).unwrap(),
            to: BroadcastTimeOfDay::parse(to).unwrap(),
        });
        Clock { send_at: Some(at("2026-03-01T09:00:00Z")), zone: Tz::Europe__Madrid, is_local, quiet }
    }

    #[test]
    fn quiet_hours_end_by_the_clock() {
        let night = clock(false, Some(("21:00", "08:00")));
        for (now, end) in [
            ("2026-01-15T19:59:00Z", None),
            ("2026-01-15T20:00:00Z", Some("2026-01-16T07:00:00Z")),
            ("2026-01-16T06:59:59Z", Some("2026-01-16T07:00:00Z")),
            ("2026-01-16T07:00:00Z", None),
            // Clocks go forward during this night.
            ("2026-03-28T22:00:00Z", Some("2026-03-29T06:00:00Z")),
        ] {
            assert_eq!(night.quiet_until(None, at(now)), end.map(at), "{now}");
        }
        let noon = clock(true, Some(("12:00", "14:00")));
        let tokyo = Some("Asia/Tokyo");
        assert_eq!(noon.quiet_until(tokyo, at("2026-01-15T03:30:00Z")), Some(at("2026-01-15T05:00:00Z")));
        assert_eq!(noon.quiet_until(tokyo, at("2026-01-15T12:00:00Z")), None);
        assert_eq!(noon.quiet_until(None, at("2026-01-15T11:30:00Z")), Some(at("2026-01-15T13:00:00Z")));
    }

    #[test]
    fn local_time_is_that_of_the_contact() {
        let now = at("2026-02-27T00:00:00Z");
        let of = |zone| clock(true, None).not_before(zone, now);
        assert_eq!(of(None), at("2026-03-01T09:00:00Z"));
        assert_eq!(of(Some("Asia/Tokyo")), at("2026-03-01T01:00:00Z"));
        assert_eq!(of(Some("America/Sao_Paulo")), at("2026-03-01T13:00:00Z"));
        assert_eq!(of(Some("Nowhere")), at("2026-03-01T09:00:00Z"));
        assert_eq!(clock(false, None).not_before(Some("Asia/Tokyo"), now), now);
        assert_eq!(clock(true, None).starts_at(), Some(at("2026-02-28T20:00:00Z")));
        assert_eq!(clock(false, None).starts_at(), Some(at("2026-03-01T09:00:00Z")));
    }
}
