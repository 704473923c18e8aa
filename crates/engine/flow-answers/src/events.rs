//! How waits for events are found: by one equality, which is their key.
//!
//! A wait names values that the event's data must have. The first of these equalities, in the order of their paths, is the key
//! of the wait: `7:item.updated:item_id=12`. An event has a key for each value in its data, so the waits that it may concern are
//! found by one look at an index, however many waits there are.

use chrono_tz::Tz;
use expressions::{Context, Failure, Number};
use flow_graphs::ROOTS;
use model::{Timestamp, WorkspaceId, hex};
use ring::digest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, VecDeque};

/// The most values of an event by which waits are found.
const MOST_VALUES: usize = 200;
/// The longest value that is written into a key as it is, in bytes.
const LONGEST_VALUE: usize = 100;

/// What is stored with a wait for an event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventDetails {
    /// The values that the data must have, by their paths.
    pub equals: BTreeMap<String, String>,
    /// A condition that narrows it down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filter>,
    /// Only events from then on count. Without it, those from the beginning of the step on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

/// A condition, and the values that it reads besides the event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Filter {
    /// The condition.
    pub condition: Value,
    /// The values of the run that it reads.
    #[serde(default)]
    pub values: Map<String, Value>,
}

impl EventDetails {
    /// Reads equalities. `None` if there is none, or a value that nothing equals.
    pub fn of(equalities: &Map<String, Value>) -> Option<Self> {
        let scalar = |(path, value): (&String, &Value)| Some((path.clone(), scalar(value)?));
        let equals: Option<BTreeMap<String, String>> = equalities.iter().map(scalar).collect();
        equals.filter(|equals| !equals.is_empty()).map(|equals| Self { equals, ..Self::default() })
    }

    /// The key of the wait.
    pub fn key(&self, workspace: WorkspaceId, kind: &str) -> Option<String> {
        let (path, value) = self.equals.first_key_value()?;
        Some(key(workspace, kind, path, value))
    }

    /// Returns whether an event is awaited. `event` is the event as callers see it.
    ///
    /// # Errors
    /// When the condition cannot be evaluated.
    pub fn is_for(&self, event: &Value, now: Timestamp, zone: Tz) -> Result<bool, Failure> {
        let data = event.get("data").unwrap_or(&Value::Null);
        let equals = |(path, value): (&String, &String)| {
            at(data, path).and_then(scalar).is_some_and(|found| found == *value)
        };
        if !self.equals.iter().all(equals) {
            return Ok(false);
        }
        let Some(filter) = &self.filter else { return Ok(true) };
        let condition = expressions::Condition::parse(&filter.condition, &ROOTS);
        let condition = condition.map_err(|mistake| Failure::InvalidArgument(mistake.message))?;
        let mut roots = filter.values.clone();
        roots.insert("trigger".to_owned(), event.clone());
        condition.holds(&Context::new(&roots, now).zone(zone))
    }
}

fn key(workspace: WorkspaceId, kind: &str, path: &str, value: &str) -> String {
    if value.len() <= LONGEST_VALUE {
        return format!("{workspace}:{kind}:{path}={value}");
    }
    let hash = hex(digest::digest(&digest::SHA256, value.as_bytes()).as_ref());
    format!("{workspace}:{kind}:{path}#{hash}")
}

/// The keys of an event: one for each value of its data, those on top first.
pub fn keys(workspace: WorkspaceId, kind: &str, data: &Value) -> Vec<String> {
    let mut keys = Vec::new();
    let mut left = VecDeque::from([(String::new(), data)]);
    while let Some((path, value)) = left.pop_front() {
        match value {
            Value::Object(members) => {
                let below =
                    |name: &String| if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                left.extend(members.iter().map(|(name, value)| (below(name), value)));
            }
            Value::Array(elements) => {
                let below = elements.iter().enumerate();
                left.extend(below.map(|(place, value)| (format!("{path}[{place}]"), value)));
            }
            leaf => keys.extend(scalar(leaf).map(|value| key(workspace, kind, &path, &value))),
        }
        if keys.len() >= MOST_VALUES || left.len() > MOST_VALUES * 10 {
            break;
        }
    }
    keys
}

/// A value as keys have it: numbers and texts with the same digits are the same. `None` for what is no single value.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(Number::of_json(number).text()),
        Value::Bool(is_true) => Some(is_true.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The value at a path such as `item.labels[0]`.
fn at<'a>(data: &'a Value, path: &str) -> Option<&'a Value> {
    let steps = path.split(['.', '[']).map(|step| step.trim_end_matches(']')).filter(|step| !step.is_empty());
    steps.into_iter().try_fold(data, |value, step| match value {
        Value::Array(elements) => elements.get(step.parse::<usize>().ok()?),
        other => other.get(step),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn details(equalities: Value) -> Option<EventDetails> {
        EventDetails::of(equalities.as_object().unwrap())
    }

    #[test]
    fn an_event_has_the_key_of_each_wait_that_it_fits() {
        let data = json!({ "item": { "id": 12, "labels": ["new", "red"], "price": 1.50 }, "ok": true, "note": null });
        let keys = keys(WorkspaceId(7), "item.updated", &data);
        for equality in [
            json!({ "item.id": 12 }),
            json!({ "item.id": "12" }),
            json!({ "item.labels[1]": "red" }),
            json!({ "item.price": 1.5 }),
            json!({ "ok": true }),
        ] {
            let details = details(equality.clone()).unwrap();
            let key = details.key(WorkspaceId(7), "item.updated").unwrap();
            assert!(keys.contains(&key), "{key} {keys:?}");
            let event = json!({ "data": data });
            assert_eq!(details.is_for(&event, Timestamp::from_millis(0), Tz::UTC), Ok(true), "{equality}");
        }
        assert_eq!(keys.len(), 5);
        assert!(!keys.contains(
            &details(json!({ "item.id": 12 })).unwrap().key(WorkspaceId(8), "item.updated").unwrap()
        ));
    }

    #[test]
    fn equalities_without_a_value_are_none() {
        for none in [json!({}), json!({ "a": null }), json!({ "a": [1] }), json!({ "a": 1, "b": {} })] {
            assert_eq!(details(none.clone()), None, "{none}");
        }
    }

    #[test]
    fn other_equalities_and_the_condition_narrow_it_down() {
        let mut details = details(json!({ "a": 1, "b": "x" })).unwrap();
        let is_for = |details: &EventDetails, data: Value| {
            details.is_for(&json!({ "data": data }), Timestamp::from_millis(0), Tz::UTC)
        };
        assert_eq!(is_for(&details, json!({ "a": 1, "b": "x" })), Ok(true));
        assert_eq!(is_for(&details, json!({ "a": 1, "b": "y" })), Ok(false));
        let condition = json!({ "left": "$trigger.data.total", "op": "gt", "right": "{{ $flow.least }}" });
        let values = json!({ "flow": { "least": 10 } }).as_object().unwrap().clone();
        details.filter = Some(Filter { condition, values });
        assert_eq!(is_for(&details, json!({ "a": 1, "b": "x", "total": 11 })), Ok(true));
        assert_eq!(is_for(&details, json!({ "a": 1, "b": "x", "total": 9 })), Ok(false));
    }

    #[test]
    fn large_data_has_a_bounded_number_of_keys() {
        let data: Map<String, Value> = (0..5000).map(|n| (format!("k{n}"), json!("v".repeat(500)))).collect();
        let keys = keys(WorkspaceId(1), "x", &Value::Object(data));
        assert!(keys.len() <= MOST_VALUES && keys.iter().all(|key| key.len() < 100));
    }
}
