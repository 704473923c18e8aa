//! Results: the data of an answer, small enough for the context of a model.

use super::answer::ToolResult;
use model::{Error, Result};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The most characters of a result: about 12,000 tokens, with four characters to a token.
pub(super) const MOST_CHARACTERS: usize = 48_000;
/// The most bytes of a result.
const MOST_BYTES: usize = 64 << 10;
/// What is left for the envelope and for the list of cuts.
const RESERVE: usize = 2_000;
/// A part is only shown in part if this many characters are left for it.
const WORTHWHILE: usize = 500;

/// The successful answer of an operation.
pub(super) struct Answer {
    /// JSON text of an object: the data, or `{data, has_more, next_cursor}` of a list.
    text: String,
}

impl Answer {
    /// Takes the data from the response envelope.
    ///
    /// # Errors
    /// `internal_error` for a body that is no envelope.
    pub(super) fn of(body: &str) -> Result<Self> {
        let mut members: BTreeMap<String, &RawValue> = serde_json::from_str(body).map_err(Error::internal)?;
        members.remove("success");
        let text = match members.get("data") {
            Some(data) if members.len() == 1 && data.get().starts_with('{') => data.get().to_owned(),
            _ => serde_json::to_string(&members).map_err(Error::internal)?,
        };
        Ok(Self { text })
    }

    /// Takes a value that the tools composed.
    pub(super) fn composed(value: &Value) -> Self {
        Self { text: value.to_string() }
    }

    fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Keeps only the members at these JSON pointers, in each row of a list.
    pub(super) fn keep(&mut self, pointers: &[String]) {
        if pointers.is_empty() {
            return;
        }
        let paths: Vec<Vec<String>> = pointers.iter().map(|pointer| segments(pointer)).collect();
        let mut value = self.value();
        match value.get_mut("data").filter(|data| data.is_array()) {
            Some(rows) => *rows = kept(rows, &paths),
            None => value = kept(&value, &paths),
        }
        self.text = value.to_string();
    }

    /// Returns how many rows of a list fit, if not all do.
    pub(super) fn rows_that_fit(&self) -> Option<usize> {
        if fits(&self.text) {
            return None;
        }
        let value = self.value();
        let rows = value.get("data")?.as_array()?;
        let budget = MOST_CHARACTERS - RESERVE;
        Some(rows_within(rows, budget).max(1))
    }

    /// Makes the result. What is too large loses whole rows and members, and says so in `cut`.
    pub(super) fn result(self, meta: Map<String, Value>) -> ToolResult {
        let text = if fits(&self.text) {
            self.text
        } else {
            let mut cuts = Vec::new();
            let mut value = cut(self.value(), MOST_CHARACTERS - RESERVE, "", &mut cuts);
            cuts.truncate(10);
            if let Some(members) = value.as_object_mut() {
                members.insert("cut".to_owned(), cuts.into());
            }
            value.to_string()
        };
        ToolResult { structured: Some(text.clone()), text, meta, ..ToolResult::default() }
    }
}

/// Reads the argument `fields`.
///
/// # Errors
/// `validation_error` for anything but a list of JSON pointers.
pub(super) fn pointers(value: Option<&Value>) -> Result<Vec<String>> {
    let refusal =
        || Error::invalid("fields", "must be a list of JSON pointers, such as `[\"/id\", \"/name\"]`");
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(values)) => {
            let texts = values.iter().map(|value| value.as_str().filter(|text| text.starts_with('/')));
            texts.map(|text| text.map(str::to_owned).ok_or_else(refusal)).collect()
        }
        Some(_) => Err(refusal()),
    }
}

/// Makes the result of an error response.
pub(super) fn failure(body: &Value, status: u16, mut meta: Map<String, Value>) -> ToolResult {
    let error = body.get("error").unwrap_or(&Value::Null);
    let text = |name: &str| error.get(name).and_then(Value::as_str);
    let message = text("message").unwrap_or("The call failed.");
    let code = text("code").unwrap_or("internal_error");
    let mut lines = vec![message.to_owned()];
    let others = error.get("errors").and_then(Value::as_array).into_iter().flatten();
    for other in others {
        let part = |name: &str| other.get(name).and_then(Value::as_str).unwrap_or_default();
        let line = format!("`{}` {}", part("param"), part("message"));
        if !message.contains(part("message")) {
            lines.push(line);
        }
    }
    let mut about = format!("code: {code}");
    if let Some(param) = text("param") {
        about.push_str(", param: ");
        about.push_str(param);
        meta.insert("param".to_owned(), param.into());
    }
    if let Some(request) = body.get("request_id").and_then(Value::as_str) {
        about.push_str(", request: ");
        about.push_str(request);
        meta.insert("request_id".to_owned(), request.into());
    }
    if let Some(details) = error.get("details") {
        lines.push(format!("details: {details}"));
    }
    lines.push(format!("({about})"));
    meta.insert("code".to_owned(), code.into());
    meta.insert("status".to_owned(), status.into());
    ToolResult { text: lines.join("\n"), is_error: true, meta, ..ToolResult::default() }
}

/// Returns a block that links to a file, for data that has the address of bytes.
pub(super) fn link(text: &str) -> Option<Value> {
    // Only small objects are links, so a list is not parsed for it.
    if text.len() > 16_000 || !text.contains("\"url\"") {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    let part = |name: &str| value.get(name).and_then(Value::as_str);
    let is_link = matches!(part("object"), Some("file" | "export_link" | "skill_export" | "export"));
    let (url, true) = (part("url")?, is_link) else { return None };
    let name = part("name").or_else(|| part("filename")).unwrap_or("file");

    Some(match part("media_type").or_else(|| part("content_type")) {
        Some(kind) => json!({ "type": "resource_link", "uri": url, "name": name, "mimeType": kind }),
        None => json!({ "type": "resource_link", "uri": url, "name": name }),
    })
}

fn fits(text: &str) -> bool {
    text.len() <= MOST_CHARACTERS || (text.len() <= MOST_BYTES && text.chars().count() <= MOST_CHARACTERS)
}

fn size(value: &Value) -> usize {
    // Bytes are never fewer than characters, so a text that fits by bytes fits.
    value.to_string().len()
}

fn rows_within(rows: &[Value], budget: usize) -> usize {
    let mut left = budget;
    let fitting = rows.iter().take_while(|row| {
        let size = size(row) + 1;
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    });
    fitting.count()
}

/// Cuts a value to a number of bytes at whole rows and members.
fn cut(value: Value, budget: usize, path: &str, cuts: &mut Vec<Value>) -> Value {
    if size(&value) <= budget {
        return value;
    }
    let place = if path.is_empty() { "/" } else { path };
    match value {
        Value::String(text) => {
            let all = text.chars().count();
            // In JSON a character is up to six bytes long.
            let kept: String = text.chars().take(budget / 6).collect();
            cuts.push(format!("{place}: the first {} of {all} characters", kept.chars().count()).into());
            Value::String(kept)
        }
        Value::Array(mut rows) => {
            let (all, count) = (rows.len(), rows_within(&rows, budget));
            rows.truncate(count.max(1));
            if count == 0 {
                rows = rows.into_iter().map(|row| cut(row, budget, &format!("{path}/0"), cuts)).collect();
            }
            if rows.len() < all {
                cuts.push(format!("{place}: the first {} of {all} rows", rows.len()).into());
            }
            Value::Array(rows)
        }
        Value::Object(members) => Value::Object(cut_members(members, budget, path, cuts)),
        other => other,
    }
}

/// Keeps the small members of an object, and as much of the large ones as fits.
fn cut_members(
    members: Map<String, Value>,
    budget: usize,
    path: &str,
    cuts: &mut Vec<Value>,
) -> Map<String, Value> {
    let mut sizes: Vec<(usize, &String)> =
        members.iter().map(|(name, value)| (size(value) + name.len() + 4, name)).collect();
    sizes.sort();
    let (mut left, mut budgets) = (budget, BTreeMap::new());
    for (size, name) in sizes {
        let given = size.min(left);
        if given == size || given > WORTHWHILE {
            budgets.insert(name.clone(), given);
            left -= given;
        } else {
            cuts.push(format!("{path}/{name}: left out; ask for it with `fields`").into());
        }
    }
    let shown = members.into_iter().filter_map(|(name, value)| {
        let budget = budgets.get(&name)?.saturating_sub(name.len() + 4);
        let value = cut(value, budget, &format!("{path}/{name}"), cuts);
        Some((name, value))
    });
    shown.collect()
}

fn segments(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
}

/// Keeps what any of the paths leads to. A path goes on in each row of a list.
fn kept(value: &Value, paths: &[Vec<String>]) -> Value {
    if paths.iter().any(Vec::is_empty) {
        return value.clone();
    }
    match value {
        Value::Array(rows) => {
            let by_place = |place: usize| -> Vec<Vec<String>> {
                let place = place.to_string();
                let here = paths.iter().filter(|path| path.first() == Some(&place));
                here.map(|path| path.iter().skip(1).cloned().collect()).collect()
            };
            let is_number =
                |path: &Vec<String>| path.first().is_some_and(|part| part.parse::<usize>().is_ok());
            if paths.iter().all(is_number) {
                let chosen = rows.iter().enumerate().map(|(place, row)| (row, by_place(place)));
                return chosen
                    .filter(|(_, paths)| !paths.is_empty())
                    .map(|(row, paths)| kept(row, &paths))
                    .collect();
            }
            rows.iter().map(|row| kept(row, paths)).collect()
        }
        Value::Object(members) => {
            let kept_members = members.iter().filter_map(|(name, member)| {
                let here = paths.iter().filter(|path| path.first() == Some(name));
                let deeper: Vec<Vec<String>> =
                    here.map(|path| path.iter().skip(1).cloned().collect()).collect();
                (!deeper.is_empty()).then(|| (name.clone(), kept(member, &deeper)))
            });
            Value::Object(kept_members.collect())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_an_object_and_the_envelope_goes() {
        let text = |body: &str| Answer::of(body).unwrap().text;
        assert_eq!(text(r#"{"success":true,"data":{"id":1}}"#), r#"{"id":1}"#);
        assert_eq!(text(r#"{"success":true,"data":[1,2]}"#), r#"{"data":[1,2]}"#);
        assert_eq!(
            text(r#"{"success":true,"data":[],"has_more":true,"next_cursor":"x"}"#),
            r#"{"data":[],"has_more":true,"next_cursor":"x"}"#
        );
    }

    #[test]
    fn fields_are_kept_in_rows_and_in_nested_lists() {
        let body =
            r#"{"success":true,"data":[{"id":1,"a":{"b":2,"c":3},"l":[{"x":1,"y":2}]}],"has_more":false}"#;
        let mut answer = Answer::of(body).unwrap();
        answer.keep(&["/id".to_owned(), "/a/c".to_owned(), "/l/y".to_owned()]);
        assert_eq!(answer.text, r#"{"data":[{"id":1,"a":{"c":3},"l":[{"y":2}]}],"has_more":false}"#);
    }

    #[test]
    fn large_results_are_cut_at_rows_and_members() {
        let rows: Vec<Value> = (0..1000).map(|id| json!({ "id": id, "text": "x".repeat(100) })).collect();
        for value in [
            json!({ "data": rows }),
            json!({ "id": 7, "graph": { "nodes": rows, "name": "n" }, "note": "y".repeat(60_000) }),
            json!({ "id": 7, "note": "ö\"".repeat(60_000) }),
        ] {
            let result = Answer::composed(&value).result(Map::new());
            assert!(result.text.chars().count() <= MOST_CHARACTERS && result.text.len() <= MOST_BYTES);
            let shown: Value = serde_json::from_str(&result.text).unwrap();
            assert!(!shown["cut"].as_array().unwrap().is_empty());
            assert_eq!(shown.get("id"), value.get("id"));
            assert_eq!(result.structured.as_deref(), Some(result.text.as_str()));
        }
        let answer = Answer::composed(&json!({ "data": rows }));
        let count = answer.rows_that_fit().unwrap();
        assert!((300..450).contains(&count), "{count}");
    }

    #[test]
    fn failures_say_what_to_mend() {
        let body = json!({ "success": false, "request_id": "req_1", "error": {
            "type": "invalid_request_error", "code": "validation_error", "message": "`name` is required", "param": "name",
        } });
        let result = failure(&body, 400, Map::new());
        assert_eq!(result.text, "`name` is required\n(code: validation_error, param: name, request: req_1)");
        assert!(result.is_error && result.structured.is_none());
        assert_eq!(result.meta["status"], 400);
    }
}
