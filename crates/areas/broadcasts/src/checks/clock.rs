//! What clocks show: quiet hours, and the local time of contacts.

use crate::model::{BroadcastQuietHours, BroadcastSchedule};
use calendar::{QuietHours, instant, local};
use chrono::Duration;
use chrono_tz::Tz;
use model::Timestamp;

/// Clocks are ahead of UTC by so many hours at the most.
const MOST_AHEAD_HOURS: i64 = 14;

/// When the messages of a broadcast may be sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    send_at: Option<Timestamp>,
    zone: Tz,
    is_local: bool,
    quiet: Option<BroadcastQuietHours>,
}

impl Clock {
    /// That of a schedule that was checked.
    pub(crate) fn of(schedule: Option<&BroadcastSchedule>) -> Self {
        let zone = schedule.and_then(|schedule| schedule.time_zone.as_deref()?.parse().ok());
        Self {
            send_at: schedule.and_then(|schedule| schedule.send_at),
            zone: zone.unwrap_or(Tz::UTC),
            is_local: schedule.is_some_and(|schedule| schedule.contact_local_time),
            quiet: schedule.and_then(|schedule| schedule.quiet_hours),
        }
    }

    /// Whether every contact has a time of its own.
    pub(crate) fn is_local(&self) -> bool {
        self.is_local
    }

    /// When the first contact may be written to.
    pub(crate) fn starts_at(&self) -> Option<Timestamp> {
        let send_at = self.send_at?;
        if !self.is_local {
            return Some(send_at);
        }
        let earliest = local(self.zone, send_at) - Duration::hours(MOST_AHEAD_HOURS);
        Some(Timestamp::from_millis(earliest.and_utc().timestamp_millis()))
    }

    /// The clock by which a contact with this time zone is written to.
    fn zone_of(&self, zone: Option<&str>) -> Tz {
        let own = zone.filter(|_| self.is_local).and_then(|zone| zone.parse().ok());
        own.unwrap_or(self.zone)
    }

    /// When a contact with this time zone is written to at the earliest.
    pub(crate) fn not_before(&self, zone: Option<&str>, now: Timestamp) -> Timestamp {
        let local_time = |send_at| instant(self.zone_of(zone), local(self.zone, send_at));
        self.send_at.filter(|_| self.is_local).map_or(now, local_time).max(now)
    }

    /// The end of the quiet hours, if it is quiet where a contact with this time zone is.
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
            // Clocks are put forward in the night.
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
