//! Days and moments within expressions.
//!
//! A moment has the time zone of its field: its day, its hour and its text are those of the clocks there, a day added is the
//! same time on the next day, and days between two are those of the calendar, also where the clocks change. Hours, minutes
//! and seconds are counted as they pass.

use super::moment::Moment;
use super::operand::Operand;
use chrono::{Datelike, Days, Duration, Months, NaiveDate, NaiveDateTime, Timelike};
use model::Timestamp;

/// The day of a day or a moment.
pub(crate) fn day(operand: &Operand) -> Option<NaiveDate> {
    match operand {
        Operand::Date(day) => Some(*day),
        Operand::Moment(moment) => in_calendar(moment.local().date()),
        _ => None,
    }
}

/// Minutes since midnight.
pub(crate) fn minutes(operand: &Operand) -> u32 {
    match operand {
        Operand::Moment(moment) => moment.local().hour() * 60 + moment.local().minute(),
        _ => 0,
    }
}

fn in_calendar(day: NaiveDate) -> Option<NaiveDate> {
    (1..=9999).contains(&day.year()).then_some(day)
}

/// A time so many units later.
pub(crate) fn added(time: &Operand, amount: i64, unit: &str) -> Option<Operand> {
    let unit = Unit::named(unit)?;
    match time {
        Operand::Date(day) => {
            let moved = unit.add(day.and_time(chrono::NaiveTime::MIN), amount)?;
            in_calendar(moved.date()).map(Operand::Date)
        }
        Operand::Moment(moment) => {
            let moved = match unit {
                Unit::Seconds(_) => {
                    let moved = unit.add(moment.instant().naive_utc(), amount)?;
                    Moment { at: Timestamp::from_millis(moved.and_utc().timestamp_millis()), ..*moment }
                }
                Unit::Days(_) | Unit::Months(_) => moment.with_local(unit.add(moment.local(), amount)?),
            };
            in_calendar(moved.instant().date_naive()).map(|_| Operand::Moment(moved))
        }
        _ => None,
    }
}

/// Whole units from one time to another. A day begins at midnight where the other time is.
pub(crate) fn between(from: &Operand, to: &Operand, unit: &str) -> Option<i64> {
    let unit = Unit::named(unit)?;
    let midnight = |day: &NaiveDate| day.and_time(chrono::NaiveTime::MIN);
    let (from, to) = match (from, to) {
        (Operand::Date(from), Operand::Date(to)) => return Some(unit.between(midnight(from), midnight(to))),
        (Operand::Date(from), Operand::Moment(to)) => (to.with_local(midnight(from)), *to),
        (Operand::Moment(from), Operand::Date(to)) => (*from, from.with_local(midnight(to))),
        (Operand::Moment(from), Operand::Moment(to)) => (*from, *to),
        _ => return None,
    };
    Some(match unit {
        Unit::Seconds(_) => unit.between(from.instant().naive_utc(), to.instant().naive_utc()),
        // Of two moments in different zones the later in the expression is looked at as the first one is.
        Unit::Days(_) | Unit::Months(_) => unit.between(Moment { zone: to.zone, ..from }.local(), to.local()),
    })
}

#[derive(Clone, Copy)]
enum Unit {
    Seconds(i64),
    Days(i64),
    Months(u32),
}

impl Unit {
    fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_lowercase();
        Some(match name.strip_suffix('s').unwrap_or(&name) {
            "second" => Self::Seconds(1),
            "minute" => Self::Seconds(60),
            "hour" => Self::Seconds(3_600),
            "day" => Self::Days(1),
            "week" => Self::Days(7),
            "month" => Self::Months(1),
            "year" => Self::Months(12),
            _ => return None,
        })
    }

    fn add(self, start: NaiveDateTime, amount: i64) -> Option<NaiveDateTime> {
        match self {
            Self::Seconds(unit) => {
                start.checked_add_signed(Duration::try_seconds(amount.checked_mul(unit)?)?)
            }
            Self::Days(unit) => {
                let days = Days::new(amount.unsigned_abs().checked_mul(unit.unsigned_abs())?);
                if amount < 0 { start.checked_sub_days(days) } else { start.checked_add_days(days) }
            }
            Self::Months(unit) => {
                let months = Months::new(u32::try_from(amount.unsigned_abs()).ok()?.checked_mul(unit)?);
                if amount < 0 { start.checked_sub_months(months) } else { start.checked_add_months(months) }
            }
        }
    }

    fn between(self, from: NaiveDateTime, to: NaiveDateTime) -> i64 {
        match self {
            Self::Seconds(unit) => (to - from).num_seconds() / unit,
            Self::Days(unit) => (to - from).num_seconds() / 86_400 / unit,
            Self::Months(_) if to < from => -self.between(to, from),
            Self::Months(unit) => {
                let months =
                    i64::from(to.year() - from.year()) * 12 + i64::from(to.month()) - i64::from(from.month());
                let begun = (to.day(), to.time()) < (from.day(), from.time());
                (months - i64::from(begun)) / i64::from(unit)
            }
        }
    }
}
