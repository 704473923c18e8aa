//! HTTP client for `http` tools.

use super::rows::ToolOutput;
use crate::agents::{HttpMethod, HttpTool, ToolSettings};
use egress::{Connector, Limits, Method, Oversize, Request};
use model::Span;
use operation::note_http;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The most bytes of an answer that are given to the model.
const LARGEST_RESULT: usize = 64 * 1024;

/// What a writing tool answers under a test key: nothing is sent.
pub(super) fn simulated(tool: &ToolSettings) -> ToolOutput {
    let method = tool.http.as_ref().map(|http| http.method);
    let note = "This is a test run: the call was not made.";
    ToolOutput { ok: true, result: json!({ "simulated": true, "method": method, "note": note }) }
}

/// Calls the tool with all its arguments. Every failure is an answer to the model, never an error of the run.
pub(super) async fn call(
    connector: &Connector,
    http: &HttpTool,
    headers: BTreeMap<String, String>,
    mut arguments: Map<String, Value>,
    patience: Duration,
    effect_key: &str,
    span: &mut Span,
) -> ToolOutput {
    let url = match address(&http.url, &mut arguments) {
        Ok(url) => url,
        Err(why) => return ToolOutput::error(why),
    };
    let Ok(method) = Method::from_bytes(http.method.as_str().as_bytes()) else {
        return ToolOutput::error("the tool has an unknown method");
    };
    let in_query = matches!(http.method, HttpMethod::Get | HttpMethod::Delete);
    let url = if in_query { with_query(url, &arguments) } else { url };
    let has = |name: &str| headers.keys().any(|header| header.eq_ignore_ascii_case(name));
    let (has_type, has_key) = (has("content-type"), has("idempotency-key"));
    let limits = Limits {
        total: patience,
        max_response_bytes: LARGEST_RESULT,
        oversize: Oversize::Truncate,
        ..Limits::default()
    };
    let mut request = Request::new(method, url).limits(limits);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    if http.method != HttpMethod::Get && !has_key {
        request = request.header("idempotency-key", effect_key);
    }
    if !in_query {
        if !has_type {
            request = request.header("content-type", "application/json");
        }
        request = request.body(Value::Object(arguments).to_string());
    }
    let answer = connector.send(request).await;
    note_http(span, answer.as_ref().map(|response| response.status).map_err(egress::Error::kind));
    match answer {
        Ok(response) => {
            let text = String::from_utf8_lossy(&response.body).replace('\0', "");
            let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
            let ok = (200..300).contains(&response.status);
            let mut result = json!({ "status": response.status, "body": body });
            if let Some(result) = result.as_object_mut().filter(|_| response.truncated) {
                result.insert("truncated".to_owned(), true.into());
            }
            ToolOutput { ok, result }
        }
        Err(error) => ToolOutput::error(format!("the call failed: {error}")),
    }
}

/// Puts arguments into the placeholders of the address, and takes them out of the rest.
///
/// An argument fills a place within a segment of the path and never changes the path: it is encoded, it is not empty,
/// and no segment becomes `.` or `..`, which URLs resolve even when they are encoded.
fn address(template: &str, arguments: &mut Map<String, Value>) -> Result<String, String> {
    let mut url = String::with_capacity(template.len());
    let mut rest = template;
    let mut filled = false;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, behind)) = after.split_once('}') else { break };
        let value =
            arguments.get(name).map(plain).ok_or_else(|| format!("the argument `{name}` is missing"))?;
        if value.is_empty() {
            return Err(format!("the argument `{name}` is empty"));
        }
        filled = true;
        url.push_str(before);
        url.extend(utf8_percent_encode(&value, NON_ALPHANUMERIC));
        rest = behind;
    }
    url.push_str(rest);
    let path = url.split(['?', '#']).next().unwrap_or_default();
    if filled && path.split('/').any(is_dots) {
        return Err("the arguments make `.` or `..` of a part of the path".to_owned());
    }
    for name in placeholders(template) {
        arguments.remove(name);
    }
    Ok(url)
}

fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|part| part.split_once('}').map(|(name, _)| name))
}

fn is_dots(segment: &str) -> bool {
    let segment = segment.to_ascii_lowercase().replace("%2e", ".");
    segment == "." || segment == ".."
}

fn with_query(mut url: String, arguments: &Map<String, Value>) -> String {
    for (name, value) in arguments {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.extend(utf8_percent_encode(name, NON_ALPHANUMERIC));
        url.push('=');
        url.extend(utf8_percent_encode(&plain(value), NON_ALPHANUMERIC));
    }
    url
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_go_into_the_address_and_nowhere_else() {
        let mut arguments = json!({ "city": "São/Paulo?x=1", "days": 3 }).as_object().unwrap().clone();
        let url = address("https://example.com/{city}/now", &mut arguments).unwrap();
        assert_eq!(url, "https://example.com/S%C3%A3o%2FPaulo%3Fx%3D1/now");
        assert_eq!(with_query(url, &arguments), "https://example.com/S%C3%A3o%2FPaulo%3Fx%3D1/now?days=3");
        assert!(address("https://example.com/{other}", &mut Map::new()).is_err());
    }

    #[test]
    fn arguments_do_not_change_the_path() {
        for (template, value) in [
            ("https://example.com/users/{id}/name", ".."),
            ("https://example.com/users/{id}", "."),
            ("https://example.com/users/.{id}/x", "."),
            ("https://example.com/users/{id}/name", ""),
        ] {
            let mut arguments = json!({ "id": value }).as_object().unwrap().clone();
            assert!(address(template, &mut arguments).is_err(), "{template} {value}");
        }
        let mut twice = json!({ "id": "7." }).as_object().unwrap().clone();
        let url = address("https://example.com/{id}/{id}", &mut twice).unwrap();
        assert_eq!(url, "https://example.com/7%2E/7%2E");
        assert!(twice.is_empty());
    }
}
