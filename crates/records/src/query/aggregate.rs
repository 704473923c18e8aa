//! Counting and summing items, in groups.

use super::params::QueryParams;
use super::planner::Planner;
use super::scan;
use super::types::{Query, Report};
use crate::shape::{IndexKind, IndexStatus, Shape};
use chrono::{Datelike, Days, NaiveDate};
use chrono_tz::Tz;
use fields::ComputedError;
use fields::decimal::{self, Loss, Sum};
use fields::filter::Test;
use fields::filter::{name_of, subject};
use fields::key;
use fields::saved::refuse_ungroupable;
use fields::value;
use fields::{ColumnValue, Family, Part, Record, Subject};
use model::{Error, Result, Timestamp};
use operation::{Describe, FromInput, Input, comma_list};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use store::Read;
use utoipa::{IntoParams, ToSchema};

/// The most groups.
const MOST_GROUPS: usize = 1_000;
/// The most fields to group by.
const MOST_LEVELS: usize = 2;
/// The most numbers of each group.
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
    /// The IANA time zone for truncated times.
    #[param(default = "UTC", example = "Europe/Berlin")]
    time_zone: Option<String>,
}

/// What is computed, over which items.
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
    /// Computes the groups, and says how.
    ///
    /// # Errors
    /// 400 `validation_error` or `query_too_expensive`, or the database's.
    pub fn run(
        &self,
        read: &mut Read,
        planner: &Planner,
        shape: &Shape,
    ) -> Result<(Vec<AggregateGroup>, Report)> {
        let parsed = self.params.read(read, shape, false)?;
        let plan = AggregateRequest::read(shape, &self.query)?;
        let counted = if plan.is_bare_count() { count_by_keys(read, shape, &parsed.query)? } else { None };
        let Some((count, report)) = counted else { return plan.run(read, planner, shape, &parsed.query) };
        let values = Map::from_iter([("count".to_owned(), count.into())]);
        Ok((vec![AggregateGroup { group: Map::new(), values, errors: BTreeMap::new() }], report))
    }
}

/// The number of items where keys tell it: all of them, or those with one value of a field whose keys are exact.
fn count_by_keys(read: &mut Read, shape: &Shape, query: &Query) -> Result<Option<(i64, Report)>> {
    let report = |plan: String| Report { plan, uses: Vec::new(), visited: 0, cost: 0 };
    let musts = query.filter.musts();
    if query.filter.is_empty() {
        let count = scan::count_items(read, shape, i64::MAX)?;
        return Ok(Some((count, report("keys(id)".to_owned()))));
    }
    let ([condition], true) = (musts.as_slice(), query.filter.is_conjunction()) else { return Ok(None) };
    let is_exact = match (&condition.test, condition.family) {
        (Test::Within(_), _) => true,
        // A long text's key is cut, and others may have the same.
        (Test::Text(texts), _) => {
            texts.iter().all(|text| fields::text::fold(text).len() + text.len() + 1 < key::MOST_TEXT)
        }
        _ => false,
    };
    let index = shape.indexes.iter().find(|index| {
        index.kind == IndexKind::Single
            && index.status == IndexStatus::Ready
            && index.parts.first().is_some_and(|part| part.subject == condition.subject)
    });
    match (index, condition.ranges()) {
        (Some(index), Some(ranges)) if is_exact => {
            let count = scan::count_keys(read, index.id, &ranges, i64::MAX)?;
            Ok(Some((count, report(format!("keys({})", name_of(condition.subject, shape))))))
        }
        _ => Ok(None),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Function {
    Count,
    Sum,
    Avg,
    Min,
    Max,
    Distinct,
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
struct Level {
    name: String,
    subject: Subject,
    span: Option<Span>,
}

/// What is to be computed.
struct AggregateRequest {
    metrics: Vec<Metric>,
    levels: Vec<Level>,
    zone: Tz,
}

/// What the items of a group have in common, and their numbers.
type Counted = (Map<String, Value>, Vec<Accumulator>);

/// A number in the making.
#[derive(Debug, Clone, Default)]
struct Accumulator {
    count: i64,
    sum: Sum,
    least: Option<(Vec<u8>, Value)>,
    greatest: Option<(Vec<u8>, Value)>,
    seen: HashSet<Vec<u8>>,
}

impl AggregateRequest {
    fn read(shape: &Shape, query: &AggregateQuery) -> Result<Self> {
        let zone = query.time_zone.as_deref().unwrap_or("UTC");
        let zone = zone
            .parse()
            .map_err(|_| Error::invalid("time_zone", "must be a time zone such as Europe/Madrid"))?;
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
        let levels = levels.into_iter().map(|one| level(shape, one)).collect::<Result<_>>()?;
        Ok(Self { metrics, levels, zone })
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
        let subjects = self
            .levels
            .iter()
            .map(|level| Some(level.subject))
            .chain(self.metrics.iter().map(|one| one.subject));
        let subjects: Vec<Subject> = subjects.flatten().collect();
        let fresh = || vec![Accumulator::default(); self.metrics.len()];
        let mut groups: BTreeMap<Vec<u8>, Counted> = BTreeMap::new();
        if self.levels.is_empty() {
            groups.insert(Vec::new(), (Map::new(), fresh()));
        }
        let report = query.for_each(read, planner, shape, subjects, |fitting| {
            let record = fitting.row.record(&fitting.data);
            let mut place = Vec::new();
            let mut named = Map::new();
            for level in &self.levels {
                named.insert(level.name.clone(), self.cut(shape, level, record, &mut place));
            }
            if groups.len() >= MOST_GROUPS && !groups.contains_key(&place) {
                let rule = format!(
                    "results in more than {MOST_GROUPS} groups; narrow the filter or truncate times further"
                );
                return Err(Error::invalid("group_by", rule));
            }
            let (_, tallies) = groups.entry(place).or_insert_with(|| (named, fresh()));
            for (metric, accumulator) in self.metrics.iter().zip(tallies) {
                accumulator.add(shape, metric, record);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let group = |(group, tallies): Counted| {
            let mut answer = AggregateGroup { group, values: Map::new(), errors: BTreeMap::new() };
            for (one, accumulator) in self.metrics.iter().zip(tallies) {
                let computed = one.is_computed(shape);
                let value = accumulator.value(one.function, computed).unwrap_or_else(|loss| {
                    answer.errors.insert(one.name.clone(), loss.into());
                    Value::Null
                });
                answer.values.insert(one.name.clone(), value);
            }
            answer
        };
        Ok((groups.into_values().map(group).collect(), report))
    }

    /// The value of an item at a level, and its place among others.
    fn cut(&self, shape: &Shape, level: &Level, record: Record<'_>, place: &mut Vec<u8>) -> Value {
        let Some(span) = level.span else {
            let start = place.len();
            record.push_part(shape, Part { subject: level.subject, desc: false }, place);
            let is_nothing = place.get(start) == Some(&key::NOTHING);
            return if is_nothing { Value::Null } else { value_of(shape, level.subject, record) };
        };
        let day = match value_of(shape, level.subject, record) {
            Value::String(text) => value::date(&text)
                .or_else(|| fields::filter::relative::local_day(Timestamp::parse(&text)?, self.zone)),
            _ => None,
        };
        let first = day.and_then(|day| first_day(day, span));
        match first {
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
    /// Whether the values that it is made of were computed themselves.
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

fn level(shape: &Shape, text: &str) -> Result<Level> {
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
    Ok(Level { name: text.to_owned(), subject, span })
}

/// The value of a field or a system column, as callers see it.
fn value_of(shape: &Shape, subject: Subject, record: Record<'_>) -> Value {
    match subject {
        Subject::Field(id) => {
            shape.field_by_id(id).and_then(|field| record.value(field)).cloned().unwrap_or(Value::Null)
        }
        Subject::System(column) => match record.columns.column(column) {
            ColumnValue::Integer(millis) if column.family() == Family::Datetime => {
                Timestamp::from_millis(millis).rfc3339().into()
            }
            ColumnValue::Integer(number) => number.into(),
            ColumnValue::Text(text) => text.into(),
            ColumnValue::Empty => Value::Null,
        },
    }
}

impl Accumulator {
    fn add(&mut self, shape: &Shape, metric: &Metric, record: Record<'_>) {
        let Some(subject) = metric.subject else {
            self.count += 1;
            return;
        };
        let value = value_of(shape, subject, record);
        if value.is_null() {
            return;
        }
        self.count += 1;
        match metric.function {
            Function::Count => {}
            Function::Sum | Function::Avg => {
                if let Value::Number(number) = &value {
                    self.sum.add(number);
                }
            }
            Function::Distinct => match (&value, subject) {
                (Value::Array(elements), _) => {
                    self.seen.extend(elements.iter().map(|element| element.to_string().into_bytes()));
                }
                _ => {
                    self.seen.insert(value.to_string().into_bytes());
                }
            },
            Function::Min | Function::Max => {
                let mut place = Vec::with_capacity(16);
                record.push_part(shape, Part { subject, desc: false }, &mut place);
                if place.first() != Some(&key::VALUE) {
                    return;
                }
                if self.least.as_ref().is_none_or(|(least, _)| place < *least) {
                    self.least = Some((place.clone(), value.clone()));
                }
                if self.greatest.as_ref().is_none_or(|(greatest, _)| place > *greatest) {
                    self.greatest = Some((place, value));
                }
            }
        }
    }

    fn value(self, function: Function, computed: bool) -> Result<Value, Loss> {
        Ok(match function {
            Function::Count => self.count.into(),
            Function::Distinct => self.seen.len().into(),
            _ if self.count == 0 => Value::Null,
            Function::Sum => self.sum.kept(computed)?,
            Function::Avg => self.sum.mean().as_ref().map(decimal::rounded).transpose()?.unwrap_or_default(),
            Function::Min => self.least.map_or(Value::Null, |(_, value)| value),
            Function::Max => self.greatest.map_or(Value::Null, |(_, value)| value),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_decimals() {
        let accumulator = |numbers: &[f64]| {
            let mut accumulator = Accumulator { count: 1, ..Accumulator::default() };
            numbers
                .iter()
                .for_each(|number| accumulator.sum.add(&serde_json::Number::from_f64(*number).unwrap()));
            accumulator
        };
        assert_eq!(accumulator(&[1e15, 0.1, 0.2, -1e15]).value(Function::Sum, false), Ok(0.3.into()));
        assert_eq!(accumulator(&[1e15, 0.1]).value(Function::Sum, false), Err(Loss::TooPrecise));
        assert_eq!(accumulator(&[1e308, 1e308]).value(Function::Sum, false), Err(Loss::OutOfRange));
        assert_eq!(accumulator(&[1e308, 1e308]).value(Function::Avg, false), Ok(1e308.into()));
        assert_eq!(
            accumulator(&[1.0, 0.0, 0.0]).value(Function::Avg, false),
            Ok(0.333_333_333_333_333.into())
        );
    }

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
