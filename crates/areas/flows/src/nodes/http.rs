//! HTTP requests of flows.

use super::calls::{done, simulated, text_of, unknown};
use super::{NodeCall, NodeFailure, Work};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use egress::{Error, HeaderMap, HeaderName, Limits, Method, Request, Response, Url};
use flow_graphs::{config, is_repeatable_method};
use model::{Chain, EventId};
use operation::CauseHeader;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// How long a request may take if the node does not say so, in seconds.
const DEFAULT_SECONDS: u64 = 30;
/// How long a request may take, in seconds.
const MOST_SECONDS: u64 = 60;
/// The largest body of an answer, in bytes.
const LARGEST_ANSWER: usize = 5_000_000;
/// Redirects that are followed.
const MOST_REDIRECTS: u32 = 3;
/// The characters of an answer that a failure shows.
const EXCERPT: usize = 300;

/// Makes an HTTP request.
pub(super) async fn http_request(call: &NodeCall) -> Result<Work, NodeFailure> {
    let config: config::HttpRequest = call.config()?;
    let method = Method::from_bytes(config.method.as_str().as_bytes())
        .map_err(|_| NodeFailure::new("validation_error", "The method is not accepted."))?;
    if call.is_test() && method != Method::GET {
        let shown = json!({ "method": config.method, "url": config.url, "body": config.body });
        return Ok(simulated(shown));
    }
    let request = request(call, &config, method.clone())?;
    let limits = Limits {
        total: call.patience(DEFAULT_SECONDS, MOST_SECONDS),
        max_response_bytes: LARGEST_ANSWER,
        ..Limits::default()
    };
    match exchange(call, Request { limits, ..request }).await {
        Ok(response) => answered(call, &config, &method, &response).map(done),
        Err(Broken::Refused(message)) => Err(NodeFailure::new("http_refused", message)),
        Err(Broken::Failed(error)) => failed(&method, error),
    }
}

/// The request that the settings describe, with the secrets that they mention.
fn request(call: &NodeCall, config: &config::HttpRequest, method: Method) -> Result<Request, NodeFailure> {
    let secrets = &call.secrets;
    if secrets.are_in(&Value::from(authority(&config.url))) {
        return Err(NodeFailure::new("secret_not_allowed", "A secret cannot be a part of a host."));
    }
    let mut url = secrets.reveal_in_url(&config.url);
    for (name, value) in &config.query {
        let value = text_of(&secrets.reveal(value));
        url.push(if url.contains('?') { '&' } else { '?' });
        url.extend(utf8_percent_encode(name, NON_ALPHANUMERIC));
        url.push('=');
        url.extend(utf8_percent_encode(&value, NON_ALPHANUMERIC));
    }
    let mut request = Request::new(method.clone(), url);
    for (name, value) in &config.headers {
        request = request.header(checked(name)?, header_value(call, &text_of(value)));
    }
    let has = |request: &Request, name: &str| {
        request.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
    };
    if method != Method::GET && !has(&request, "idempotency-key") {
        request = request.header("idempotency-key", &call.key);
    }
    let (body, kind) = match &config.body {
        None | Some(Value::Null) => return Ok(request),
        Some(Value::String(text)) => {
            (text_of(&secrets.reveal(&Value::from(text.as_str()))), "text/plain; charset=utf-8")
        }
        Some(json) => (secrets.reveal(json).to_string(), "application/json"),
    };
    if !has(&request, "content-type") {
        request = request.header("content-type", kind);
    }
    Ok(request.body(body))
}

/// The part of a URL up to its path.
fn authority(url: &str) -> &str {
    let start = url.find("://").map_or(0, |place| place + 3);
    let end = url.get(start..).and_then(|rest| rest.find(['/', '?', '#'])).map(|place| start + place);
    url.get(..end.unwrap_or(url.len())).unwrap_or(url)
}

/// The name of a header, if a flow can set it.
fn checked(name: &str) -> Result<&str, NodeFailure> {
    let is_ours = name.to_ascii_lowercase().starts_with("x-svc-");
    let parsed = HeaderName::from_bytes(name.as_bytes());
    if is_ours || !parsed.is_ok_and(|name| !egress::frames_message(&name)) {
        let message = format!("The header `{}` cannot be set.", name.escape_debug());
        return Err(NodeFailure::new("validation_error", message));
    }
    Ok(name)
}

/// The value of a header with its secrets, also in the base64 of `Basic` credentials.
fn header_value(call: &NodeCall, value: &str) -> String {
    let reveal = |text: &str| text_of(&call.secrets.reveal(&Value::from(text)));
    if let Some((scheme, coded)) = value.split_once(' ')
        && scheme.eq_ignore_ascii_case("basic")
        && let Ok(plain) = STANDARD.decode(coded.trim())
        && let Ok(plain) = String::from_utf8(plain)
    {
        return format!("{scheme} {}", STANDARD.encode(reveal(&plain)));
    }
    reveal(value)
}

/// Why there is no answer.
enum Broken {
    /// The request was not made.
    Refused(&'static str),
    /// It failed.
    Failed(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Sends a request and follows redirects. Secrets go to the first origin only.
async fn exchange(call: &NodeCall, request: Request) -> Result<Response, Broken> {
    let parts = &call.engine.0;
    let has_secrets = call.secrets.are_in(&call.task.config);
    let origin = |url: &str| Url::parse(url).ok().map(|url| url.origin());
    let (first, end) = (origin(&request.url), Instant::now() + request.limits.total);
    let mut hop = request;
    for _ in 0..=MOST_REDIRECTS {
        if has_secrets && origin(&hop.url) != first {
            return Err(Broken::Refused(
                "A redirect leads to another origin, which would get the secrets of the request.",
            ));
        }
        let mut sent = hop.clone();
        sent.headers.extend(cause(call, &hop.url));
        sent.limits.total = end.saturating_duration_since(Instant::now());
        let response = parts.connector.send(sent).await?;
        match hop.redirected(&response)? {
            None => return Ok(response),
            Some(next) => hop = next,
        }
    }
    Err(Error::TooManyRedirects.into())
}

/// The header that makes a request to the service's own address go on with the chain of causes.
fn cause(call: &NodeCall, url: &str) -> Option<(String, String)> {
    let parts = &call.engine.0;
    if !parts.causes.is_own(url) {
        return None;
    }
    let now = parts.db.now();
    let begun = || Chain::starting(EventId::new(now, &*parts.db.random())).next();
    let chain = call.caller.chain.clone().unwrap_or_else(begun);
    parts.causes.of(url, &chain, now)
}

/// The output of a node whose request was answered.
fn answered(
    call: &NodeCall,
    config: &config::HttpRequest,
    method: &Method,
    response: &Response,
) -> Result<Value, NodeFailure> {
    let status = response.status;
    let body = body(&response.headers, &response.body);
    let is_success = match config.success_codes.as_slice() {
        [] => status < 300,
        codes => codes.contains(&i64::from(status)),
    };
    if is_success {
        let body = body.map_err(|message| NodeFailure::new("invalid_answer", message))?;
        return Ok(json!({ "status": status, "headers": headers(&response.headers), "body": body }));
    }
    let excerpt = body.map(|body| text_of(&call.secrets.mask(&body))).unwrap_or_default();
    let excerpt: String = excerpt.chars().take(EXCERPT).collect();
    let message = match excerpt.trim() {
        "" => format!("The server answered {status}."),
        excerpt => format!("The server answered {status}: {excerpt}"),
    };
    let wait = response.headers.get("retry-after").and_then(|value| value.to_str().ok());
    let wait = wait.and_then(|value| egress::retry_after(value, call.engine.now().millis()));
    Err(NodeFailure {
        code: format!("http_{status}"),
        message,
        is_transient: is_transient(method, status),
        retry_after: wait.map(|wait| wait.as_secs() + u64::from(wait.subsec_nanos() > 0)),
    })
}

/// Returns whether a request that was answered like this may be repeated. A POST or PATCH may have had its effect before a server
/// failed.
fn is_transient(method: &Method, status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 503) || (status >= 500 && is_repeatable_method(method.as_str()))
}

/// The headers of an answer, without that of the chain of causes.
fn headers(headers: &HeaderMap) -> Map<String, Value> {
    let mut shown = Map::new();
    for (name, value) in headers {
        let (name, value) = (name.as_str(), String::from_utf8_lossy(value.as_bytes()));
        if name == CauseHeader::NAME {
            continue;
        }
        let before = shown.get(name).and_then(Value::as_str);
        let all = before.map_or_else(|| value.to_string(), |before| format!("{before}, {value}"));
        shown.insert(name.to_owned(), all.into());
    }
    shown
}

/// The body of an answer: JSON as its value, and any other text as a text.
fn body(headers: &HeaderMap, bytes: &[u8]) -> Result<Value, &'static str> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let kind = headers.get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let text = match egress::charset::label(kind) {
        Some(label) if !label.eq_ignore_ascii_case("utf-8") => egress::charset::decode(Some(kind), bytes),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => text.trim_start_matches('\u{feff}').into(),
            Err(_) => return Err("The body of the answer is not valid UTF-8."),
        },
    };
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let says_json = essence == "application/json" || essence.ends_with("+json");
    match serde_json::from_str(&text) {
        Ok(json) if says_json || essence.is_empty() => Ok(json),
        Err(_) if says_json => Err("The body of the answer is not valid JSON."),
        _ => Ok(Value::String(text.into_owned())),
    }
}

/// Maps a request that failed without an answer to the failure of the node.
fn failed(method: &Method, error: Error) -> Result<Work, NodeFailure> {
    let message = format!("There is no answer: {error}.");
    let code = match error {
        error if error.is_refusal() => "http_refused",
        Error::TooLarge { .. } => "answer_too_large",
        Error::TooManyRedirects => "too_many_redirects",
        Error::Timeout { .. } => "http_timeout",
        _ => "http_failed",
    };
    let has_answer = matches!(error, Error::TooLarge { .. } | Error::TooManyRedirects);
    if error.is_refusal() || has_answer {
        return Err(NodeFailure::new(code, message));
    }
    if error.is_sent() && !is_repeatable_method(method.as_str()) {
        return Ok(unknown());
    }
    Err(NodeFailure::transient(code, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(value: &str) -> HeaderMap {
        std::iter::once((HeaderName::from_static("content-type"), value.parse().unwrap())).collect()
    }

    #[test]
    fn bodies_are_json_or_text() {
        for (content_type, bytes, expected) in [
            ("application/json", &b"{\"a\":1}"[..], Ok(json!({ "a": 1 }))),
            ("application/problem+json; charset=UTF-8", b"[1]", Ok(json!([1]))),
            ("application/json", b"", Ok(json!(null))),
            ("application/json", b"{", Err("The body of the answer is not valid JSON.")),
            ("text/plain", b"[1]", Ok(json!("[1]"))),
            ("text/plain; charset=latin1", b"\xe9", Ok(json!("\u{e9}"))),
            ("text/plain", b"\xff\xfe\xfd", Err("The body of the answer is not valid UTF-8.")),
            ("application/octet-stream", b"\x00\xff", Err("The body of the answer is not valid UTF-8.")),
            ("text/html", b"\xef\xbb\xbfa", Ok(json!("a"))),
        ] {
            assert_eq!(body(&kind(content_type), bytes), expected, "{content_type} {bytes:?}");
        }
        assert_eq!(body(&HeaderMap::new(), b"{\"a\":1}"), Ok(json!({ "a": 1 })));
    }

    #[test]
    fn writes_are_repeated_only_where_the_server_says_that_nothing_happened() {
        for status in [408, 425, 429, 503] {
            assert!(is_transient(&Method::POST, status) && is_transient(&Method::GET, status), "{status}");
        }
        for status in [500, 502, 504] {
            assert!(
                !is_transient(&Method::POST, status) && !is_transient(&Method::PATCH, status),
                "{status}"
            );
            assert!(is_transient(&Method::PUT, status) && is_transient(&Method::GET, status), "{status}");
        }
        assert!(!is_transient(&Method::GET, 404));
    }

    #[test]
    fn the_authority_of_a_url() {
        assert_eq!(authority("https://a.example.com:8080/b?c"), "https://a.example.com:8080");
        assert_eq!(authority("https://a.example.com?c=/d"), "https://a.example.com");
        assert_eq!(authority("a/b"), "a");
    }

    #[test]
    fn headers_of_the_service_cannot_be_set() {
        for name in ["x-svc-cause", "Host", "Content-Length", "a b", ""] {
            assert!(checked(name).is_err(), "{name}");
        }
        assert!(checked("X-Api-Key").is_ok());
    }

    #[test]
    fn headers_that_repeat_are_joined() {
        let mut map = kind("text/plain");
        map.append("x-a", "1".parse().unwrap());
        map.append("x-a", "2".parse().unwrap());
        map.insert(CauseHeader::NAME, "secret".parse().unwrap());
        assert_eq!(Value::Object(headers(&map)), json!({ "content-type": "text/plain", "x-a": "1, 2" }));
    }
}
