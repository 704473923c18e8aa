//! Due dates: days and moments in a time zone.

use crate::record::model::NewTaskDue;
use crate::record::task::TaskDue;
use calendar::{instant, local};
use chrono::{Days, NaiveDate, NaiveDateTime, NaiveTime};
use chrono_tz::Tz;
use model::{Error, Result, Timestamp};

/// Parses the name of a time zone.
///
/// # Errors
/// `validation_error` with this `param`.
pub(crate) fn zone(name: &str, param: &str) -> Result<Tz> {
    name.parse().map_err(|_| Error::invalid(param, "must be a time zone such as `Europe/Madrid`"))
}

impl NewTaskDue {
    /// Validates a due date of a request. `business` is the default time zone.
    ///
    /// # Errors
    /// `validation_error`.
    pub(crate) fn read(&self, business: Tz) -> Result<TaskDue> {
        if self.date.is_some() == self.datetime.is_some() {
            return Err(Error::invalid("due", "must have either `date` or `datetime`"));
        }
        let zone = match &self.time_zone {
            Some(name) => zone(name, "due.time_zone")?,
            None => business,
        };
        let due = TaskDue { date: self.date, datetime: self.datetime, time_zone: zone.name().to_owned() };
        match due.moment() {
            Some(at) if (0..=LATEST).contains(&at.millis()) => Ok(due),
            _ => Err(Error::invalid("due", "must be between the years 1970 and 9999")),
        }
    }
}

/// The last millisecond of the year 9999.
const LATEST: i64 = 253_402_300_799_999;

/// Returns the first moment of a day.
pub(crate) fn day_start(zone: Tz, day: NaiveDate) -> Timestamp {
    instant(zone, day.and_time(NaiveTime::MIN))
}

impl TaskDue {
    /// Returns the time zone.
    pub(crate) fn zone(&self) -> Tz {
        self.time_zone.parse().unwrap_or(Tz::UTC)
    }

    /// Returns the moment after which the task is overdue: the due moment, or the last millisecond of the day.
    pub(crate) fn moment(&self) -> Option<Timestamp> {
        match (self.datetime, self.date) {
            (Some(at), _) => Some(at),
            (None, Some(day)) => {
                let next = day_start(self.zone(), day.checked_add_days(Days::new(1))?);
                Some(Timestamp::from_millis(next.millis() - 1))
            }
            (None, None) => None,
        }
    }

    /// Returns the local time in `zone` at which the task is due. For a due day, that is its first minute.
    pub(crate) fn local(&self, zone: Tz) -> Option<NaiveDateTime> {
        match (self.datetime, self.date) {
            (Some(at), _) => Some(local(zone, at)),
            (None, day) => day.map(|day| day.and_time(NaiveTime::MIN)),
        }
    }

    /// Returns the due date of another task of the series, of the same form. `local` is a time in the time zone of
    /// the rule.
    pub(crate) fn moved_to(&self, local: NaiveDateTime, zone: Tz) -> Self {
        let time_zone = self.time_zone.clone();
        if self.datetime.is_none() {
            return Self { date: Some(local.date()), datetime: None, time_zone };
        }
        Self { date: None, datetime: Some(instant(zone, local)), time_zone }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_end_on_the_clocks_of_their_zone() {
        for (day, zone, end) in [
            ("2026-12-01", "UTC", "2026-12-01T23:59:59.999Z"),
            ("2026-12-01", "Europe/Madrid", "2026-12-01T22:59:59.999Z"),
            ("2026-03-29", "Europe/Madrid", "2026-03-29T21:59:59.999Z"),
            ("2026-10-25", "Europe/Madrid", "2026-10-25T22:59:59.999Z"),
            // The next day has no midnight in this time zone.
            ("2018-11-03", "America/Sao_Paulo", "2018-11-04T02:59:59.999Z"),
        ] {
            let due = TaskDue { date: day.parse().ok(), datetime: None, time_zone: zone.to_owned() };
            assert_eq!(due.moment().unwrap().to_string(), end, "{day} {zone}");
        }
    }
}
