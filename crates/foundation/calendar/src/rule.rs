//! The parts of a recurrence rule (RFC 5545, 3.3.10).

use chrono::{Datelike, NaiveDateTime, Timelike, Weekday};
use model::Timestamp;

/// The length of a rule's period. Ordered from short to long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Frequency {
    /// A second.
    Secondly,
    /// A minute.
    Minutely,
    /// An hour.
    Hourly,
    /// A day.
    Daily,
    /// A week, which begins on the rule's `WKST`.
    Weekly,
    /// A month.
    Monthly,
    /// A year.
    Yearly,
}

impl Frequency {
    const ALL: [Self; 7] = [
        Self::Secondly,
        Self::Minutely,
        Self::Hourly,
        Self::Daily,
        Self::Weekly,
        Self::Monthly,
        Self::Yearly,
    ];

    /// Returns the name used in a rule.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Secondly => "SECONDLY",
            Self::Minutely => "MINUTELY",
            Self::Hourly => "HOURLY",
            Self::Daily => "DAILY",
            Self::Weekly => "WEEKLY",
            Self::Monthly => "MONTHLY",
            Self::Yearly => "YEARLY",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|frequency| frequency.as_str() == name)
    }
}

/// A weekday in `BYDAY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByDay {
    /// Its number within the month or the year, counted from the end if negative. `None` matches all.
    pub number: Option<i32>,
    /// The day.
    pub weekday: Weekday,
}

/// The end of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// A local time in the rule's time zone.
    Local(NaiveDateTime),
    /// A moment.
    Moment(Timestamp),
}

/// A recurrence rule. [`Self::times`] ignores `COUNT` and `UNTIL`; callers apply them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// `FREQ`.
    pub frequency: Frequency,
    /// `INTERVAL`, from 1 to 65,535.
    pub interval: u32,
    /// `COUNT`, at least 1.
    pub count: Option<u32>,
    /// `UNTIL`.
    pub until: Option<Until>,
    pub(crate) week_start: Weekday,
    pub(crate) months: Vec<i32>,
    pub(crate) weeks: Vec<i32>,
    pub(crate) year_days: Vec<i32>,
    pub(crate) month_days: Vec<i32>,
    pub(crate) weekdays: Vec<ByDay>,
    pub(crate) hours: Vec<i32>,
    pub(crate) minutes: Vec<i32>,
    pub(crate) seconds: Vec<i32>,
    pub(crate) places: Vec<i32>,
}

impl Rule {
    /// Returns a rule with only a frequency.
    pub(crate) fn of(frequency: Frequency) -> Self {
        Self {
            frequency,
            interval: 1,
            count: None,
            until: None,
            week_start: Weekday::Mon,
            months: Vec::new(),
            weeks: Vec::new(),
            year_days: Vec::new(),
            month_days: Vec::new(),
            weekdays: Vec::new(),
            hours: Vec::new(),
            minutes: Vec::new(),
            seconds: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Returns whether the rule restricts days or times of day, in addition to its frequency and interval.
    pub fn is_restricted(&self) -> bool {
        self.names_days() || ![&self.months, &self.hours, &self.minutes].into_iter().all(Vec::is_empty)
    }

    fn names_days(&self) -> bool {
        !self.weekdays.is_empty()
            || ![&self.weeks, &self.year_days, &self.month_days].into_iter().all(Vec::is_empty)
    }

    /// Returns whether the number of a weekday counts within the month instead of the year.
    pub(crate) fn numbers_within_month(&self) -> bool {
        self.frequency == Frequency::Monthly || !self.months.is_empty()
    }

    /// Adds the parts that follow from the start of a series (RFC 5545: "information not contained in the rule is
    /// determined by DTSTART"). `YEARLY;BYWEEKNO=20`, for example, recurs on the weekday of its start.
    pub(crate) fn completed(mut self, start: NaiveDateTime) -> Self {
        let every = ByDay { number: None, weekday: start.weekday() };
        let only_weeks = !self.weeks.is_empty()
            && self.weekdays.is_empty()
            && self.year_days.is_empty()
            && self.month_days.is_empty();
        match self.frequency {
            _ if only_weeks => self.weekdays.push(every),
            _ if self.names_days() => {}
            Frequency::Yearly => {
                if self.months.is_empty() {
                    self.months.push(start.month() as i32);
                }
                self.month_days.push(start.day() as i32);
            }
            Frequency::Monthly => self.month_days.push(start.day() as i32),
            Frequency::Weekly => self.weekdays.push(every),
            _ => {}
        }
        let frequency = self.frequency;
        let fill = |values: &mut Vec<i32>, shorter: Frequency, value: u32| {
            if values.is_empty() && frequency > shorter {
                values.push(value as i32);
            }
        };
        fill(&mut self.hours, Frequency::Hourly, start.hour());
        fill(&mut self.minutes, Frequency::Minutely, start.minute());
        fill(&mut self.seconds, Frequency::Secondly, start.second());
        self
    }
}
