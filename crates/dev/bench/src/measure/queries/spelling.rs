//! The syntax of rows and queries on each side.

use super::family::{Condition, Op, PAGE, Query};
use super::rows::{Cell, Field, Table};
use crate::measure::peer::autodates;
use anyhow::{Context, Result};
use chrono::DateTime;
use diesel::SqliteConnection;
use diesel::connection::SimpleConnection;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;
use url::form_urlencoded::Serializer;

/// The number of rows in one statement.
const AT_ONCE: u32 = 500;

/// Returns the name of a field.
fn name(field: Field) -> &'static str {
    match field {
        Field::Category => "category",
        Field::Active => "active",
        Field::Department => "department",
        Field::Score => "score",
        Field::Price => "price",
        Field::Day => "day",
        Field::Name => "name",
        Field::City => "city",
        Field::Created => "created",
        Field::Updated => "updated",
    }
}

/// Returns the name of a field on our side.
pub fn our_name(field: Field) -> &'static str {
    match field {
        Field::Created => "created_at",
        Field::Updated => "updated_at",
        field => name(field),
    }
}

/// Returns the name of a field in PocketBase.
pub fn their_name(field: Field) -> &'static str {
    name(field)
}

/// Returns the distinct values of a field, sorted, so that choices have the same order as their texts.
fn choices(table: &Table, field: Field) -> Vec<&str> {
    let cells: BTreeSet<Cell<'_>> = (0..table.len()).map(|place| table.cell(place, field)).collect();
    let texts =
        cells.into_iter().filter_map(|cell| if let Cell::Text(text) = cell { Some(text) } else { None });
    texts.collect()
}

/// Builds our collection.
pub fn our_collection(table: &Table) -> Value {
    let select = |field: Field| {
        let choices = choices(table, field);
        let choices: Vec<Value> = choices.iter().map(|key| json!({ "key": key, "label": key })).collect();
        json!({ "choices": choices })
    };
    let fields = Field::OWN.map(|field| {
        let (kind, options) = match field {
            Field::Category | Field::Department => ("select", select(field)),
            Field::Active => ("boolean", json!({})),
            Field::Score => ("integer", json!({})),
            Field::Price => ("number", json!({ "precision": 2 })),
            Field::Day => ("date", json!({})),
            _ => ("text", json!({})),
        };
        json!({ "field_key": name(field), "label": name(field), "type": kind, "options": options })
    });
    json!({ "name": "Family", "fields": fields })
}

/// Builds PocketBase's collection, without indexes.
pub fn their_collection(table: &Table) -> Value {
    let mut fields: Vec<Value> = Field::OWN
        .iter()
        .map(|field| match field {
            Field::Category | Field::Department => {
                json!({ "name": name(*field), "type": "select", "maxSelect": 1, "values": choices(table, *field) })
            }
            Field::Active => json!({ "name": name(*field), "type": "bool" }),
            Field::Score | Field::Price => json!({ "name": name(*field), "type": "number" }),
            Field::Day => json!({ "name": name(*field), "type": "date" }),
            _ => json!({ "name": name(*field), "type": "text" }),
        })
        .collect();
    fields.extend(autodates());
    json!({ "name": "family", "type": "base", "fields": fields })
}

/// Formats a price as a decimal number.
fn price(cents: u32) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Builds the rows in their initial state as CSV. A row that is changed later has the opposite `active`.
pub fn csv(table: &Table, first: u32, end: u32) -> String {
    let mut text = Field::OWN.map(name).join(",");
    for place in first..end.min(table.len()) {
        text.push('\n');
        for field in Field::OWN {
            let cell = match (field, table.cell(place, field)) {
                (Field::Active, Cell::Number(active)) => {
                    ((active == 1) != table.is_changed(place)).to_string()
                }
                (Field::Price, Cell::Number(cents)) => price(cents),
                (_, Cell::Number(number)) => number.to_string(),
                (_, Cell::Text(text)) => text.to_owned(),
            };
            text.push_str(&cell);
            if field != Field::City {
                text.push(',');
            }
        }
    }
    text.push('\n');
    text
}

/// Returns the values of a row's later change.
pub fn change(table: &Table, place: u32) -> Value {
    json!({ "active": table.cell(place, Field::Active) == Cell::Number(1) })
}

/// Writes the rows into PocketBase's database.
pub fn fill(connection: &mut SqliteConnection, table: &Table) -> Result<()> {
    connection.batch_execute("BEGIN")?;
    for first in (0..table.len()).step_by(AT_ONCE as usize) {
        let mut sql = "INSERT INTO family (id".to_owned();
        for field in Field::ALL {
            let _ = write!(sql, ", {}", name(field));
        }
        sql.push_str(") VALUES ");
        for place in first..table.len().min(first + AT_ONCE) {
            let _ = write!(sql, "{}('{place:015}'", if place > first { ", " } else { "" });
            for field in Field::ALL {
                let _ = write!(sql, ", {}", their_value(field, table.cell(place, field)));
            }
            sql.push(')');
        }
        connection.batch_execute(&sql)?;
    }
    connection.batch_execute("COMMIT")?;
    Ok(())
}

/// Builds an operand on our side.
fn our_value(field: Field, cell: Cell<'_>) -> Value {
    match (field, cell) {
        (Field::Active, Cell::Number(active)) => (active == 1).into(),
        (Field::Price, Cell::Number(cents)) => (f64::from(cents) / 100.0).into(),
        (_, Cell::Number(number)) => number.into(),
        (_, Cell::Text(text)) => text.into(),
    }
}

/// Builds a value for PocketBase, in SQL and in filters.
fn their_value(field: Field, cell: Cell<'_>) -> String {
    match (field, cell) {
        (Field::Active, Cell::Number(active)) => (active == 1).to_string(),
        (Field::Price, Cell::Number(cents)) => price(cents),
        (Field::Created | Field::Updated, Cell::Number(place)) => {
            let moment = DateTime::from_timestamp_millis(1_700_000_000_000 + i64::from(place));
            format!("'{}'", moment.unwrap_or_default().format("%Y-%m-%d %H:%M:%S%.3fZ"))
        }
        (_, Cell::Number(number)) => number.to_string(),
        (Field::Day, Cell::Text(day)) => format!("'{day} 00:00:00.000Z'"),
        (_, Cell::Text(text)) => format!("'{text}'"),
    }
}

/// Builds a condition of our `filter_tree`.
fn our_condition(condition: &Condition<'_>) -> Value {
    let field = condition.field;
    let mut values = condition.operands.iter().map(|operand| our_value(field, *operand));
    let value = if condition.op == Op::In { values.collect() } else { values.next().unwrap_or_default() };
    let text = value.as_str().unwrap_or_default();
    let (op, value) = match condition.op {
        Op::Eq => ("eq", value),
        Op::Neq => ("neq", value),
        Op::Gt => ("gt", value),
        Op::Gte => ("gte", value),
        Op::Lt => ("lt", value),
        Op::Lte => ("lte", value),
        Op::In => ("in", value),
        Op::Contains => ("ilike", format!("%{text}%").into()),
        Op::StartsWith => ("ilike", format!("{text}%").into()),
    };
    json!({ "field": our_name(field), "op": op, "value": value })
}

/// Builds a condition in PocketBase's filter syntax.
fn their_condition(condition: &Condition<'_>) -> String {
    let name = their_name(condition.field);
    let sign = match condition.op {
        Op::Eq | Op::In => "=",
        Op::Neq => "!=",
        Op::Gt => ">",
        Op::Gte => ">=",
        Op::Lt => "<",
        Op::Lte => "<=",
        Op::Contains | Op::StartsWith => "~",
    };
    let value = |cell: &Cell<'_>| match (condition.op, cell) {
        (Op::Contains, Cell::Text(text)) => format!("'%{text}%'"),
        (Op::StartsWith, Cell::Text(text)) => format!("'{text}%'"),
        _ => their_value(condition.field, *cell),
    };
    let each: Vec<String> =
        condition.operands.iter().map(|cell| format!("{name}{sign}{}", value(cell))).collect();
    if condition.op == Op::In { format!("({})", each.join("||")) } else { each.join("&&") }
}

fn order(query: &Query<'_>, name: fn(Field) -> &'static str) -> String {
    let parts =
        query.sort.iter().map(|(field, down)| format!("{}{}", if *down { "-" } else { "" }, name(*field)));
    parts.collect::<Vec<_>>().join(",")
}

/// Builds the query string for our side.
pub fn our_query(query: &Query<'_>) -> String {
    let conditions: Vec<Value> = query.conditions.iter().map(our_condition).collect();
    let tree = json!({ "and": conditions }).to_string();
    let mut pairs = Serializer::new(String::new());
    pairs.append_pair("limit", &PAGE.to_string()).append_pair("filter_tree", &tree);
    if !query.sort.is_empty() {
        pairs.append_pair("sort", &order(query, our_name));
    }
    pairs.finish()
}

/// Builds the conditions in PocketBase's filter syntax. The report shows them in this form as well.
pub fn their_filter(query: &Query<'_>) -> String {
    query.conditions.iter().map(their_condition).collect::<Vec<_>>().join(" && ")
}

/// Builds the order in PocketBase's syntax. Without a sort, that is PocketBase's name for the order of creation.
pub fn their_order(query: &Query<'_>) -> String {
    if query.sort.is_empty() { "-@rowid".to_owned() } else { order(query, their_name) }
}

/// Builds the query string for PocketBase.
pub fn their_query(query: &Query<'_>) -> String {
    let mut pairs = Serializer::new(String::new());
    pairs.append_pair("perPage", &PAGE.to_string()).append_pair("skipTotal", "1");
    pairs.append_pair("sort", &their_order(query)).append_pair("filter", &their_filter(query));
    pairs.finish()
}

/// Parses the rows of a response, by the names in them.
pub fn rows(body: &str, list: &str, at: &str) -> Result<Vec<u32>> {
    let answer: Value = serde_json::from_str(body)?;
    let place = |row: &Value| Table::place_of(row.pointer(at)?.as_str()?);
    let rows = answer.get(list).and_then(Value::as_array).and_then(|rows| rows.iter().map(place).collect());
    rows.with_context(|| format!("no rows in {body}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_written_for_both() {
        let condition = |field, op, operands: &[Cell<'static>]| Condition {
            field,
            op,
            operands: operands.to_vec(),
            share: 0.1,
        };
        let query = Query {
            conditions: vec![
                condition(Field::Price, Op::Gt, &[Cell::Number(1_205)]),
                condition(Field::City, Op::In, &[Cell::Text("lyon"), Cell::Text("rome")]),
                condition(Field::Day, Op::Lte, &[Cell::Text("2021-02-03")]),
                condition(Field::Name, Op::Contains, &[Cell::Text("er 1")]),
            ],
            sort: vec![(Field::Updated, true), (Field::Score, false)],
        };
        assert_eq!(
            their_filter(&query),
            "price>12.05 && (city='lyon'||city='rome') && day<='2021-02-03 00:00:00.000Z' && name~'%er 1%'"
        );
        assert_eq!(their_order(&query), "-updated,score");
        let ours = our_query(&query);
        let pairs: Vec<_> = url::form_urlencoded::parse(ours.as_bytes()).into_owned().collect();
        assert_eq!(pairs.last().unwrap(), &("sort".to_owned(), "-updated_at,score".to_owned()));
        let tree: Value = serde_json::from_str(&pairs.get(1).unwrap().1).unwrap();
        assert_eq!(
            tree,
            json!({ "and": [
                { "field": "price", "op": "gt", "value": 12.05 },
                { "field": "city", "op": "in", "value": ["lyon", "rome"] },
                { "field": "day", "op": "lte", "value": "2021-02-03" },
                { "field": "name", "op": "ilike", "value": "%er 1%" },
            ] })
        );
    }

    #[test]
    fn rows_that_are_changed_later_are_made_otherwise() {
        let table = Table::draw(1, 100);
        let text = csv(&table, 0, 1_000);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            (lines.len(), *lines.first().unwrap()),
            (101, "category,active,department,score,price,day,name,city")
        );
        for place in 0..100 {
            let made = lines.get(place as usize + 1).unwrap().split(',').nth(1).unwrap();
            let at_the_end = change(&table, place).get("active").unwrap().to_string();
            assert_eq!(made != at_the_end, table.changed.contains(&place));
        }
    }
}
