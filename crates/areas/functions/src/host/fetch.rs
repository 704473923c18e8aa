//! `ctx.fetch`: HTTP under the rules of one function.

use super::fixtures;
use super::secrets::Form;
use super::{CallHost, Records};
use crate::network::{FetchRecord, FetchSource};
use egress::{HeaderName, Limits, Method, Request, Response, UrlRules};
use model::{Chain, EventId};
use operation::CauseHeader;
use percent_encoding::percent_decode_str;
use ports::FunctionEffect;
use sandbox::{FetchRequest, FetchResponse, HostError};
use std::time::Duration;
use tokio::time::Instant;
use url::Url;

/// Redirects that are followed.
const MOST_REDIRECTS: u32 = 3;
/// The longest time of a call, over all redirects.
const LONGEST: Duration = Duration::from_secs(10);
/// The largest body of an answer. The sandbox's limit counts its head too.
const LARGEST_ANSWER: usize = 5 * 1024 * 1024 - 128 * 1024;

impl CallHost {
    /// Makes a call of `ctx.fetch`, and writes it down.
    pub(super) async fn fetch_recorded(&self, request: FetchRequest) -> Result<FetchResponse, HostError> {
        let started = Instant::now();
        let place = self.records.begin(FetchRecord {
            method: request.method.chars().take(16).collect(),
            url: self.shown(&request.url),
            status: None,
            error: Some("the call ended before there was an answer".to_owned()),
            source: FetchSource::Network,
            duration_ms: 0,
            bytes_out: size(request.body.len()),
            bytes_in: 0,
        });
        let (source, answer) = self.answered(request).await;
        let duration = i64::try_from(started.elapsed().as_millis()).unwrap_or(i64::MAX);
        self.records.end(place, |record| {
            record.source = source;
            record.duration_ms = duration;
            match &answer {
                Ok(answer) => {
                    (record.status, record.error) = (Some(answer.status), None);
                    record.bytes_in = size(answer.body.len());
                }
                Err(error) => record.error = Some(format!("{}: {}", error.name, error.message)),
            }
        });
        answer
    }

    async fn answered(&self, request: FetchRequest) -> (FetchSource, Result<FetchResponse, HostError>) {
        let method = match self.check(&request) {
            Ok(method) => method,
            Err(error) => return (FetchSource::Refused, Err(error)),
        };
        let FetchRequest { url, headers, body, .. } = request;
        let settings = &self.settings;
        if !settings.livemode {
            if let Some(answer) = fixtures::answer(&settings.fixtures, method.as_str(), &url) {
                return (FetchSource::Fixture, Ok(answer));
            }
            if !is_reading(&method) {
                return (FetchSource::Simulated, Ok(fixtures::simulated(&url)));
            }
            if !settings.fixtures.is_empty() {
                return (FetchSource::Refused, Err(fixtures::no_fixture()));
            }
        }
        let request = Request { method, url, headers, body: body.into(), limits: Limits::default() };
        (FetchSource::Network, self.exchange(request).await.map(|response| self.answer(&response)))
    }

    /// Checks all that can be checked without the network.
    fn check(&self, request: &FetchRequest) -> Result<Method, HostError> {
        let method = Method::from_bytes(request.method.as_bytes())
            .ok()
            .filter(|method| *method != Method::CONNECT && *method != Method::TRACE)
            .ok_or_else(|| HostError::new("TypeError", "the method is not accepted"))?;
        let changes = method == Method::PUT || method == Method::PATCH || method == Method::DELETE;
        if changes && self.settings.effect == FunctionEffect::Read {
            return Err(super::read_only(&format!("call {method}")));
        }
        self.permitted(&request.url)?;
        for (name, _) in &request.headers {
            let parsed = HeaderName::from_bytes(name.as_bytes());
            let is_ours = name.to_ascii_lowercase().starts_with("x-svc-");
            if is_ours || !parsed.is_ok_and(|name| !egress::frames_message(&name)) {
                let message = format!("the header `{}` cannot be set", name.escape_debug());
                return Err(HostError::new("TypeError", &message));
            }
        }
        Ok(method)
    }

    /// Returns whether the function may call a URL. A secret may be anywhere behind the host.
    fn permitted(&self, url: &str) -> Result<Url, HostError> {
        let checked = self.services.connector.check_url(url, &UrlRules::default());
        let url = checked.map_err(|error| denied(&format!("the URL cannot be called: {error}")))?;
        if !self.settings.network.permits(url.host().as_ref()) {
            let host = url.host_str().unwrap_or_default();
            return Err(denied(&format!("the function may not call {}", self.mask(host))));
        }
        if self.secrets.are_in(url.authority().as_bytes()) {
            return Err(denied("a secret cannot be a part of a host"));
        }
        Ok(url)
    }

    /// Sends a request and follows redirects, each under the same rules. Secrets go to the origin that the program named only.
    async fn exchange(&self, request: Request) -> Result<Response, HostError> {
        let end = Instant::now() + LONGEST;
        let origin = self.permitted(&request.url)?.origin();
        let mut hop = request;
        for _ in 0..=MOST_REDIRECTS {
            let url = self.permitted(&hop.url)?;
            let keeps_secrets = url.origin() == origin;
            if !keeps_secrets && self.secrets.are_in(&hop.body) {
                let message =
                    "a redirect leads to another origin, which would get the secrets in the request's body";
                return Err(denied(message));
            }
            let mut sent = if keeps_secrets { self.filled(&hop) } else { hop.clone() };
            sent.headers.extend(self.cause(&hop.url));
            sent.limits = Limits {
                total: end.saturating_duration_since(Instant::now()),
                max_response_bytes: LARGEST_ANSWER,
                ..Limits::default()
            };
            let response = self.services.connector.send(sent).await.map_err(failed)?;
            match hop.redirected(&response).map_err(failed)? {
                None => return Ok(response),
                Some(next) => hop = next,
            }
        }
        Err(HostError::new("NetworkError", "there were more than 3 redirects"))
    }

    /// The request with the values of secrets.
    fn filled(&self, hop: &Request) -> Request {
        let kind = hop.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        let kind = kind.map(|(_, kind)| kind.to_ascii_lowercase()).unwrap_or_default();
        let form = if kind.contains("json") {
            Form::Json
        } else if kind.starts_with("application/x-www-form-urlencoded") {
            Form::Url
        } else {
            Form::Plain
        };
        let headers = hop.headers.iter();
        let headers = headers.map(|(name, value)| (name.clone(), self.secrets.filled_header(name, value)));
        Request {
            method: hop.method.clone(),
            url: self.secrets.filled(&hop.url, Form::Url),
            headers: headers.collect(),
            body: self.secrets.filled_bytes(hop.body.to_vec(), form).into(),
            limits: hop.limits.clone(),
        }
    }

    /// The header that makes a call to the service's own address go on with the chain of causes.
    fn cause(&self, url: &str) -> Option<(String, String)> {
        let services = &self.services;
        if !services.causes.is_own(url) {
            return None;
        }
        let now = services.db.now();
        let begun = || Chain::starting(EventId::new(now, &*services.db.random())).next();
        let chain = self.settings.caller.chain.clone().unwrap_or_else(begun);
        services.causes.of(url, &chain, now)
    }

    /// Builds the response for the program. Secrets are masked, because some servers repeat what they received.
    fn answer(&self, response: &Response) -> FetchResponse {
        let mask = &self.secrets.mask;
        let body = mask.bytes(&response.body);
        let is_changed = body.is_some();
        let headers = response.headers.iter().filter(|(name, _)| {
            // The chain of causes is not the program's to read, and the length would tell that of a secret.
            name.as_str() != CauseHeader::NAME && !(is_changed && name.as_str() == "content-length")
        });
        FetchResponse {
            status: response.status,
            url: mask.text(response.final_url.as_str()),
            headers: headers
                .map(|(name, value)| {
                    (name.as_str().to_owned(), mask.text(&String::from_utf8_lossy(value.as_bytes())))
                })
                .collect(),
            body: body.unwrap_or_else(|| response.body.to_vec()),
        }
    }

    /// A URL for the history: without secrets, and without user info.
    fn shown(&self, url: &str) -> String {
        let url: String = url.chars().take(2048).collect();
        let bare = match Url::parse(&url) {
            Ok(mut parsed) => {
                let is_bare = parsed.username().is_empty() && parsed.password().is_none();
                let removed = parsed.set_username("").is_ok() && parsed.set_password(None).is_ok();
                if is_bare || removed { parsed.into() } else { String::new() }
            }
            // No URL, so nobody knows which part of it would be user info.
            Err(_) => url.rsplit_once('@').map_or(url.clone(), |(_, rest)| rest.to_owned()),
        };
        // Also what was encoded by the program.
        let decoded = percent_decode_str(&bare).decode_utf8_lossy();
        let masked = self.mask(&bare);
        if masked == bare && self.mask(&decoded) != decoded { self.mask(&decoded) } else { masked }
    }
}

impl Records {
    /// Adds a record, and returns its place.
    fn begin(&self, record: FetchRecord) -> usize {
        let mut records = self.lock();
        records.push(record);
        records.len() - 1
    }

    fn end(&self, place: usize, change: impl FnOnce(&mut FetchRecord)) {
        if let Some(record) = self.lock().get_mut(place) {
            change(record);
        }
    }
}

fn is_reading(method: &Method) -> bool {
    *method == Method::GET || *method == Method::HEAD || *method == Method::OPTIONS
}

fn size(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn denied(message: &str) -> HostError {
    HostError::new("NetworkDenied", message).code("function_network_denied")
}

fn failed(error: egress::Error) -> HostError {
    let message = error.to_string();
    match error {
        egress::Error::InvalidRequest { .. } => HostError::new("TypeError", &message),
        error if error.is_refusal() => denied(&format!("the URL cannot be called: {message}")),
        egress::Error::Timeout { .. } => HostError::new("TimeoutError", &message),
        egress::Error::TooLarge { .. } => HostError::new("LimitError", &message),
        _ => HostError::new("NetworkError", &message),
    }
}
