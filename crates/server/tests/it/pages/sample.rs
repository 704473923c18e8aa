//! The samples of answers that pages show below commands.

use serde_json::Value;

/// Reads a sample. `…` stands for what it omits.
pub(super) fn read(text: &str) -> Result<Value, serde_json::Error> {
    let complete = text.replace(", …", "").replace(",…", "");
    serde_json::from_str(&complete)
}

/// Whether some part of the answer has what the sample shows: each of its keys, with a value of the same type.
pub(super) fn is_part_of(sample: &Value, answer: &Value) -> bool {
    has(answer, sample)
        || match answer {
            Value::Object(fields) => fields.values().any(|part| is_part_of(sample, part)),
            Value::Array(entries) => entries.iter().any(|part| is_part_of(sample, part)),
            _ => false,
        }
}

fn has(answer: &Value, sample: &Value) -> bool {
    match (answer, sample) {
        (Value::Object(answer), Value::Object(sample)) => {
            sample.iter().all(|(key, value)| answer.get(key).is_some_and(|part| has(part, value)))
        }
        (Value::Array(answer), Value::Array(sample)) => {
            sample.iter().all(|entry| answer.iter().any(|part| has(part, entry)))
        }
        (Value::Object(_) | Value::Array(_), _) | (_, Value::Object(_) | Value::Array(_)) => false,
        (Value::Null, _) | (_, Value::Null) => true,
        (answer, sample) => std::mem::discriminant(answer) == std::mem::discriminant(sample),
    }
}
