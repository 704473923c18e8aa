//! `GET /billing/usage`.

use crate::ledger::UNMETERED;
use crate::schema::energy_entries;
use chrono::{Days, NaiveDate};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use model::{Caller, Error, Result, Timestamp, WorkspaceId, text_enum};
use operation::{Json, Query, operation};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use store::Read;
use utoipa::{IntoParams, ToSchema};

/// The longest time that is summed up, in days.
const MOST_DAYS: i64 = 92;
const DEFAULT_DAYS: u64 = 30;

text_enum! {
    /// How usage is grouped.
    #[derive(Default)]
    pub enum GroupBy {
        /// By calendar day (UTC).
        #[default]
        Day = "day",
        /// By API key. A key and its rotated successors count as one.
        Key = "key",
        /// By agent.
        Agent = "agent",
        /// By type of work, such as `run`.
        Operation = "operation",
        /// By model.
        Model = "model",
    }
}

/// Which usage is wanted.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
pub struct UsageQuery {
    /// The first day (UTC); 29 days before `to` if not given.
    pub from: Option<NaiveDate>,
    /// The last day (UTC), at most 92 days after the first; today if not given.
    pub to: Option<NaiveDate>,
    /// How to group the usage.
    #[param(inline)]
    #[serde(default)]
    pub group_by: GroupBy,
}

/// Requests and Energy of a period.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "group_by": "day" }))]
pub struct UsageReport {
    /// Always `usage`.
    object: &'static str,
    /// The first day.
    from: NaiveDate,
    /// The last day.
    to: NaiveDate,
    /// How the usage is grouped.
    group_by: GroupBy,
    /// One row for each group with any usage, ordered by `group`.
    rows: Vec<UsageReportRow>,
}

/// The usage of one group.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "group": "2026-11-20", "requests": 120, "energy": 504, "usd_micros": 504000, "count": 42 }))]
pub struct UsageReportRow {
    /// The day, id or name of the group. `null` for usage that belongs to no group.
    group: Option<String>,
    /// The number of authorized requests. Only for the groups `day` and `key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    requests: Option<i64>,
    /// The Energy spent, after refunds; what it would have been on a plan that does not meter Energy. Negative if it
    /// contains refunds for earlier days.
    energy: i64,
    /// The value of that Energy in millionths of a US dollar.
    usd_micros: i64,
    /// The number of steps with a price.
    count: i64,
}

/// Requests and Energy by day, key and agent
///
/// Returns Energy for each group of `group_by`, and the number of requests for days and keys. The period has at most 92
/// days and ends today if not given.
#[operation(get "/billing/usage", scope = "billing:read")]
pub fn get_usage(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<UsageQuery>,
) -> Result<Json<UsageReport>> {
    let workspace = caller.workspace_id();
    let (from, to) = days(&query, read.now().day())?;
    let mut rows: BTreeMap<Option<String>, UsageReportRow> = BTreeMap::new();
    for spent in spent(read, workspace, from, to, query.group_by)? {
        let row = row_of(&mut rows, spent.group);
        row.energy += spent.energy;
        row.usd_micros += spent.usd_micros;
        row.count += spent.count;
    }
    if matches!(query.group_by, GroupBy::Day | GroupBy::Key) {
        for row in rows.values_mut() {
            row.requests = Some(0);
        }
        let counted = match query.group_by {
            GroupBy::Day => auth::requests_by_day(read, workspace, from, to)?,
            _ => auth::requests_by_lineage(read, workspace, from, to)?,
        };
        for (group, requests) in counted {
            let row = row_of(&mut rows, Some(group));
            row.requests = Some(requests);
        }
    }
    Ok(Json(UsageReport {
        object: "usage",
        from,
        to,
        group_by: query.group_by,
        rows: rows.into_values().collect(),
    }))
}

fn row_of(rows: &mut BTreeMap<Option<String>, UsageReportRow>, group: Option<String>) -> &mut UsageReportRow {
    let empty = UsageReportRow { group: group.clone(), requests: None, energy: 0, usd_micros: 0, count: 0 };
    rows.entry(group).or_insert(empty)
}

fn days(query: &UsageQuery, today: NaiveDate) -> Result<(NaiveDate, NaiveDate)> {
    // Years beyond four digits sort wrongly as text, and nobody has usage then.
    for (param, day) in [("from", query.from), ("to", query.to)] {
        if day.is_some_and(|day| !(1970..=9999).contains(&chrono::Datelike::year(&day))) {
            return Err(Error::invalid(param, "must be between 1970 and 9999"));
        }
    }
    let to = query.to.unwrap_or_else(|| query.from.map_or(today, |from| from.max(today)));
    let from = query.from.or_else(|| to.checked_sub_days(Days::new(DEFAULT_DAYS - 1))).unwrap_or(to);
    if from > to {
        return Err(Error::invalid("from", "must not be after `to`"));
    }
    if (to - from).num_days() > MOST_DAYS {
        let param = if query.to.is_some() { "to" } else { "from" };
        return Err(Error::invalid(
            param,
            format_args!("must be at most {MOST_DAYS} days from the other day"),
        ));
    }
    Ok((from, to))
}

#[derive(Queryable)]
struct Spent {
    group: Option<String>,
    energy: i64,
    usd_micros: i64,
    count: i64,
}

fn spent(
    read: &mut Read,
    workspace: WorkspaceId,
    from: NaiveDate,
    to: NaiveDate,
    group_by: GroupBy,
) -> Result<Vec<Spent>> {
    use energy_entries as e;
    let column = match group_by {
        GroupBy::Day if read.is_postgres() => "to_char(created_at, 'YYYY-MM-DD')",
        GroupBy::Day => "substr(created_at, 1, 10)",
        GroupBy::Key => "key_id",
        GroupBy::Agent => "CAST(agent_id AS TEXT)",
        GroupBy::Operation => "operation",
        GroupBy::Model => "model",
    };
    let end = to.checked_add_days(Days::new(1)).unwrap_or(to);
    let mut rows: Vec<Spent> = e::table
        .filter(e::workspace_id.eq(workspace))
        .filter(e::created_at.ge(Timestamp::day_start(from)))
        .filter(e::created_at.lt(Timestamp::day_start(end)))
        .filter(e::counter_account.eq_any(["consumed", UNMETERED]))
        .group_by(sql::<Nullable<Text>>(column))
        .select((
            sql::<Nullable<Text>>(column),
            sql::<BigInt>("CAST(SUM(-amount) AS BIGINT)"),
            sql::<BigInt>("CAST(SUM(-usd_micros) AS BIGINT)"),
            sql::<BigInt>("CAST(SUM(CASE WHEN kind = 'debit' THEN 1 ELSE 0 END) AS BIGINT)"),
        ))
        .load(read.connection())?;
    if group_by == GroupBy::Key {
        let keys: Vec<&str> = rows.iter().filter_map(|row| row.group.as_deref()).collect();
        let lineages = auth::keys::lineages(read, &keys)?;
        for row in &mut rows {
            row.group = row.group.take().map(|key| lineages.get(&key).cloned().unwrap_or(key));
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(from: &str, to: &str) -> UsageQuery {
        UsageQuery { from: from.parse().ok(), to: to.parse().ok(), group_by: GroupBy::Day }
    }

    #[test]
    fn days_have_defaults_and_bounds() {
        let today: NaiveDate = "2026-01-15".parse().unwrap();
        let of = |from, to| days(&query(from, to), today).map(|(from, to)| format!("{from} {to}"));
        assert_eq!(of("", "").unwrap(), "2025-12-17 2026-01-15");
        assert_eq!(of("2026-01-10", "").unwrap(), "2026-01-10 2026-01-15");
        assert_eq!(of("", "2025-03-31").unwrap(), "2025-03-02 2025-03-31");
        assert_eq!(of("2026-01-01", "2026-04-03").unwrap(), "2026-01-01 2026-04-03");
        assert_eq!(of("2026-01-01", "2026-04-04").unwrap_err().param_name(), Some("to"));
        assert_eq!(of("2025-01-01", "").unwrap_err().param_name(), Some("from"));
        assert_eq!(of("2026-01-02", "2026-01-01").unwrap_err().param_name(), Some("from"));
    }
}
