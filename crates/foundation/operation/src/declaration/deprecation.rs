//! The retirement of operations: the headers that announce it, and the error that follows it.

use crate::BASE;
use crate::declaration::meta::{Meta, Method};
use model::{Code, Error, Result, Timestamp};

/// The minimum number of days between the announcement and the retirement: six months.
const LEAST_DAYS: i64 = 184;

/// A declared deprecation, parsed and checked.
pub(crate) struct Retiring {
    ends_at: Timestamp,
    alternative: &'static str,
    /// The path of the alternative, for the header `Link`.
    successor: String,
}

impl Retiring {
    /// Parses the declaration of an operation. Returns `None` for an operation without a deprecation.
    ///
    /// # Errors
    /// `internal_error` when a day is invalid, the time between the days is too short, or the alternative is not a
    /// method and a path.
    pub(crate) fn of(meta: &Meta) -> Result<Option<Self>> {
        let Some(declared) = &meta.deprecated else { return Ok(None) };
        let wrong = |what: &str| Error::internal(format!("the deprecation of {}: {what}", meta.id));
        let day =
            |text: &str| Timestamp::parse(&format!("{text}T00:00:00Z")).ok_or_else(|| wrong("not a day"));
        let (since, ends_at) = (day(declared.since)?, day(declared.sunset)?);
        if ends_at < since.plus_seconds(LEAST_DAYS * 24 * 3600) {
            return Err(wrong("six months must lie between announcement and end"));
        }
        let (method, path) = declared.alternative.split_once(' ').unwrap_or_default();
        // The alternative stands between quotes in a header.
        let is_path =
            path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
        if Method::parse(method).is_none() || !is_path {
            return Err(wrong("the alternative must be a method and a path"));
        }
        let successor = format!("{BASE}{}", path.replace('{', "%7B").replace('}', "%7D"));
        Ok(Some(Self { ends_at, alternative: declared.alternative, successor }))
    }

    /// Returns the headers that every response of the operation has.
    pub(crate) fn headers(&self, now: Timestamp) -> [(&'static str, String); 3] {
        let link = if now < self.ends_at {
            format!("</docs/>; rel=\"deprecation\"; type=\"text/html\"; title=\"{}\"", self.alternative)
        } else {
            format!("<{}>; rel=\"successor-version\"", self.successor)
        };
        [("deprecation", "true".to_owned()), ("sunset", self.ends_at.http_date()), ("link", link)]
    }

    /// Refuses a request after the retirement.
    ///
    /// # Errors
    /// `endpoint_retired`.
    pub(crate) fn check(&self, now: Timestamp) -> Result<()> {
        if now < self.ends_at {
            return Ok(());
        }
        let message = format!("This endpoint was retired. Use `{}` instead.", self.alternative);
        Err(Error::new(Code::EndpointRetired, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::declaration::meta::Deprecated;

    fn retiring(since: &'static str, sunset: &'static str, alternative: &'static str) -> Result<Retiring> {
        let meta = Meta {
            id: "old",
            method: Method::Get,
            path: "/old",
            scope: None,
            session: None,
            when_blocked: false,
            energy: false,
            recent_sign_in: None,
            json_rpc: false,
            ceiling: 100,
            body_mib: 1,
            changes: false,
            paging: None,
            deprecated: Some(Deprecated { since, sunset, alternative }),
            summary: "",
            description: "",
            file: "",
        };
        Ok(Retiring::of(&meta)?.unwrap())
    }

    #[test]
    fn six_months_lie_between_announcement_and_end() {
        assert!(retiring("2026-01-01", "2026-07-04", "GET /new").is_ok());
        assert!(retiring("2026-01-01", "2026-07-03", "GET /new").is_err());
        for day in ["", "2026-13-01", "2026-07-32", "soon"] {
            assert!(retiring("2026-01-01", day, "GET /new").is_err(), "{day}");
        }
        for alternative in ["", "GET", "FETCH /new", "GET new", "GET /\"new\"", "GET /new one"] {
            assert!(retiring("2026-01-01", "2027-01-01", alternative).is_err(), "{alternative}");
        }
    }

    #[test]
    fn the_end_is_midnight() {
        let retiring = retiring("2026-01-01", "2026-07-05", "GET /new/{id}").unwrap();
        let before = Timestamp::parse("2026-07-04T23:59:59.999Z").unwrap();
        let end = Timestamp::parse("2026-07-05T00:00:00Z").unwrap();
        assert!(retiring.check(before).is_ok());
        assert_eq!(retiring.check(end).unwrap_err().code(), Code::EndpointRetired);
        assert_eq!(retiring.headers(before)[1].1, "Sun, 05 Jul 2026 00:00:00 GMT");
        assert_eq!(
            retiring.headers(before)[2].1,
            "</docs/>; rel=\"deprecation\"; type=\"text/html\"; title=\"GET /new/{id}\""
        );
        assert_eq!(retiring.headers(end)[2].1, "</api/v1/new/%7Bid%7D>; rel=\"successor-version\"");
    }
}
