//! The sample objects of the areas, for the tests of all operations.
//!
//! `contract/samples.json` of an area has requests that make one of each of its objects, with every optional field. `ids` names
//! values of the response as paths name them (`"agentId": "id"`), and later requests of any area use them as `{agentId}`. A
//! request is made once all of its ids are known.

use crate::operations::sweep::Sweep;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Ids by the names that paths have for them.
pub type Ids = BTreeMap<String, String>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sample {
    post: Option<String>,
    put: Option<String>,
    patch: Option<String>,
    body: Value,
    #[serde(default)]
    ids: BTreeMap<String, String>,
}

/// The requests that are still to be made.
pub struct Samples(Vec<Sample>);

impl Samples {
    pub fn read() -> Self {
        let areas = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../areas")).unwrap();
        let mut files: Vec<PathBuf> =
            areas.map(|area| area.unwrap().path().join("contract/samples.json")).collect();
        files.sort();
        let mut all = Vec::new();
        for file in files.iter().filter(|file| file.exists()) {
            let text = std::fs::read_to_string(file).unwrap();
            let samples: Vec<Sample> =
                serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            all.extend(samples);
        }
        Self(all)
    }

    /// Makes the requests whose ids are known, and adds the ids of what they make.
    pub async fn send(&mut self, sweep: &Sweep, ids: &mut Ids) {
        self.send_until(sweep, ids, "").await;
    }

    /// The same, as far as the request that gives this id.
    pub async fn send_until(&mut self, sweep: &Sweep, ids: &mut Ids, last: &str) {
        let key = &sweep.keys[&(false, true)];
        while !ids.contains_key(last)
            && let Some(place) = self.0.iter().position(|sample| sample.request(ids).is_some())
        {
            let sample = self.0.remove(place);
            let (method, path, body) = sample.request(ids).unwrap();
            let answer = sweep.app.ask(method, &path).key(key).json(&body).send().await;
            assert!(answer.status < 300, "{method} {path}: {}", answer.text);
            for (name, pointer) in &sample.ids {
                let value = answer.body.pointer(&format!("/data/{pointer}"));
                let value = value.unwrap_or_else(|| panic!("{method} {path}: no {pointer}: {}", answer.text));
                ids.insert(name.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            }
        }
    }

    /// Makes sure that no request is left.
    pub fn expect_none_left(&self, ids: &Ids) {
        assert!(self.0.is_empty(), "ids of {:?} are missing in {ids:?}", self.0);
    }
}

impl Sample {
    /// The method, path and body, once all ids are known.
    fn request(&self, ids: &Ids) -> Option<(&'static str, String, Value)> {
        let methods = [("POST", &self.post), ("PUT", &self.put), ("PATCH", &self.patch)];
        let (method, path) =
            methods.into_iter().find_map(|(method, path)| Some((method, path.as_ref()?))).expect("a method");
        let mut path = path.clone();
        for (name, id) in ids {
            path = path.replace(&format!("{{{name}}}"), id);
        }
        if path.contains('{') {
            return None;
        }
        Some((method, path, filled(&self.body, ids)?))
    }
}

/// A body with ids in the place of texts such as `{agentId}`.
fn filled(value: &Value, ids: &Ids) -> Option<Value> {
    Some(match value {
        Value::String(text) => match text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) if name.bytes().all(|byte| byte.is_ascii_alphabetic()) => {
                let id = ids.get(name)?;
                id.parse::<i64>().map_or_else(|_| id.as_str().into(), Value::from)
            }
            _ => value.clone(),
        },
        Value::Array(rows) => Value::Array(rows.iter().map(|row| filled(row, ids)).collect::<Option<_>>()?),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, field)| Some((name.clone(), filled(field, ids)?)));
            Value::Object(fields.collect::<Option<_>>()?)
        }
        _ => value.clone(),
    })
}
