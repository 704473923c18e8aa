//! Opening hours: whether a business is open at a moment, and when it opens next.

use crate::model::{Holiday, OpeningHours, Weekday};
use calendar::DayHours;
use chrono::{Datelike, NaiveDate};
use chrono_tz::Tz;
use model::Timestamp;
use ports::Opening;

impl OpeningHours {
    /// Returns the hours in minutes.
    pub(super) fn minutes(self) -> DayHours {
        let day = match self.day {
            Weekday::Monday => chrono::Weekday::Mon,
            Weekday::Tuesday => chrono::Weekday::Tue,
            Weekday::Wednesday => chrono::Weekday::Wed,
            Weekday::Thursday => chrono::Weekday::Thu,
            Weekday::Friday => chrono::Weekday::Fri,
            Weekday::Saturday => chrono::Weekday::Sat,
            Weekday::Sunday => chrono::Weekday::Sun,
        };
        DayHours { day, open: self.open.minutes(), close: self.close.minutes() }
    }
}

/// The opening hours of a business.
#[derive(Debug, Clone, Copy)]
pub struct Week<'a> {
    /// The time zone.
    pub zone: Tz,
    /// The hours of a week.
    pub hours: &'a [OpeningHours],
    /// The days without hours.
    pub holidays: &'a [Holiday],
}

impl Week<'_> {
    /// Returns whether the business is open at a moment; `None` without hours.
    pub fn opening(&self, at: Timestamp) -> Option<Opening> {
        if self.hours.is_empty() {
            return None;
        }
        let hours: Vec<DayHours> = self.hours.iter().map(|hours| hours.minutes()).collect();
        let is_holiday = |date| self.holidays.iter().any(|holiday| holiday.is_on(date));
        let week = calendar::OpeningHours { zone: self.zone, hours: &hours, is_holiday };
        Some(week.opening(at))
    }
}

impl Holiday {
    fn is_on(&self, date: NaiveDate) -> bool {
        self.date == date
            || (self.yearly && (self.date.month(), self.date.day()) == (date.month(), date.day()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_yearly_holiday_is_on_the_same_date_of_each_year() {
        let date = |text: &str| text.parse::<NaiveDate>().unwrap();
        let holiday = |yearly| Holiday { date: date("2020-12-25"), name: None, yearly };
        assert!(holiday(true).is_on(date("2026-12-25")) && !holiday(true).is_on(date("2026-12-24")));
        assert!(holiday(false).is_on(date("2020-12-25")) && !holiday(false).is_on(date("2026-12-25")));
    }
}
