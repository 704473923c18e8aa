//! The settings of nodes. Texts in them are templates, so a number or a choice may be written as a text with one.

mod data;
mod logic;
mod messages;
mod outside;
mod waits;

pub use data::*;
pub use logic::*;
pub use messages::*;
pub use outside::*;
pub use waits::*;

use serde_json::Value;

/// The names of the members of a list of objects at `list`, by their `id`.
pub(crate) fn ids_of(config: &Value, list: &str) -> Vec<String> {
    let entries = config.get(list).and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(|entry| entry.get("id").and_then(Value::as_str)).map(str::to_owned).collect()
}
