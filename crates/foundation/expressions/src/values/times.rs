//! Days and moments within expressions.
//!
//! A moment has the time zone of its field: its day, its hour and its text are those of the clocks there, a day added is the
//! same time on the next day, and days between two are those of the calendar, also where the clocks change. Hours, minutes
//! and seconds are counted as they pass.

use crate::values::moment::Moment;
use crate::values::value::Value;
use chrono::{DateTime, Datelike, Days, Duration, Months, NaiveDate, NaiveDateTime, Timelike};
use chrono_tz::Tz;
use model::Timestamp;

/// The day of a day or a moment.
pub(crate) fn day(value: &Value<'_>) -> Option<NaiveDate> {
    match value {
        Value::Date(day) => Some(*day),
        Value::Time(moment) => in_calendar(moment.local().date()),
        _ => None,
    }
}

/// Minutes since midnight.
pub(crate) fn minutes(value: &Value<'_>) -> u32 {
    match value {
        Value::Time(moment) => moment.local().hour() * 60 + moment.local().minute(),
        _ => 0,
    }
}

fn in_calendar(day: NaiveDate) -> Option<NaiveDate> {
    (1..=9999).contains(&day.year()).then_some(day)
}

/// A time so many units later.
pub(crate) fn added(time: &Value<'_>, amount: i64, unit: &str) -> Option<Value<'static>> {
    let unit = Unit::named(unit)?;
    match time {
        Value::Date(day) => {
            let moved = unit.add(day.and_time(chrono::NaiveTime::MIN), amount)?;
            in_calendar(moved.date()).map(Value::Date)
        }
        Value::Time(moment) => {
            let moved = match unit {
                Unit::Seconds(_) => {
                    let moved = unit.add(moment.instant().naive_utc(), amount)?;
                    Moment { at: Timestamp::from_millis(moved.and_utc().timestamp_millis()), ..*moment }
                }
                Unit::Days(_) | Unit::Months(_) => moment.with_local(unit.add(moment.local(), amount)?),
            };
            in_calendar(moved.instant().date_naive()).map(|_| Value::Time(moved))
        }
        _ => None,
    }
}

/// Whole units from one time to another. A day begins at midnight where the other time is.
pub(crate) fn between(from: &Value<'_>, to: &Value<'_>, unit: &str) -> Option<i64> {
    let unit = Unit::named(unit)?;
    let midnight = |day: &NaiveDate| day.and_time(chrono::NaiveTime::MIN);
    let (from, to) = match (from, to) {
        (Value::Date(from), Value::Date(to)) => return Some(unit.between(midnight(from), midnight(to))),
        (Value::Date(from), Value::Time(to)) => (to.with_local(midnight(from)), *to),
        (Value::Time(from), Value::Date(to)) => (*from, from.with_local(midnight(to))),
        (Value::Time(from), Value::Time(to)) => (*from, *to),
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

/// The date that a text shows: `2026-11-21`.
pub(crate) fn read_date(text: &str) -> Option<NaiveDate> {
    let is_shaped = text.len() == 10
        && text.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if is_shaped { NaiveDate::parse_from_str(text, "%Y-%m-%d").ok().and_then(in_calendar) } else { None }
}

/// The date or the time that a text shows: RFC 3339, or without an offset a time in `zone`.
pub(crate) fn read(text: &str, zone: Tz) -> Option<Value<'static>> {
    let text = text.trim();
    if let Some(day) = read_date(text) {
        return Some(Value::Date(day));
    }
    // Every form begins with a year, so other texts end here.
    if !text.as_bytes().first()?.is_ascii_digit() || text.len() < 16 {
        return None;
    }
    let at = match DateTime::parse_from_rfc3339(text) {
        Ok(at) => Timestamp::from_millis(at.timestamp_millis()),
        Err(_) => {
            let forms = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M"];
            let mut local = forms.iter().filter_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
            calendar::instant(zone, local.next()?)
        }
    };
    let moment = Moment::new(at, zone);
    in_calendar(moment.instant().date_naive()).map(|_| Value::Time(moment))
}

/// The moment at which a day begins.
pub(crate) fn start(day: NaiveDate, zone: Tz) -> Timestamp {
    calendar::instant(zone, day.and_time(chrono::NaiveTime::MIN))
}

/// The moment of a time, or that at which a day begins.
pub(crate) fn instant(value: &Value<'_>, zone: Tz) -> Option<Timestamp> {
    match value {
        Value::Date(day) => Some(start(*day, zone)),
        Value::Time(moment) => Some(moment.at),
        _ => None,
    }
}
