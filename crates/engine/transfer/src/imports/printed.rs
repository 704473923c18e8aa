//! JSON records: plain objects of values, or records as the API returns them, with their values in `data`.

use records::shape::Kind;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// Returns the members of an API record outside `data`, each with its column: the external key, and built-in fields
/// without their `$`, such as `tags`. Read-only ones are included, so that the import can report them.
fn beside(kind: &Kind) -> impl Iterator<Item = (String, String)> {
    let own_key = (kind.external_key.to_owned(), kind.external_key.to_owned());
    let fields = (kind.fields)().into_iter().filter(|field| !field.hidden);
    let bare = fields.filter_map(|field| Some((field.key.strip_prefix('$')?.to_owned(), field.key)));
    std::iter::once(own_key).chain(bare)
}

/// Returns whether a member outside `data` is empty. The API returns such members for missing values.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        _ => false,
    }
}

/// Returns the values of a record by column. Ignores the other members of an API record.
pub(super) fn flattened(kind: &Kind, mut object: Map<String, Value>) -> Map<String, Value> {
    if object.get("object").and_then(Value::as_str) != Some(kind.noun) {
        return object;
    }
    let Some(Value::Object(mut data)) = object.remove("data") else { return object };
    for (name, column) in beside(kind) {
        let value = object.remove(&name).filter(|value| !is_nothing(value) && !data.contains_key(&column));
        data.extend(value.map(|value| (column, value)));
    }
    data
}

/// Returns the values of a record by column as they were written, including all digits of numbers.
pub(super) fn written(kind: &Kind, line: &[u8]) -> BTreeMap<String, String> {
    #[derive(Deserialize, Default)]
    struct Printed {
        object: Option<String>,
        data: Option<BTreeMap<String, Box<RawValue>>>,
        #[serde(flatten)]
        rest: HashMap<String, Value>,
    }
    let text = |raw: &RawValue| serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned());
    let texts = |object: BTreeMap<String, Box<RawValue>>| {
        let filled = object.into_iter().filter(|(_, raw)| raw.get() != "null");
        filled.map(|(name, raw)| (name, text(&raw))).collect::<BTreeMap<_, _>>()
    };
    let printed: Printed = serde_json::from_slice(line).unwrap_or_default();
    let Some(data) = printed.data.filter(|_| printed.object.as_deref() == Some(kind.noun)) else {
        return texts(serde_json::from_slice(line).unwrap_or_default());
    };
    let mut values = texts(data);
    for (name, column) in beside(kind) {
        let shown = match printed.rest.get(&name).filter(|value| !is_nothing(value)) {
            None => continue,
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        values.entry(column).or_insert(shown);
    }
    values
}
