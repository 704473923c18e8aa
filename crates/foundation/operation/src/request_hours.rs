//! Sums of the request log per hour: how many requests each key made, how they ended, and how long they took.
//!
//! The sums are written in the transaction of the rows that they count, so both are there or neither. They outlive the rows:
//! a summary of three months reads a few thousand sums and no rows.

use crate::schema::request_hours as hours;
use auth::keys::{KeyKind, is_of_kinds};
use diesel::prelude::*;
use model::{KeyId, Result, Timestamp, WorkspaceId, text_enum};
use std::collections::BTreeMap;
use store::{OnConflict, Read, Rows, Tx};

/// The number of latencies that are told apart.
pub const BUCKETS: usize = 12;

/// The upper bounds of the latencies that are told apart, in milliseconds. Slower requests count in the last one.
pub const BOUNDS_MS: [i64; BUCKETS] = [1, 2, 5, 10, 25, 50, 100, 250, 1_000, 5_000, 30_000, i64::MAX];

/// For how long sums are kept, in days.
const DAYS: i64 = 90;
/// The rows that one transaction of the purge job deletes.
const PIECE: i64 = 1_000;
const HOUR_MS: i64 = 3_600_000;

text_enum! {
    /// How requests ended.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum StatusClass {
        /// They succeeded: statuses below 400.
        Success = "success",
        /// They were refused: statuses from 400 to 499.
        Refused = "refused",
        /// The service or an agent failed: statuses from 500.
        Failed = "failed",
    }
}

impl StatusClass {
    /// Returns the class of a status.
    pub fn of(status: i64) -> Self {
        match status {
            ..400 => Self::Success,
            400..500 => Self::Refused,
            _ => Self::Failed,
        }
    }
}

/// The sum of an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HourSum {
    /// When the hour began.
    pub hour: Timestamp,
    /// How the requests ended.
    pub class: StatusClass,
    /// The number of requests.
    pub requests: i64,
    /// The number of requests that took at most as long as each of [`BOUNDS_MS`] and longer than the one before.
    pub within: [i64; BUCKETS],
}

/// Returns when the hour of a time began.
pub fn hour_of(time: Timestamp) -> Timestamp {
    Timestamp::from_millis(time.millis().div_euclid(HOUR_MS) * HOUR_MS)
}

/// The columns of the latencies.
const COLUMNS: [&str; BUCKETS] = [
    "within_0",
    "within_1",
    "within_2",
    "within_3",
    "within_4",
    "within_5",
    "within_6",
    "within_7",
    "within_8",
    "within_9",
    "within_10",
    "within_11",
];

/// A request that is counted.
pub(crate) struct Counted<'a> {
    /// The workspace.
    pub(crate) workspace: WorkspaceId,
    /// The key, if there was one.
    pub(crate) key: Option<&'a KeyId>,
    /// When the request came.
    pub(crate) at: Timestamp,
    /// The status of the response.
    pub(crate) status: i64,
    /// How long it took, in microseconds.
    pub(crate) latency_us: i64,
}

/// A sum that is to be added.
struct Added {
    workspace: WorkspaceId,
    hour: Timestamp,
    key: String,
    sum: HourSum,
}

/// Adds requests to the sums of their hours.
pub(crate) fn count<'a>(tx: &mut Tx, requests: impl Iterator<Item = Counted<'a>>) -> Result<()> {
    let mut sums: BTreeMap<(WorkspaceId, i64, &str, StatusClass), HourSum> = BTreeMap::new();
    for request in requests {
        let (hour, class) = (hour_of(request.at), StatusClass::of(request.status));
        let key = request.key.map_or("", KeyId::as_str);
        let sum = sums.entry((request.workspace, hour.millis(), key, class)).or_insert_with(|| HourSum {
            hour,
            class,
            requests: 0,
            within: [0; BUCKETS],
        });
        sum.requests += 1;
        let bucket = BOUNDS_MS.partition_point(|bound| bound.saturating_mul(1_000) < request.latency_us);
        if let Some(count) = sum.within.get_mut(bucket) {
            *count += 1;
        }
    }
    // In the order of the primary key, so that two replicas lock the rows that they share in one order.
    let added: Vec<Added> = sums
        .into_iter()
        .map(|((workspace, _, key, _), sum)| Added { workspace, hour: sum.hour, key: key.to_owned(), sum })
        .collect();
    if added.is_empty() { Ok(()) } else { store(tx, &added) }
}

fn store(tx: &mut Tx, added: &[Added]) -> Result<()> {
    let mut rows = Rows::of(added)
        .big_int("workspace_id", |row| row.workspace)
        .time("hour", |row| row.hour)
        .text("key_id", |row| row.key.as_str())
        .text("class", |row| row.sum.class.as_str())
        .big_int("requests", |row| row.sum.requests);
    for (place, column) in COLUMNS.into_iter().enumerate() {
        rows = rows.big_int(column, move |row| row.sum.within.get(place).copied().unwrap_or_default());
    }
    let plus = |column: &str| format!("{column} = request_hours.{column} + excluded.{column}");
    let set: Vec<String> = ["requests"].into_iter().chain(COLUMNS).map(plus).collect();
    let key = ["workspace_id", "hour", "key_id", "class"];
    rows.insert_or(tx, "request_hours", OnConflict::Update { key: &key, set: &set.join(", ") })?;
    Ok(())
}

type Four = (i64, i64, i64, i64);

/// The hour, how its requests ended, their number, and the counts of the buckets.
type Row = (Timestamp, StatusClass, i64, (Four, Four, Four));

/// Returns the sums of a workspace from the hour of `from` to that of `to`, in ascending order; those of one key, and of keys of
/// these kinds, if they are given.
pub fn between(
    read: &mut Read,
    workspace: WorkspaceId,
    key: Option<&KeyId>,
    kinds: Option<&[KeyKind]>,
    (from, to): (Timestamp, Timestamp),
) -> Result<Vec<HourSum>> {
    let mut query = hours::table
        .filter(hours::workspace_id.eq(workspace))
        .filter(hours::hour.between(hour_of(from), hour_of(to)))
        .order((hours::hour.asc(), hours::key_id.asc(), hours::class.asc()))
        .select((
            hours::hour,
            hours::class,
            hours::requests,
            (
                (hours::within_0, hours::within_1, hours::within_2, hours::within_3),
                (hours::within_4, hours::within_5, hours::within_6, hours::within_7),
                (hours::within_8, hours::within_9, hours::within_10, hours::within_11),
            ),
        ))
        .into_boxed();
    if let Some(key) = key {
        query = query.filter(hours::key_id.eq(key.as_str().to_owned()));
    }
    if let Some(kinds) = kinds {
        query = query.filter(is_of_kinds("request_hours.key_id", kinds));
    }
    let rows: Vec<Row> = query.load(read.connection())?;
    let sum = |(hour, class, requests, (a, b, c)): Row| HourSum {
        hour,
        class,
        requests,
        within: [a.0, a.1, a.2, a.3, b.0, b.1, b.2, b.3, c.0, c.1, c.2, c.3],
    };
    Ok(rows.into_iter().map(sum).collect())
}

/// Returns when the hour of the last request of a key began, if that is in the last 90 days.
pub fn last_of_key(read: &mut Read, workspace: WorkspaceId, key: &KeyId) -> Result<Option<Timestamp>> {
    let sums = hours::table.filter(hours::key_id.eq(key.as_str())).filter(hours::workspace_id.eq(workspace));
    Ok(sums.select(hours::hour).order(hours::hour.desc()).first(read.connection()).optional()?)
}

/// Deletes sums after 90 days. Returns the number of rows, which is 0 when none is left.
pub(crate) fn purge(tx: &mut Tx) -> Result<usize> {
    let before = tx.now().plus_seconds(-DAYS * 86_400);
    let oldest: Vec<(WorkspaceId, Timestamp)> = hours::table
        .filter(hours::hour.lt(before))
        .order(hours::hour.asc())
        .select((hours::workspace_id, hours::hour))
        .limit(PIECE)
        .load(tx.connection())?;
    let mut deleted = 0;
    let mut last = None;
    for hour in oldest {
        if last == Some(hour) {
            continue;
        }
        let (workspace, began) = hour;
        last = Some(hour);
        let rows = hours::table.filter(hours::workspace_id.eq(workspace)).filter(hours::hour.eq(began));
        deleted += diesel::delete(rows).execute(tx.connection())?;
    }
    Ok(deleted)
}
