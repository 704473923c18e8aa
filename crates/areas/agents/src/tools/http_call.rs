//! HTTP client for `http` tools.

use super::tool::{HttpMethod, HttpTool};
use egress::{Connector, Limits, Method, Oversize, Request};
use expressions::placeholder::{UrlPiece, url_pieces};
use model::JsonText;
use operation::note_http;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use providers::json::{self, Fields};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;
use telemetry::Span;

/// The most bytes of an answer that are given to the model.
const LARGEST_RESULT: usize = 64 * 1024;

/// The part of a response that the model receives.
#[derive(Debug, Serialize)]
pub struct HttpResult {
    /// The status.
    pub status: u16,
    /// JSON as it came, and any other text as a text.
    pub body: JsonText,
    /// Whether only the beginning is here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
}

/// Why a call has no response.
#[derive(Debug)]
pub struct HttpFailure {
    /// The reason, for the model.
    pub message: String,
    /// Whether the call may have had its effect all the same.
    pub is_unknown: bool,
}

impl HttpFailure {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), is_unknown: false }
    }
}

/// Calls the tool with all its arguments.
///
/// # Errors
/// The call was not made, or there is no response.
pub async fn call(
    connector: &Connector,
    http: &HttpTool,
    headers: BTreeMap<String, String>,
    mut arguments: Fields,
    patience: Duration,
    effect_key: &str,
    span: &mut Span,
) -> Result<HttpResult, HttpFailure> {
    let url = address(&http.url, &mut arguments).map_err(HttpFailure::new)?;
    let Ok(method) = Method::from_bytes(http.method.as_str().as_bytes()) else {
        return Err(HttpFailure::new("the tool has an unknown method"));
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
        request = request.body(arguments.text());
    }
    let answer = connector.send(request).await;
    note_http(span, answer.as_ref().map(|response| response.status).map_err(egress::Error::kind));
    match answer {
        Ok(response) => {
            let kind = response.headers.get("content-type").and_then(|value| value.to_str().ok());
            let text = egress::charset::decode(kind, &response.body).replace('\0', "");
            let body = json::text_of(&text).unwrap_or_else(|| JsonText::of(&text));
            let truncated = response.truncated.then_some(true);
            Ok(HttpResult { status: response.status, body, truncated })
        }
        Err(error) => {
            // It may have arrived.
            let is_unknown = http.method != HttpMethod::Get && matches!(error.kind(), "timeout" | "http");
            Err(HttpFailure { message: format!("the call failed: {error}"), is_unknown })
        }
    }
}

/// Puts arguments into the placeholders of the address, and takes them out of the rest.
///
/// An argument fills a place within a segment of the path and never changes the path: it is encoded, it is not empty,
/// and no segment becomes `.` or `..`, which URLs resolve even when they are encoded.
fn address(template: &str, arguments: &mut Fields) -> Result<String, String> {
    let mut url = String::with_capacity(template.len());
    let mut places = Vec::new();
    for piece in url_pieces(template) {
        let name = match piece {
            UrlPiece::Text(text) | UrlPiece::Stray(text) => {
                url.push_str(text);
                continue;
            }
            UrlPiece::Place(name) => name,
        };
        let value = arguments.get(name).map(json::plain);
        let value = value.ok_or_else(|| format!("the argument `{name}` is missing"))?;
        if value.is_empty() {
            return Err(format!("the argument `{name}` is empty"));
        }
        url.extend(utf8_percent_encode(&value, NON_ALPHANUMERIC));
        places.push(name);
    }
    let path = url.split(['?', '#']).next().unwrap_or_default();
    if !places.is_empty() && path.split('/').any(is_dots) {
        return Err("the arguments make `.` or `..` of a part of the path".to_owned());
    }
    for name in places {
        arguments.remove(name);
    }
    Ok(url)
}

fn is_dots(segment: &str) -> bool {
    let segment = segment.to_ascii_lowercase().replace("%2e", ".");
    segment == "." || segment == ".."
}

fn with_query(mut url: String, arguments: &Fields) -> String {
    for (name, value) in arguments.iter() {
        url.push(if url.contains('?') { '&' } else { '?' });
        url.extend(utf8_percent_encode(name, NON_ALPHANUMERIC));
        url.push('=');
        url.extend(utf8_percent_encode(&json::plain(value), NON_ALPHANUMERIC));
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(arguments: &serde_json::Value) -> Fields {
        Fields::of(&JsonText::of(arguments)).unwrap()
    }

    #[test]
    fn arguments_go_into_the_address_and_nowhere_else() {
        let mut arguments = fields(&json!({ "city": "São/Paulo?x=1", "days": 3 }));
        let url = address("https://example.com/{city}/now", &mut arguments).unwrap();
        assert_eq!(url, "https://example.com/S%C3%A3o%2FPaulo%3Fx%3D1/now");
        assert_eq!(with_query(url, &arguments), "https://example.com/S%C3%A3o%2FPaulo%3Fx%3D1/now?days=3");
        assert!(address("https://example.com/{other}", &mut Fields::default()).is_err());
    }

    #[test]
    fn arguments_do_not_change_the_path() {
        for (template, value) in [
            ("https://example.com/users/{id}/name", ".."),
            ("https://example.com/users/{id}", "."),
            ("https://example.com/users/.{id}/x", "."),
            ("https://example.com/users/{id}/name", ""),
        ] {
            let mut arguments = fields(&json!({ "id": value }));
            assert!(address(template, &mut arguments).is_err(), "{template} {value}");
        }
        let mut twice = fields(&json!({ "id": "7." }));
        let url = address("https://example.com/{id}/{id}", &mut twice).unwrap();
        assert_eq!(url, "https://example.com/7%2E/7%2E");
        assert_eq!(twice.text(), "{}");
    }
}
