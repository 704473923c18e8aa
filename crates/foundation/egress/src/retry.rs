//! The `Retry-After` header.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime};

/// Parses a `Retry-After` header and returns the time to wait. `now_millis` is the current time in milliseconds since
/// 1970. The value is a number of seconds, possibly with a fraction, or a date in one of the three forms of RFC 9110,
/// 5.6.7. A date in the past means no wait. Returns `None` for any other value.
pub fn retry_after(header: &str, now_millis: i64) -> Option<Duration> {
    let header = header.trim();
    if header.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        let seconds: f64 = header.parse().ok()?;
        // Larger numbers are treated as errors of the sender.
        return Duration::try_from_secs_f64(seconds).ok().filter(|wait| wait.as_secs() < u64::from(u32::MAX));
    }
    let wait = date(header)?.saturating_sub(now_millis).max(0);
    u64::try_from(wait).ok().map(Duration::from_millis)
}

/// Parses an HTTP date into milliseconds since 1970.
fn date(text: &str) -> Option<i64> {
    if let Ok(date) = DateTime::parse_from_rfc2822(text) {
        return Some(date.timestamp_millis());
    }
    // Obsolete forms that recipients must still accept (RFC 9110, 5.6.7).
    ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"]
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
        .map(|date| date.and_utc().timestamp_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_seconds_or_dates() {
        let now = 784_111_777_000; // Sun, 06 Nov 1994 08:49:37 GMT
        let seconds = |seconds: f64| Some(Duration::from_secs_f64(seconds));
        for (header, wait) in [
            ("0", seconds(0.0)),
            (" 120 ", seconds(120.0)),
            ("1.5", seconds(1.5)),
            ("Sun, 06 Nov 1994 08:49:39 GMT", seconds(2.0)),
            ("Sunday, 06-Nov-94 08:49:40 GMT", seconds(3.0)),
            ("Sun Nov  6 08:49:41 1994", seconds(4.0)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", seconds(0.0)),
            ("99999999999999999999999", None),
            ("-5", None),
            ("", None),
            ("soon", None),
            ("1,5", None),
            ("NaN", None),
            ("Sun, 06 Foo 1994 08:49:37 GMT", None),
        ] {
            assert_eq!(retry_after(header, now), wait, "{header:?}");
        }
    }
}
