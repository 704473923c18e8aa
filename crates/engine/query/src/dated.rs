//! Records whose date lies within some days, in the order of the dates.

use crate::auto_index::counted_page;
use crate::cursor::ListPosition;
use crate::planning::planner::Planner;
use crate::types::Query;
use chrono::NaiveDate;
use fields::filter::{Node, subject};
use fields::sort::Sort;
use fields::{FieldType, Filter, Part, Subject};
use model::Result;
use records::rows::ItemRow;
use records::shape::Shape;
use serde_json::{Value, json};
use store::Read;

/// Dates of a field, from one day to another, both included. Days of moments are those of UTC.
#[derive(Debug, Clone, Copy)]
pub struct DateSpan<'a> {
    /// The key of the field, of type `date` or `datetime`.
    pub field: &'a str,
    /// The first day.
    pub first: NaiveDate,
    /// The last day.
    pub last: NaiveDate,
    /// A tree of conditions that hold for the records.
    pub condition: Option<&'a Value>,
}

/// A record with its date.
#[derive(Debug)]
pub struct DatedRow {
    /// The place in the order, behind which a search goes on.
    pub place: String,
    /// The value of the field.
    pub value: String,
    /// The record.
    pub row: ItemRow,
}

/// Returns live records with a date in a span, in the order of their dates: at most `most` of them, behind the place `after`.
/// The query is counted, so a large set of records gets an index on the field.
///
/// # Errors
/// `validation_error` if there is no such field, or it has no dates.
pub fn dated_rows(
    read: &mut Read,
    planner: &Planner,
    shape: &Shape,
    span: DateSpan<'_>,
    after: Option<&str>,
    most: usize,
) -> Result<Vec<DatedRow>> {
    let DateSpan { field: key, first, last, condition } = span;
    let subject = subject(shape, key, "field")?;
    let is_day = shape.field(key).is_some_and(|field| field.kind == FieldType::Date);
    let behind = last.succ_opt().unwrap_or(last);
    let text = |day: NaiveDate| if is_day { day.to_string() } else { format!("{day}T00:00:00Z") };
    let mut all = vec![
        json!({ "field": key, "op": "gte", "value": text(first) }),
        json!({ "field": key, "op": "lt", "value": text(behind) }),
    ];
    all.extend(condition.cloned());
    let node = Node::from_api(shape, &json!({ "and": all }), "field")?;
    let filter = Filter::of(shape, &node, read.now())?;
    let query = Query::new(filter, Sort::of(&[Part { subject, desc: false }]), false);
    let after = after.map(str::parse::<ListPosition>).transpose().unwrap_or_default();
    let after = after.as_ref().map(|ListPosition(place)| place.as_slice());
    let page = counted_page(read, planner, shape, &query, after, most)?;
    let mut rows = Vec::with_capacity(page.found.len());
    for found in page.found {
        let value = value_of(shape, subject, &found.row)?;
        let place = ListPosition(found.place).to_string();
        rows.push(DatedRow { place, value, row: found.row });
    }
    Ok(rows)
}

fn value_of(shape: &Shape, subject: Subject, row: &ItemRow) -> Result<String> {
    let Subject::Field(id) = subject else { return Ok(String::new()) };
    let values = row.values()?;
    let key = shape.fields.iter().find(|field| field.id == id).map(|field| field.key.as_str());
    let value = key.and_then(|key| values.get(key)).and_then(Value::as_str);
    Ok(value.unwrap_or_default().to_owned())
}
