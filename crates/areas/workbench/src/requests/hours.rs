//! Requests per hour: how many, how they ended, and how long they took.

use super::source::SourceFilter;
use model::{Caller, Error, KeyId, Result, Timestamp};
use operation::request_hours::{self, BOUNDS_MS, BUCKETS, HourSum, StatusClass};
use operation::{Json, Query, operation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::Read;
use utoipa::{IntoParams, ToSchema};

/// The longest time of one answer, in days.
const MOST_DAYS: i64 = 31;
const DAY_SECONDS: i64 = 86_400;

/// The hours to sum up.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct RequestHoursQuery {
    /// From the hour of this time; 24 hours ago if not given.
    #[serde(default)]
    pub from: Option<Timestamp>,
    /// To the hour of this time, at most 31 days later; now if not given.
    #[serde(default)]
    pub to: Option<Timestamp>,
    /// Requests of this key only.
    #[param(inline)]
    #[serde(default)]
    pub key_id: Option<KeyId>,
    /// Requests that came from here only.
    #[param(inline)]
    #[serde(default)]
    pub source: Option<SourceFilter>,
}

/// The requests of an hour.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "requests": 120, "refused": 3, "failed": 1, "p50_ms": 5, "p95_ms": 50 }))]
pub struct RequestHour {
    /// When the hour began.
    pub hour: Timestamp,
    /// The number of requests.
    pub requests: i64,
    /// Those of them that were refused: statuses from 400 to 499.
    pub refused: i64,
    /// Those of them that failed: statuses from 500.
    pub failed: i64,
    /// Half of the requests took at most so many milliseconds. `null` where that is more than 30 seconds.
    pub p50_ms: Option<i64>,
    /// 95 of 100 requests took at most so many milliseconds. `null` where that is more than 30 seconds.
    pub p95_ms: Option<i64>,
}

/// The requests of a time, per hour.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "requests": 120, "refused": 3, "failed": 1, "p50_ms": 5, "p95_ms": 50 }))]
pub struct RequestHours {
    /// Always `request_hours`.
    pub object: &'static str,
    /// When the first hour began.
    pub from: Timestamp,
    /// When the last hour began.
    pub to: Timestamp,
    /// The number of requests.
    pub requests: i64,
    /// Those of them that were refused.
    pub refused: i64,
    /// Those of them that failed.
    pub failed: i64,
    /// Half of the requests took at most so many milliseconds.
    pub p50_ms: Option<i64>,
    /// 95 of 100 requests took at most so many milliseconds.
    pub p95_ms: Option<i64>,
    /// The hours that had requests, in ascending order.
    pub hours: Vec<RequestHour>,
}

/// Requests per hour
///
/// Sums the requests of the workspace up, also those that the log has lost by its size: sums are kept for 90 days.
#[operation(get "/dashboard/request-hours", session = "logs:read")]
pub fn list_request_hours(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<RequestHoursQuery>,
) -> Result<Json<RequestHours>> {
    let to = query.to.unwrap_or_else(|| read.now());
    let from = query.from.unwrap_or_else(|| to.plus_seconds(-DAY_SECONDS));
    if from > to || to > from.plus_seconds(MOST_DAYS * DAY_SECONDS) {
        return Err(Error::invalid("to", "must be at most 31 days after `from`, and not before it"));
    }
    let (workspace, kinds) = (caller.workspace_id(), query.source.map(SourceFilter::kinds));
    let sums = request_hours::between(read, workspace, query.key_id.as_ref(), kinds, (from, to))?;
    Ok(Json(summary(&sums, (from, to))))
}

/// The counts of some requests.
#[derive(Default, Clone, Copy)]
struct Counts {
    requests: i64,
    refused: i64,
    failed: i64,
    within: [i64; BUCKETS],
}

impl Counts {
    fn add(&mut self, sum: &HourSum) {
        self.requests += sum.requests;
        match sum.class {
            StatusClass::Success => {}
            StatusClass::Refused => self.refused += sum.requests,
            StatusClass::Failed => self.failed += sum.requests,
        }
        for (own, more) in self.within.iter_mut().zip(sum.within) {
            *own += more;
        }
    }

    /// Returns the bound below which so many of 100 requests were answered.
    fn percentile(&self, percent: i64) -> Option<i64> {
        let wanted = (self.requests * percent + 99) / 100;
        let mut seen = 0;
        for (count, bound) in self.within.iter().zip(BOUNDS_MS) {
            seen += count;
            if seen >= wanted {
                return Some(bound).filter(|bound| *bound < i64::MAX);
            }
        }
        None
    }
}

fn summary(sums: &[HourSum], (from, to): (Timestamp, Timestamp)) -> RequestHours {
    let (mut all, mut hours) = (Counts::default(), BTreeMap::<Timestamp, Counts>::new());
    for sum in sums {
        all.add(sum);
        hours.entry(sum.hour).or_default().add(sum);
    }
    let hour = |(hour, counts): (Timestamp, Counts)| RequestHour {
        hour,
        requests: counts.requests,
        refused: counts.refused,
        failed: counts.failed,
        p50_ms: counts.percentile(50),
        p95_ms: counts.percentile(95),
    };
    RequestHours {
        object: "request_hours",
        from: request_hours::hour_of(from),
        to: request_hours::hour_of(to),
        requests: all.requests,
        refused: all.refused,
        failed: all.failed,
        p50_ms: all.percentile(50),
        p95_ms: all.percentile(95),
        hours: hours.into_iter().map(hour).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn a_percentile_is_the_bound_below_which_so_many_are() {
        let mut counts = Counts { requests: 100, ..Counts::default() };
        (counts.within[0], counts.within[4], counts.within[11]) = (50, 45, 5);
        assert_eq!((counts.percentile(50), counts.percentile(95)), (Some(1), Some(25)));
        assert_eq!(counts.percentile(99), None);
    }
}
