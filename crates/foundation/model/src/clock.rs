//! Time and randomness, as traits, so that tests control both.

use crate::stored_time::StoredTime;
use chrono::{DateTime, Datelike, Duration, NaiveDate, NaiveDateTime, SubsecRound, Timelike, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

/// A moment in UTC with millisecond precision. On the wire RFC 3339, in the database `TIMESTAMP`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, diesel_derive_newtype::DieselNewType)]
#[diesel_newtype(try_from = StoredTime)]
pub struct Timestamp(NaiveDateTime);

impl From<StoredTime> for Timestamp {
    fn from(stored: StoredTime) -> Self {
        Self(stored.0)
    }
}

impl Timestamp {
    /// The moment `millis` milliseconds after 1970. Outside chrono's range it is 1970 itself.
    pub fn from_millis(millis: i64) -> Self {
        Self(DateTime::from_timestamp_millis(millis).unwrap_or_default().naive_utc())
    }

    /// Milliseconds since 1970.
    pub fn millis(self) -> i64 {
        self.0.and_utc().timestamp_millis()
    }

    /// Whole seconds since 1970.
    pub fn seconds(self) -> i64 {
        self.0.and_utc().timestamp()
    }

    /// This moment and `duration` more; unchanged where that leaves the calendar.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.checked_add_signed(duration).unwrap_or(self.0))
    }

    /// This moment `seconds` later (earlier when negative).
    #[must_use]
    pub fn plus_seconds(self, seconds: i64) -> Self {
        self.plus(Duration::seconds(seconds))
    }

    /// The UTC calendar day.
    pub fn day(self) -> NaiveDate {
        self.0.date()
    }

    /// The UTC calendar month as `2026-11`: the period of quotas and budgets.
    pub fn month(self) -> String {
        format!("{:04}-{:02}", self.0.year(), self.0.month())
    }

    /// Whether this is a moment of `month`, given as [`Timestamp::month`] prints it.
    pub fn is_in_month(self, month: &str) -> bool {
        let (year, number) = month.split_once('-').unwrap_or_default();
        year.parse() == Ok(self.0.year()) && number.parse() == Ok(self.0.month())
    }

    /// The first moment of this UTC month.
    #[must_use]
    pub fn month_start(self) -> Self {
        let day = self.0.date();
        Self::day_start(day.with_day(1).unwrap_or(day))
    }

    /// The first moment of the next UTC month.
    #[must_use]
    pub fn next_month_start(self) -> Self {
        let start = self.month_start().0.date();
        Self::day_start(start.checked_add_months(chrono::Months::new(1)).unwrap_or(start))
    }

    /// The same time of the same day `months` later, or of that month's last day where it has no such day; unchanged
    /// where that leaves the calendar.
    #[must_use]
    pub fn plus_months(self, months: u32) -> Self {
        Self(self.0.checked_add_months(chrono::Months::new(months)).unwrap_or(self.0))
    }

    /// Midnight at the beginning of `day`.
    pub fn day_start(day: NaiveDate) -> Self {
        Self(day.and_time(chrono::NaiveTime::MIN))
    }

    /// RFC 3339 in UTC with milliseconds, as on the wire.
    pub fn rfc3339(self) -> String {
        self.to_string()
    }

    /// As HTTP headers have it: `Sun, 06 Nov 1994 08:49:37 GMT`.
    pub fn http_date(self) -> String {
        self.0.format("%a, %d %b %Y %H:%M:%S GMT").to_string()
    }

    /// Reads RFC 3339 with any offset.
    pub fn parse(text: &str) -> Option<Self> {
        let time = DateTime::parse_from_rfc3339(text).ok()?;
        Some(Self(time.with_timezone(&Utc).naive_utc().trunc_subsecs(3)))
    }
}

/// RFC 3339. Every answer has several times, and chrono would read its own format anew for each.
impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (date, time) = (self.0.date(), self.0.time());
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |place: std::ops::Range<usize>, mut value: u32| {
            for digit in text.get_mut(place).into_iter().flatten().rev() {
                *digit = b'0' + (value % 10) as u8;
                value /= 10;
            }
        };
        // Other years have more digits, and a leap second is the sixty-first.
        let (Ok(year @ 0..=9999), 0..1_000_000_000) = (u32::try_from(date.year()), time.nanosecond()) else {
            return write!(out, "{}", self.0.format("%Y-%m-%dT%H:%M:%S%.3fZ"));
        };
        put(0..4, year);
        put(5..7, date.month());
        put(8..10, date.day());
        put(11..13, time.hour());
        put(14..16, time.minute());
        put(17..19, time.second());
        put(20..23, time.nanosecond() / 1_000_000);
        out.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not an RFC 3339 time"))
    }
}

impl utoipa::PartialSchema for Timestamp {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .format(Some(utoipa::openapi::SchemaFormat::KnownFormat(utoipa::openapi::KnownFormat::DateTime)))
            .into()
    }
}
impl utoipa::ToSchema for Timestamp {}

/// Where the time comes from.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;

    /// The same in nanoseconds since 1970, as exactly as the clock knows it.
    fn nanos(&self) -> i64 {
        self.now().millis().saturating_mul(1_000_000)
    }
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
        Timestamp(Utc::now().naive_utc().trunc_subsecs(3))
    }

    fn nanos(&self) -> i64 {
        #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
        Utc::now().timestamp_nanos_opt().unwrap_or(i64::MAX)
    }
}

/// A clock that stands still until it is moved: for tests.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.millis()))
    }

    /// Moves the clock on.
    pub fn advance(&self, duration: Duration) {
        self.0.fetch_add(duration.num_milliseconds(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// Where random bytes come from.
pub trait Random: Send + Sync {
    /// Fills `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

/// Zeros only. With it, an id is the smallest of its time, so a range of times is a range of ids.
#[derive(Clone, Copy, Debug)]
pub struct Zeros;

impl Random for Zeros {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

/// The operating system's generator, good for secrets.
///
/// It reads the system in blocks of 4 KiB, because a system call for each id costs more than the id.
#[derive(Debug, Default)]
pub struct SystemRandom {
    pool: Mutex<Vec<u8>>,
}

impl Random for SystemRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let mut pool = self.pool.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if pool.len() < bytes.len() {
            pool.resize(bytes.len().max(4096), 0);
            #[expect(
                clippy::panic,
                reason = "without randomness no secret can be made, and nothing may go on"
            )]
            if let Err(error) = getrandom::fill(&mut pool) {
                panic!("the operating system gives no random bytes: {error}");
            }
        }
        let keep = pool.len() - bytes.len();
        bytes.copy_from_slice(pool.get(keep..).unwrap_or_default());
        pool.truncate(keep);
    }
}

/// A repeatable generator for tests (SplitMix64). Never for secrets.
#[derive(Debug)]
pub struct SeededRandom(Mutex<u64>);

impl SeededRandom {
    /// The same seed gives the same bytes.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let mut state = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for byte in bytes {
            *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = *state;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            *byte = ((z ^ z >> 31) & 0xff) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_with_milliseconds_and_read_any_offset() {
        let time = Timestamp::from_millis(1_763_690_400_120);
        assert_eq!(time.rfc3339(), "2025-11-21T02:00:00.120Z");
        assert_eq!(Timestamp::parse("2025-11-21T04:00:00.1209+02:00"), Some(time));
        assert_eq!(Timestamp::parse("2025-11-21"), None);
        assert_eq!(Timestamp::from_millis(253_402_300_800_000).rfc3339(), "+10000-01-01T00:00:00.000Z");
        let leap = Timestamp::parse("2016-12-31T23:59:60.5Z").unwrap();
        assert_eq!(leap.rfc3339(), "2016-12-31T23:59:60.500Z");
    }

    #[test]
    fn times_print_as_chrono_prints_them() {
        let mut millis = -62_167_219_200_000_i64;
        while millis < 253_402_300_800_000 {
            let time = Timestamp::from_millis(millis);
            assert_eq!(time.rfc3339(), time.0.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string());
            millis += 86_399_999_999;
        }
    }

    #[test]
    fn months_turn_over() {
        let time = Timestamp::parse("2025-12-31T23:59:59.999Z").unwrap();
        assert_eq!(time.month(), "2025-12");
        assert!(time.is_in_month("2025-12"));
        assert!(!["", "2025-11", "2024-12", "-12"].into_iter().any(|month| time.is_in_month(month)));
        assert_eq!(time.next_month_start().rfc3339(), "2026-01-01T00:00:00.000Z");
        assert_eq!(time.month_start().rfc3339(), "2025-12-01T00:00:00.000Z");
        assert_eq!(time.plus_months(2).rfc3339(), "2026-02-28T23:59:59.999Z");
        assert_eq!(time.plus_months(u32::MAX), time);
    }

    #[test]
    fn system_randomness_never_repeats() {
        let random = SystemRandom::default();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..2000 {
            let mut bytes = [0; 16];
            random.fill(&mut bytes);
            assert!(seen.insert(bytes));
        }
    }
}
