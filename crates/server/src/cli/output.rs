//! What commands print: a table for people, or JSON.

use serde_json::Value;

/// Prints rows: as one JSON value with `--json`, else as aligned columns under the names of the first row's fields.
#[expect(clippy::print_stdout, reason = "this is what the command was run for")]
pub(super) fn rows(rows: &[Value], json: bool) {
    if json {
        println!("{}", serde_json::to_string_pretty(rows).unwrap_or_default());
        return;
    }
    let Some(Value::Object(first)) = rows.first() else {
        println!("(none)");
        return;
    };
    let names: Vec<&String> = first.keys().collect();
    let cells: Vec<Vec<String>> = std::iter::once(names.iter().map(|name| name.to_uppercase()).collect())
        .chain(rows.iter().map(|row| names.iter().map(|name| text(row.get(name.as_str()))).collect()))
        .collect();
    let width =
        |column: usize| cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    for row in &cells {
        let line: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| format!("{cell:<width$}", width = width(column).unwrap_or(0)))
            .collect();
        println!("{}", line.join("  ").trim_end());
    }
}

/// Prints one object: as JSON with `--json`, else a line per field.
#[expect(clippy::print_stdout, reason = "this is what the command was run for")]
pub(super) fn object(value: &Value, json: bool) {
    match value {
        Value::Object(fields) if !json => {
            for (name, value) in fields {
                println!("{name}: {}", text(Some(value)));
            }
        }
        other => println!("{}", serde_json::to_string_pretty(other).unwrap_or_default()),
    }
}

fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().map(|item| text(Some(item))).collect::<Vec<_>>().join(","),
        Some(other) => other.to_string(),
    }
}
