//! What commands print: a table for people, or JSON.

use serde_json::Value;
use std::io::{self, IsTerminal, Write};

/// Prints rows: as one JSON value with `--json`, else as aligned columns under the names of the first row's fields.
///
/// # Errors
/// When standard output cannot be written to.
pub(super) fn rows(rows: &[Value], json: bool) -> io::Result<()> {
    if json {
        return text(&pretty(&rows.into()));
    }
    let Some(Value::Object(first)) = rows.first() else { return text("(none)\n") };
    let names: Vec<&String> = first.keys().collect();
    let cells: Vec<Vec<String>> = std::iter::once(names.iter().map(|name| name.to_uppercase()).collect())
        .chain(rows.iter().map(|row| names.iter().map(|name| cell(row.get(name.as_str()))).collect()))
        .collect();
    let width =
        |column: usize| cells.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let mut table = String::new();
    for row in &cells {
        let line: Vec<String> = row
            .iter()
            .enumerate()
            .map(|(column, cell)| format!("{cell:<width$}", width = width(column).unwrap_or(0)))
            .collect();
        table.push_str(line.join("  ").trim_end());
        table.push('\n');
    }
    text(&table)
}

/// Prints one object: as JSON with `--json`, else a line per field.
///
/// # Errors
/// When standard output cannot be written to.
pub(super) fn object(value: &Value, json: bool) -> io::Result<()> {
    match value {
        Value::Object(fields) if !json => {
            let lines = fields.iter().map(|(name, value)| format!("{name}: {}\n", cell(Some(value))));
            text(&lines.collect::<String>())
        }
        other => text(&pretty(other)),
    }
}

/// Prints text. A reader that has gone is an error and no panic, as it would be with `println!`.
///
/// # Errors
/// When standard output cannot be written to.
pub(super) fn text(text: &str) -> io::Result<()> {
    bytes(text.as_bytes())
}

/// Prints bytes as they are.
///
/// # Errors
/// When standard output cannot be written to.
pub(super) fn bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Whether a person reads what is printed.
pub(super) fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Tells the person at the terminal something beside what is printed. What it is beside matters more than whether this
/// is read.
pub(super) fn aside(text: &str) {
    let _ = crate::logging::stderr().write_all(format!("{text}\n").as_bytes());
}

/// JSON for people, with a line break at its end.
pub(super) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().map(|item| cell(Some(item))).collect::<Vec<_>>().join(","),
        Some(other) => other.to_string(),
    }
}
