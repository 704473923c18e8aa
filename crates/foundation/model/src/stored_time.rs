//! Moments as databases give them.

use chrono::{NaiveDate, NaiveDateTime};
use diesel::deserialize::{FromSql, FromSqlRow};
use diesel::pg::{Pg, PgValue};
use diesel::sql_types;
use diesel::sqlite::{Sqlite, SqliteValue};

/// A moment as it is read from a database. SQLite has it as text, which chrono would read by a format that it interprets
/// anew for each: a page of records has dozens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromSqlRow)]
pub struct StoredTime(pub(crate) NaiveDateTime);

impl FromSql<sql_types::Timestamp, Sqlite> for StoredTime {
    fn from_sql(mut value: SqliteValue<'_, '_, '_>) -> diesel::deserialize::Result<Self> {
        match read(value.read_text().as_bytes()) {
            Some(time) => Ok(Self(time)),
            None => FromSql::<sql_types::Timestamp, Sqlite>::from_sql(value).map(Self),
        }
    }
}

impl FromSql<sql_types::Timestamp, Pg> for StoredTime {
    fn from_sql(value: PgValue<'_>) -> diesel::deserialize::Result<Self> {
        FromSql::<sql_types::Timestamp, Pg>::from_sql(value).map(Self)
    }
}

/// Reads `2026-11-25 20:10:00`, with up to nine digits of a second behind a point; `None` for whatever else SQLite knows.
fn read(text: &[u8]) -> Option<NaiveDateTime> {
    let (whole, fraction) = text.split_at_checked(19)?;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b' ', h1, h2, b':', i1, i2, b':', s1, s2] = *whole
    else {
        return None;
    };
    let day = NaiveDate::from_ymd_opt(
        i32::try_from(number(&[y1, y2, y3, y4])?).ok()?,
        number(&[m1, m2])?,
        number(&[d1, d2])?,
    );
    let nanos = match fraction {
        [] => 0,
        [b'.', digits @ ..] => {
            let missing = 9_usize.checked_sub(digits.len()).filter(|missing| *missing < 9)?;
            number(digits)? * 10_u32.pow(u32::try_from(missing).ok()?)
        }
        _ => return None,
    };
    day?.and_hms_nano_opt(number(&[h1, h2])?, number(&[i1, i2])?, number(&[s1, s2])?, nanos)
}

/// A number of at most nine digits.
fn number(digits: &[u8]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As diesel writes and reads it.
    const FORMAT: &str = "%F %T%.f";

    proptest! {
        #[test]
        fn what_is_written_is_read(seconds in -62_135_596_800..253_402_300_800_i64, nanos in prop_oneof![Just(0), (0..1_000_u32).prop_map(|ms| ms * 1_000_000), 0..1_000_000_000_u32]) {
            let time = chrono::DateTime::from_timestamp(seconds, nanos).unwrap().naive_utc();
            let text = time.format(FORMAT).to_string();
            prop_assert_eq!(read(text.as_bytes()), Some(time), "{}", text);
        }

        #[test]
        fn what_is_read_is_what_chrono_reads(text in "[0-9]{4}-[01][0-9]-[0-3][0-9][ T][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\\.[0-9]{0,11})?Z?") {
            if let Some(time) = read(text.as_bytes()) {
                prop_assert_eq!(NaiveDateTime::parse_from_str(&text, FORMAT), Ok(time), "{}", text);
            }
        }
    }

    #[test]
    fn others_are_left_to_diesel() {
        for text in [
            "",
            "2026-11-25",
            "2026-11-25T20:10:00",
            "2026-11-25 20:10:00Z",
            "2026-11-25 20:10:00.",
            "2026-02-30 00:00:00",
            "2460000.5",
            "2026-11-25 20:10:é0",
        ] {
            assert_eq!(read(text.as_bytes()), None, "{text}");
        }
    }
}
