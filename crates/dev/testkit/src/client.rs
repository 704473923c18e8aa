//! An HTTP client for a service.

use crate::Listening;
use egress::{Connector, Limits as HttpLimits, Method, Policy, Request, Streaming};
use model::{KeyId, WorkspaceId};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// An API key for requests.
#[derive(Debug, Clone)]
pub struct Key {
    /// The secret.
    pub secret: String,
    /// The id.
    pub id: KeyId,
    /// The workspace of the key (the first client of a partner key).
    pub workspace: WorkspaceId,
}

/// An HTTP client for a service, in this process or another.
pub struct Client {
    origin: String,
    connector: Connector,
}

impl Client {
    /// Creates a client for the service at `origin`, such as `http://127.0.0.1:40001`.
    pub fn new(origin: &str) -> Self {
        let policy = Policy::allowing(["127.0.0.0/8"]).unwrap();
        Self { origin: origin.to_owned(), connector: Connector::new(policy).unwrap() }
    }

    /// Creates a request to the API. `path` is the part after `/api/v1`.
    pub fn ask(&self, method: &str, path: &str) -> Asking<'_> {
        self.ask_beside(method, &format!("/api/v1{path}"))
    }

    /// Creates a request to a route outside the API.
    pub fn ask_beside(&self, method: &str, path: &str) -> Asking<'_> {
        let url = format!("{}{path}", self.origin);
        Asking { client: self, method: method.to_owned(), url, headers: Vec::new(), body: Vec::new() }
    }
}

/// A request to build and send.
pub struct Asking<'a> {
    client: &'a Client,
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Asking<'_> {
    /// Sets the key.
    #[must_use]
    pub fn key(self, key: &Key) -> Self {
        self.header("authorization", &format!("Bearer {}", key.secret))
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets a JSON body.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        self.bytes("application/json", body.to_string().as_bytes())
    }

    /// Sets a body.
    #[must_use]
    pub fn bytes(mut self, content_type: &str, body: &[u8]) -> Self {
        self.headers.push(("content-type".to_owned(), content_type.to_owned()));
        self.body = body.to_vec();
        self
    }

    /// Sets a multipart form with fields and a file.
    #[must_use]
    pub fn form(self, fields: &[(&str, &str)], (name, content): (&str, &[u8])) -> Self {
        const BOUNDARY: &str = "a-line-that-no-file-of-a-test-has";
        let mut body = Vec::new();
        for (field, text) in fields {
            let head =
                format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{text}\r\n");
            body.extend(head.into_bytes());
        }
        let file = format!("form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: text/x-declared");
        body.extend(format!("--{BOUNDARY}\r\nContent-Disposition: {file}\r\n\r\n").into_bytes());
        body.extend_from_slice(content);
        body.extend(format!("\r\n--{BOUNDARY}--\r\n").into_bytes());
        self.bytes(&format!("multipart/form-data; boundary={BOUNDARY}"), &body)
    }

    /// Sends the request.
    pub async fn send(self) -> Answer {
        self.try_send().await.expect("the service answers")
    }

    /// Sends the request to a service that may not respond.
    ///
    /// # Errors
    /// If there is no response.
    pub async fn try_send(self) -> Result<Answer, egress::Error> {
        let response = self.open().await?.collect().await?;
        let headers = header_map(&response.headers);
        let text = String::from_utf8_lossy(&response.body).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        refuse_jargon(&body);
        each_error(&body, &names_its_param);
        Ok(Answer { status: response.status, headers, text, body })
    }

    /// Sends the request and reads the response as a stream of events.
    pub async fn listen(self) -> Listening {
        let response = self.open().await.expect("the service answers");
        let headers = header_map(&response.headers);
        Listening::new(headers, response)
    }

    async fn open(self) -> Result<Streaming, egress::Error> {
        let method = Method::from_bytes(self.method.as_bytes()).unwrap();
        let limits = HttpLimits {
            total: Duration::from_secs(120),
            max_response_bytes: 64 << 20,
            ..HttpLimits::default()
        };
        let mut request = Request::new(method, self.url).body(self.body).limits(limits);
        request.headers = self.headers;
        self.client.connector.stream(request).await
    }
}

fn header_map(headers: &egress::HeaderMap) -> BTreeMap<String, String> {
    headers
        .iter()
        .map(|(name, value)| (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}

/// Words of Rust and its libraries that must not occur in error messages.
const JARGON: [&str; 24] = [
    "expected struct",
    "expected a ",
    "expected i",
    "expected u",
    "expected f64",
    "expected value",
    "expected one of",
    "invalid type",
    "invalid value:",
    "invalid length",
    "missing field",
    "unknown field",
    "unknown variant",
    "duplicate field",
    "untagged",
    "i64",
    "u32",
    "u64",
    "f64",
    "usize",
    "NonZero",
    "EOF",
    "' keyword",
    "panicked",
];

/// Asserts that an error's messages do not contain words for programmers of the service.
fn refuse_jargon(body: &Value) {
    let error = &body["error"];
    let listed = error["errors"].as_array().into_iter().flatten().map(|error| &error["message"]);
    for message in listed.chain([&error["message"]]).filter_map(Value::as_str) {
        let found = JARGON.iter().find(|word| has_word(message, word));
        assert!(found.is_none(), "an error speaks of `{}`: {message}", found.unwrap());
    }
}

/// Returns whether a word begins somewhere in a text. Checks the start of words, because random ids in messages
/// contain any few letters now and then.
fn has_word(text: &str, word: &str) -> bool {
    let begins = |at: usize| !text[..at].ends_with(char::is_alphanumeric);
    text.match_indices(word).any(|(at, _)| begins(at))
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub text: String,
    /// The body as JSON; null if it is not JSON.
    pub body: Value,
}

impl Answer {
    /// Asserts the status and returns `data`.
    #[track_caller]
    pub fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text);
        self.body["data"].clone()
    }

    /// Asserts that the response is an error with this status and code in the API's format. Returns its `param`.
    #[track_caller]
    pub fn expect_error(&self, status: u16, code: &str) -> Option<String> {
        assert_eq!(self.status, status, "{}", self.text);
        assert_eq!(self.body["success"], false, "{}", self.text);
        assert_eq!(self.body["error"]["code"], code, "{}", self.text);
        assert_eq!(self.body["request_id"].as_str(), self.headers.get("x-request-id").map(String::as_str));
        let param = self.body["error"]["param"].as_str().map(str::to_owned);
        assert!(code != "duplicate_value" || param.is_some(), "a clash names its field: {}", self.text);
        param
    }
}

/// Calls `check` with every error in a response: its own, and those of single rows.
fn each_error(value: &Value, check: &impl Fn(&Value)) {
    match value {
        Value::Array(parts) => parts.iter().for_each(|part| each_error(part, check)),
        Value::Object(parts) => {
            parts.get("error").into_iter().for_each(check);
            parts.values().for_each(|part| each_error(part, check));
        }
        _ => {}
    }
}

/// Asserts that a message that begins with the name of a parameter names the `param` of the error, and that the
/// messages of single problems do not repeat it.
fn names_its_param(error: &Value) {
    let begins_with =
        |error: &Value, begin: &str| error["message"].as_str().unwrap_or_default().starts_with(begin);
    if error["code"] == "validation_error" && begins_with(error, "`") {
        assert!(begins_with(error, &format!("`{}`", error["param"].as_str().unwrap_or_default())), "{error}");
    }
    for mistake in error["errors"].as_array().into_iter().flatten() {
        assert!(!begins_with(mistake, "`"), "{error}");
    }
}

/// Polls until `done` returns a value. Fails after thirty seconds.
pub async fn until<T>(what: &str, mut done: impl AsyncFnMut() -> Option<T>) -> T {
    let asked = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            if let Some(value) = done().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    asked.await.unwrap_or_else(|_| panic!("{what} did not happen"))
}
