//! Recurrence rules of RFC 5545, 3.3.10: their parts.

use chrono::{Datelike, NaiveDateTime, Timelike, Weekday};
use model::Timestamp;

/// How long a period of a rule is. Shorter ones come first.
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
    /// A week, which begins with the rule's `WKST`.
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

    /// Returns its name in a rule.
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

/// A day of the week in `BYDAY`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByDay {
    /// Which one within the month or the year, counted from the end if negative; `None` for each.
    pub number: Option<i32>,
    /// The day.
    pub weekday: Weekday,
}

/// When a rule ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// With this day and time of day on the clocks that the rule follows.
    Local(NaiveDateTime),
    /// At this moment.
    Moment(Timestamp),
}

/// A recurrence rule. [`Self::times`] does not apply `COUNT` and `UNTIL`, which callers count and compare themselves.
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
    /// Makes a rule that has nothing but a frequency.
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

    /// Whether the rule names days or times that clocks and calendars show, besides its steps.
    pub fn is_restricted(&self) -> bool {
        self.names_days() || ![&self.months, &self.hours, &self.minutes].into_iter().all(Vec::is_empty)
    }

    fn names_days(&self) -> bool {
        !self.weekdays.is_empty()
            || ![&self.weeks, &self.year_days, &self.month_days].into_iter().all(Vec::is_empty)
    }

    /// Whether numbers of weekdays count within the month instead of the year.
    pub(crate) fn numbers_within_month(&self) -> bool {
        self.frequency == Frequency::Monthly || !self.months.is_empty()
    }

    /// Fills in what follows from the first time of a series: "information not contained in the rule is determined by
    /// DTSTART". So `YEARLY;BYWEEKNO=20` comes on the weekday of the start.
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
