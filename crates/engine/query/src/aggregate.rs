//! Aggregation of items: counts, sums and other functions, by group.

use super::params::QueryParams;
use super::planning::planner::Planner;
use super::scan;
use super::tally::{self, Cell, Function, Group, Groups, Level};
use super::types::{Query, Report};
use chrono::{Datelike, Days, NaiveDate};
use chrono_tz::Tz;
use fields::ComputedError;
use fields::filter::{name_of, subject};
use fields::formula::zone_of;
use fields::key;
use fields::saved::refuse_ungroupable;
use fields::sort::Sort;
use fields::value;
use fields::{Family, Subject};
use input::comma_list;
use model::{Error, Result, Timestamp};
use operation::{Describe, FromInput, Input};
use records::shape::{IndexKind, IndexStatus, Shape};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use store::Read;
use utoipa::{IntoParams, ToSchema};

/// The maximum number of fields to group by.
const MOST_LEVELS: usize = 2;
/// The maximum number of functions.
const MOST_METRICS: usize = 10;

#[derive(Debug, Clone, Deserialize, IntoParams)]
struct AggregateQuery {
    /// Up to 10 functions, separated by commas: `count`, `sum:price`, `avg:price`, `min:price`, `max:price`,
    /// `distinct:status`.
    #[param(default = "count", example = "count,avg:price")]
    metrics: Option<String>,
    /// Up to 2 fields to group by, separated by commas. Dates and times can be truncated, as in `created_at:month`, to
    /// `day`, `week` (starting on Monday), `month`, `quarter` or `year`.
    #[param(example = "category")]
    group_by: Option<String>,
    /// The IANA time zone for truncated times; that of the field, or UTC, if not given.
    #[param(example = "Europe/Berlin")]
    time_zone: Option<String>,
}

/// The parsed parameters of an aggregation.
#[derive(Debug, Clone)]
pub struct Aggregation {
    params: QueryParams,
    query: AggregateQuery,
}

impl FromInput for Aggregation {
    fn from_input(input: &Input<'_>, name: &'static str) -> Result<Self> {
        let operation::Query(query) = operation::Query::from_input(input, name)?;
        Ok(Self { params: QueryParams::from_input(input, name)?, query })
    }

    fn describe(describe: &mut Describe, name: &'static str) {
        describe.query_parameters::<AggregateQuery>();
        QueryParams::describe(describe, name);
    }
}

/// The result of an aggregation.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Aggregate {
    /// Always `aggregate`.
    pub object: &'static str,
    /// The groups, ordered by their values. Items without a value come last. A single group without `group_by`.
    pub groups: Vec<AggregateGroup>,
}

/// A group of items.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "group": { "category": "toys" }, "values": { "count": 50, "avg:price": 31.3 }, "errors": {} }))]
pub struct AggregateGroup {
    /// The values of the group, by the names in `group_by`. A truncated time is the first day of its period.
    #[schema(value_type = Object)]
    pub group: Map<String, Value>,
    /// The results by the names in `metrics`. Without values, all but counts are `null`.
    #[schema(value_type = Object)]
    pub values: Map<String, Value>,
    /// Why results in `values` are `null` although there are values, by the names in `metrics`.
    pub errors: BTreeMap<String, ComputedError>,
}

impl Aggregation {
    /// Returns the query that selects the items, in no particular order.
    ///
    /// # Errors
    /// 400 `validation_error`.
    pub fn query(&self, read: &mut Read, shape: &Shape) -> Result<Query> {
        let parsed = self.params.read(read, shape, false)?;
        Ok(Query::new(parsed.query.filter, Sort::of(&[]), false))
    }

    /// Computes the groups, with a report of the plan that was used.
    ///
    /// # Errors
    /// 400 `validation_error` or `query_too_expensive`.
    pub fn run(
        &self,
        read: &mut Read,
        planner: &Planner,
        shape: &Shape,
        query: &Query,
    ) -> Result<(Vec<AggregateGroup>, Report)> {
        let request = AggregateRequest::read(shape, &self.query)?;
        let counted = if request.is_bare_count() { count_by_keys(read, shape, query)? } else { None };
        let Some((count, report)) = counted else { return request.run(read, planner, shape, query) };
        let values = Map::from_iter([("count".to_owned(), count.into())]);
        Ok((vec![AggregateGroup { group: Map::new(), values, errors: BTreeMap::new() }], report))
    }
}

/// Counts the records that a query finds.
///
/// # Errors
/// 400 `query_too_expensive`.
pub fn count(read: &mut Read, planner: &Planner, shape: &Shape, query: &Query) -> Result<i64> {
    if let Some((count, _)) = count_by_keys(read, shape, query)? {
        return Ok(count);
    }
    let count = Metric { name: "count".to_owned(), function: Function::Count, subject: None };
    let request = AggregateRequest { metrics: vec![count], levels: Vec::new() };
    let (groups, _) = request.run(read, planner, shape, query)?;
    let count = groups.first().and_then(|group| group.values.get("count")).and_then(Value::as_i64);
    Ok(count.unwrap_or_default())
}

/// The common values of a group's records, and the number of records.
pub type CountedGroup = (Vec<Value>, i64);

/// Counts the records that a query finds for each combination of values of up to 3 fields. Also returns a report of
/// the plan.
///
/// # Errors
/// 400 `query_too_expensive`.
pub fn count_by(
    read: &mut Read,
    planner: &Planner,
    shape: &Shape,
    query: &Query,
    keys: [&str; tally::MOST_LEVELS],
) -> Result<(Vec<CountedGroup>, Report)> {
    let level = |key: &str| {
        Ok(FieldLevel { name: key.to_owned(), subject: subject(shape, key, "group_by")?, span: None })
    };
    let levels = keys.into_iter().map(level).collect::<Result<Vec<_>>>()?;
    let count = Metric { name: "count".to_owned(), function: Function::Count, subject: None };
    let request = AggregateRequest { metrics: vec![count], levels };
    let (groups, report) = request.run(read, planner, shape, query)?;
    let counted = |mut group: AggregateGroup| {
        let count = group.values.get("count").and_then(Value::as_i64).unwrap_or_default();
        (keys.iter().map(|key| group.group.remove(*key).unwrap_or_default()).collect(), count)
    };
    Ok((groups.into_iter().map(counted).collect(), report))
}

/// Counts items by keys alone, without reading items. Possible for all items, and for one value of a field whose
/// index keys are exact. Otherwise returns `None`.
fn count_by_keys(read: &mut Read, shape: &Shape, query: &Query) -> Result<Option<(i64, Report)>> {
    let report = |plan: String| Report { plan, uses: Vec::new(), visited: 0, cost: 0 };
    let musts = query.filter.musts();
    if query.filter.is_empty() {
        let count = scan::count_items(read, shape, i64::MAX)?;
        return Ok(Some((count, report("keys(id)".to_owned()))));
    }
    let ([condition], true) = (musts.as_slice(), query.filter.is_conjunction()) else { return Ok(None) };
    let index = shape.indexes.iter().find(|index| {
        index.kind == IndexKind::Single
            && index.status == IndexStatus::Ready
            && index.parts.first().is_some_and(|part| part.subject == condition.subject)
    });
    match (index, condition.ranges()) {
        (Some(index), Some(ranges)) if condition.is_told_by_keys() => {
            let count = scan::count_keys(read, index.id, &ranges, i64::MAX)?;
            Ok(Some((count, report(format!("keys({})", name_of(condition.subject, shape))))))
        }
        _ => Ok(None),
    }
}

#[derive(Debug, Clone)]
struct Metric {
    name: String,
    function: Function,
    subject: Option<Subject>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Span {
    Day,
    Week,
    Month,
    Quarter,
    Year,
}

#[derive(Debug, Clone)]
struct FieldLevel {
    name: String,
    subject: Subject,
    /// The period to which times are truncated, in a time zone.
    span: Option<(Span, Tz)>,
}

/// The validated functions and groups.
struct AggregateRequest {
    metrics: Vec<Metric>,
    levels: Vec<FieldLevel>,
}

impl AggregateRequest {
    fn read(shape: &Shape, query: &AggregateQuery) -> Result<Self> {
        let zone = query.time_zone.as_deref().map(|zone| {
            let zone = zone.parse::<Tz>();
            zone.map_err(|_| Error::invalid("time_zone", "must be a time zone such as Europe/Madrid"))
        });
        let zone = zone.transpose()?;
        let metrics = comma_list(query.metrics.as_deref().unwrap_or("count"), "metrics")?;
        if metrics.len() > MOST_METRICS {
            return Err(Error::invalid(
                "metrics",
                format_args!("must have at most {MOST_METRICS} functions"),
            ));
        }
        let metrics = metrics.into_iter().map(|one| metric(shape, one)).collect::<Result<_>>()?;
        let levels = query.group_by.as_deref().map(|text| comma_list(text, "group_by")).transpose()?;
        let levels = levels.unwrap_or_default();
        if levels.len() > MOST_LEVELS {
            return Err(Error::invalid("group_by", format_args!("must have at most {MOST_LEVELS} fields")));
        }
        let levels = levels.into_iter().map(|one| level(shape, one, zone)).collect::<Result<_>>()?;
        Ok(Self { metrics, levels })
    }

    fn is_bare_count(&self) -> bool {
        self.levels.is_empty() && matches!(self.metrics.as_slice(), [one] if one.function == Function::Count)
    }

    fn run(
        &self,
        read: &mut Read,
        planner: &Planner,
        shape: &Shape,
        query: &Query,
    ) -> Result<(Vec<AggregateGroup>, Report)> {
        let metrics: Vec<_> = self.metrics.iter().map(|one| (one.function, one.subject)).collect();
        let mut groups = Groups::new(shape, &self.levels, &metrics);
        let (subjects, by_columns) = (groups.subjects(), groups.are_known_by_columns());
        let report = query.summarize(read, planner, shape, &subjects, by_columns, &mut groups)?;
        let group = |(group, tallies): Group| {
            let mut answer = AggregateGroup { group, values: Map::new(), errors: BTreeMap::new() };
            for (one, tally) in self.metrics.iter().zip(tallies) {
                let computed = one.is_computed(shape);
                let value = tally.value(one.function, computed).unwrap_or_else(|loss| {
                    answer.errors.insert(one.name.clone(), loss.into());
                    Value::Null
                });
                answer.values.insert(one.name.clone(), value);
            }
            answer
        };
        Ok((groups.into_groups().into_iter().map(group).collect(), report))
    }
}

impl Level for FieldLevel {
    fn subject(&self) -> Subject {
        self.subject
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn cut(&self, cell: &Cell, place: &mut Vec<u8>) -> Value {
        let Some((span, zone)) = self.span else {
            cell.push_place(place);
            return cell.value.clone();
        };
        let day = match &cell.value {
            Value::String(text) => value::date(text)
                .or_else(|| fields::filter::relative::local_day(Timestamp::parse(text)?, zone)),
            _ => None,
        };
        match day.and_then(|day| first_day(day, span)) {
            Some(day) => {
                key::push_integer(place, i64::from(day.num_days_from_ce()), false);
                day.format("%Y-%m-%d").to_string().into()
            }
            None => {
                place.push(key::NOTHING);
                Value::Null
            }
        }
    }
}

fn first_day(day: NaiveDate, span: Span) -> Option<NaiveDate> {
    match span {
        Span::Day => Some(day),
        Span::Week => day.checked_sub_days(Days::new(u64::from(day.weekday().num_days_from_monday()))),
        Span::Month => day.with_day(1),
        Span::Quarter => day.with_day(1)?.with_month((day.month0() / 3) * 3 + 1),
        Span::Year => NaiveDate::from_ymd_opt(day.year(), 1, 1),
    }
}

impl Metric {
    /// Returns whether the aggregated values are computed themselves, such as rollups.
    fn is_computed(&self, shape: &Shape) -> bool {
        match self.subject {
            Some(Subject::Field(id)) => shape.field_by_id(id).is_some_and(|field| field.kind.is_computed()),
            _ => false,
        }
    }
}

fn metric(shape: &Shape, text: &str) -> Result<Metric> {
    let (function, field) = match text.split_once(':') {
        Some((function, field)) => (function, Some(field)),
        None => (text, None),
    };
    let function = match function {
        "count" => Function::Count,
        "sum" => Function::Sum,
        "avg" => Function::Avg,
        "min" => Function::Min,
        "max" => Function::Max,
        "distinct" => Function::Distinct,
        _ => {
            let rule = "must be `count`, or `sum`, `avg`, `min`, `max` or `distinct` with a field, such as `sum:price`";
            return Err(Error::invalid("metrics", rule));
        }
    };
    let name = text.to_owned();
    let field = match (function, field) {
        (Function::Count, None) => return Ok(Metric { name, function, subject: None }),
        (Function::Count, Some(_)) => {
            return Err(Error::invalid("metrics", "has `count` with a field, which it does not support"));
        }
        (_, None) => return Err(Error::invalid("metrics", format_args!("has `{text}` without a field"))),
        (_, Some(field)) => field,
    };
    let subject = subject(shape, field, "metrics")?;
    let family = subject.family(shape).unwrap_or(Family::Json);
    let fits = match function {
        Function::Sum | Function::Avg => family == Family::Number,
        Function::Min | Function::Max => family.is_ordered(),
        _ => family != Family::Json,
    };
    if !fits {
        return Err(Error::invalid(
            "metrics",
            format_args!("cannot have `{text}`: the field's type does not allow it"),
        ));
    }
    Ok(Metric { name, function, subject: Some(subject) })
}

fn level(shape: &Shape, text: &str, zone: Option<Tz>) -> Result<FieldLevel> {
    let (field, span) = match text.split_once(':') {
        None => (text, None),
        Some((field, span)) => {
            let span = match span {
                "day" => Span::Day,
                "week" => Span::Week,
                "month" => Span::Month,
                "quarter" => Span::Quarter,
                "year" => Span::Year,
                _ => {
                    return Err(Error::invalid(
                        "group_by",
                        "must be truncated to `day`, `week`, `month`, `quarter` or `year`",
                    ));
                }
            };
            (field, Some(span))
        }
    };
    let subject = subject(shape, field, "group_by")?;
    refuse_ungroupable(shape, subject, "group_by")?;
    let is_time = matches!(subject.family(shape), Some(Family::Date | Family::Datetime));
    if span.is_some() && !is_time {
        return Err(Error::invalid(
            "group_by",
            format_args!("truncates `{field}`, which is neither a date nor a time"),
        ));
    }
    let own = match subject {
        Subject::Field(id) => shape.field_by_id(id).and_then(|field| zone_of(shape, field)),
        Subject::System(_) => None,
    };
    let zone = zone.or(own).unwrap_or(Tz::UTC);
    Ok(FieldLevel { name: text.to_owned(), subject, span: span.map(|span| (span, zone)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_cut() {
        let day = value::date("2026-08-15").unwrap();
        for (span, first) in [
            (Span::Day, "2026-08-15"),
            (Span::Week, "2026-08-10"),
            (Span::Month, "2026-08-01"),
            (Span::Quarter, "2026-07-01"),
            (Span::Year, "2026-01-01"),
        ] {
            assert_eq!(first_day(day, span).unwrap().to_string(), first);
        }
        assert_eq!(
            first_day(value::date("2026-05-31").unwrap(), Span::Quarter).unwrap().to_string(),
            "2026-04-01"
        );
    }
}
