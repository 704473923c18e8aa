//! Days and moments that depend on the present one: `today-7d`, `now-2h`.

use chrono::{Days, Months, NaiveDate};
use chrono_tz::Tz;
use model::Timestamp;

/// The day that `text` names: `today`, `yesterday` or `tomorrow`, and as far from it as `+` or `-` says in days (`d`),
/// weeks (`w`), months (`m`) or years (`y`). Days begin at midnight in `zone`.
pub fn day(text: &str, now: Timestamp, zone: Tz) -> Option<NaiveDate> {
    let today = local_day(now, zone)?;
    let (day, rest) = if let Some(rest) = text.strip_prefix("today") {
        (today, rest)
    } else if let Some(rest) = text.strip_prefix("yesterday") {
        (today.pred_opt()?, rest)
    } else {
        (today.succ_opt()?, text.strip_prefix("tomorrow")?)
    };
    if rest.is_empty() {
        return Some(day);
    }
    let (sign, count, unit) = distance(rest)?;
    let days = |days: u64| {
        if sign { day.checked_add_days(Days::new(days)) } else { day.checked_sub_days(Days::new(days)) }
    };
    let months = |months: u32| {
        let months = Months::new(months);
        if sign { day.checked_add_months(months) } else { day.checked_sub_months(months) }
    };
    let moved = match unit {
        'd' => days(count.into()),
        'w' => days(u64::from(count) * 7),
        'm' => months(count),
        'y' => months(count * 12),
        _ => None,
    }?;
    (0..=9999).contains(&chrono::Datelike::year(&moved)).then_some(moved)
}

/// The moment that `text` names: `now`, and as far from it as `+` or `-` says in minutes (`min`), hours (`h`), days
/// (`d`) or weeks (`w`).
pub fn moment(text: &str, now: Timestamp) -> Option<Timestamp> {
    let rest = text.strip_prefix("now")?;
    if rest.is_empty() {
        return Some(now);
    }
    let (sign, count, unit) = match rest.strip_suffix("min") {
        Some(rest) => {
            let (sign, count, _) = distance(&format!("{rest}m"))?;
            (sign, count, 60)
        }
        None => {
            let (sign, count, unit) = distance(rest)?;
            let unit = match unit {
                'h' => 3_600,
                'd' => 86_400,
                'w' => 604_800,
                _ => return None,
            };
            (sign, count, unit)
        }
    };
    let seconds = i64::from(count) * unit;
    Some(now.plus_seconds(if sign { seconds } else { -seconds }))
}

/// The first moment of a day in `zone`.
pub fn midnight(day: NaiveDate, zone: Tz) -> Option<Timestamp> {
    crate::checking::value::datetime(&day.format("%Y-%m-%d").to_string(), Some(zone))
}

/// The day that it is in `zone`.
pub fn local_day(now: Timestamp, zone: Tz) -> Option<NaiveDate> {
    let now = chrono::DateTime::from_timestamp_millis(now.millis())?;
    Some(now.with_timezone(&zone).date_naive())
}

/// `+7d`: whether it is later, how many (up to 9,999), and of what.
fn distance(text: &str) -> Option<(bool, u32, char)> {
    let sign = match text.chars().next()? {
        // A plus that was not encoded in an address arrives as a space.
        '+' | ' ' => true,
        '-' => false,
        _ => return None,
    };
    let unit = text.chars().next_back()?;
    let digits = text.get(1..text.len() - unit.len_utf8())?;
    let sound = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    Some((sign, digits.parse().ok().filter(|_| sound)?, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_today_in_their_zone() {
        let now = Timestamp::parse("2026-03-31T23:30:00Z").unwrap();
        for (text, zone, expected) in [
            ("today", "UTC", Some("2026-03-31")),
            ("today", "Europe/Madrid", Some("2026-04-01")),
            ("yesterday", "UTC", Some("2026-03-30")),
            ("tomorrow+1d", "UTC", Some("2026-04-02")),
            ("today-7d", "UTC", Some("2026-03-24")),
            ("today-1m", "UTC", Some("2026-02-28")),
            ("today+2w", "UTC", Some("2026-04-14")),
            ("today-1y", "UTC", Some("2025-03-31")),
            ("today-9999y", "UTC", None),
            ("today 3d", "UTC", Some("2026-04-03")),
            ("today7d", "UTC", None),
            ("today+d", "UTC", None),
            ("today+99999d", "UTC", None),
            ("today+1é", "UTC", None),
            ("toda", "UTC", None),
        ] {
            let found = day(text, now, zone.parse().unwrap()).map(|day| day.to_string());
            assert_eq!(found.as_deref(), expected, "{text} {zone}");
        }
    }

    #[test]
    fn moments_are_counted_from_now() {
        let now = Timestamp::parse("2026-03-31T23:30:00Z").unwrap();
        for (text, expected) in [
            ("now", Some("2026-03-31T23:30:00.000Z")),
            ("now-2h", Some("2026-03-31T21:30:00.000Z")),
            ("now+30min", Some("2026-04-01T00:00:00.000Z")),
            ("now-1w", Some("2026-03-24T23:30:00.000Z")),
            ("now-1m", None),
            ("now-", None),
            ("nowmin", None),
        ] {
            assert_eq!(moment(text, now).map(Timestamp::rfc3339).as_deref(), expected, "{text}");
        }
    }
}
