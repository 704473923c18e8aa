//! Attempts: the HTTP request of a delivery, and its result.

use crate::endpoint::check;
use crate::endpoint::model::{EndpointRow, Headers, Payload};
use crate::endpoint::signing::{Signer, signatures};
use auth::Seal;
use egress::{Connector, Limits, Oversize, Request};
use model::{DeliveryId, EventId, JsonText, Result, Timestamp, Trace, WorkspaceId};
use operation::{http_span, note_http, root_http_span};
use serde_json::{Map, Value};
use std::time::{Duration, Instant};
use telemetry::{Span, Tracer};

const CONNECT: Duration = Duration::from_secs(5);
const TOTAL: Duration = Duration::from_secs(15);
/// Read of an answer.
const MOST_READ: usize = 16 * 1024;
/// Kept of it.
const MOST_KEPT: usize = 4 * 1024;
const MOST_HEADERS: usize = 32;
const LONGEST_HEADER: usize = 256;

/// Where deliveries go, opened and ready for use.
pub(crate) struct Target {
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) version: i64,
    pub(crate) rate: Option<i64>,
    pub(crate) payload: Payload,
    url: String,
    headers: Headers,
    signers: Vec<Signer>,
    /// Until when the signers are the right ones.
    signers_until: Option<Timestamp>,
}

impl Target {
    pub(crate) fn open(row: &EndpointRow, seal: &Seal, now: Timestamp) -> Result<Self> {
        Ok(Self {
            workspace_id: row.workspace_id,
            version: row.version,
            rate: row.rate_limit_per_second,
            payload: row.payload,
            url: row.url.clone(),
            headers: row.open_headers(seal)?,
            signers: row.signers(seal, now)?,
            signers_until: row.previous_until.filter(|until| now < *until),
        })
    }

    /// Where deliveries go.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The secrets that sign at `now`: the newer one stands first, the one before only for as long as it overlaps.
    fn signers(&self, now: Timestamp) -> &[Signer] {
        let over = self.signers_until.is_some_and(|until| until <= now);
        self.signers.get(..1).filter(|_| over).unwrap_or(&self.signers)
    }
}

/// What one attempt sends.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) delivery: DeliveryId,
    pub(crate) event: EventId,
    /// Which attempt this is, from 1.
    pub(crate) attempt: i64,
    pub(crate) body: String,
    /// The trace that it continues; `None` if no request caused its event.
    pub(crate) trace: Option<Trace>,
    /// The header by which the service's own address goes on with the event's chain of causes.
    pub(crate) cause: Option<(String, String)>,
}

/// What an attempt came to, as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct Attempt {
    pub(crate) at: Timestamp,
    pub(crate) duration_ms: i64,
    pub(crate) status_code: Option<i64>,
    pub(crate) error: Option<String>,
    pub(crate) request_headers: JsonText,
    pub(crate) response_headers: Option<JsonText>,
    pub(crate) response_body: Option<String>,
    /// What the receiver asks us to wait, in milliseconds.
    pub(crate) retry_after: Option<i64>,
}

impl Attempt {
    /// One that a mistake of ours ended.
    pub(crate) fn broken(at: Timestamp) -> Self {
        tracing::error!("an attempt panicked");
        Self {
            at,
            duration_ms: 0,
            status_code: None,
            error: Some("the attempt failed on our side".to_owned()),
            request_headers: JsonText::of(&Map::new()),
            response_headers: None,
            response_body: None,
            retry_after: None,
        }
    }

    pub(crate) fn succeeded(&self) -> bool {
        self.error.is_none()
    }

    /// The receiver wants no more of this, ever.
    pub(crate) fn is_gone(&self) -> bool {
        self.status_code == Some(410)
    }
}

/// Sends a message and reports what came of it. Never fails: whatever happens is an attempt.
pub(crate) async fn send(
    connector: &Connector,
    tracer: &Tracer,
    target: &Target,
    message: Message,
    now: Timestamp,
) -> Attempt {
    let mut span = span(tracer, target, &message);
    let headers = headers(target, &message, span.trace(), now);
    let shown: Map<String, Value> = headers
        .iter()
        .map(|(name, value)| {
            let hidden = target.headers.contains_key(name);
            (name.clone(), if hidden { "…".into() } else { value.clone().into() })
        })
        .collect();
    let mut request = Request::post(target.url.clone(), message.body).limits(Limits {
        connect: CONNECT,
        total: TOTAL,
        max_response_bytes: MOST_READ,
        oversize: Oversize::Truncate,
        decode: true,
        max_redirects: 0,
        url: check::url_rules(),
    });
    request.headers = headers;
    request.headers.extend(message.cause);
    let began = Instant::now();
    let answer = connector.send(request).await;
    note_http(&mut span, answer.as_ref().map(|response| response.status).map_err(egress::Error::kind));
    let duration_ms = i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX);
    let base = Attempt {
        at: now,
        duration_ms,
        status_code: None,
        error: None,
        request_headers: JsonText::of(&shown),
        response_headers: None,
        response_body: None,
        retry_after: None,
    };
    match answer {
        Err(error) => Attempt { error: Some(error.to_string()), ..base },
        Ok(response) => {
            let status = response.status;
            let error = match status {
                200..=299 => None,
                300..=399 => Some(format!("the endpoint answered {status}: redirects are not followed")),
                _ => Some(format!("the endpoint answered {status}")),
            };
            let later = now.plus(chrono::Duration::milliseconds(duration_ms));
            let retry_after = matches!(status, 429 | 503)
                .then(|| response.headers.get("retry-after")?.to_str().ok())
                .flatten()
                .and_then(|value| super::schedule::retry_after(value, later));
            Attempt {
                status_code: Some(i64::from(status)),
                error,
                response_headers: Some(kept_headers(&response.headers)),
                response_body: Some(kept_body(&response.body)),
                retry_after,
                ..base
            }
        }
    }
}

/// The span of the attempt, named in what it sends.
fn span(tracer: &Tracer, target: &Target, message: &Message) -> Span {
    let mut span = match &message.trace {
        Some(parent) => http_span(tracer, parent, "POST", &target.url),
        None => root_http_span(tracer, &Trace::of_id(message.event.as_str()), "POST", &target.url),
    };
    if span.is_recorded() {
        span.set("svc.workspace_id", target.workspace_id.0);
        span.set("svc.event_id", message.event.to_string());
        span.set("svc.delivery_id", message.delivery.to_string());
        if message.attempt > 1 {
            span.set("http.request.resend_count", message.attempt - 1);
        }
    }
    span
}

fn headers(target: &Target, message: &Message, trace: &Trace, now: Timestamp) -> Vec<(String, String)> {
    let (id, timestamp) = (message.event.as_str(), now.seconds());
    let signature = signatures(target.signers(now), id, timestamp, &message.body);
    let ours = [
        ("content-type", "application/json".to_owned()),
        ("user-agent", "svc-webhooks/1".to_owned()),
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", timestamp.to_string()),
        ("webhook-signature", signature.clone()),
        ("x-svc-signature", signature),
        ("x-svc-event-id", id.to_owned()),
        ("x-svc-delivery-id", message.delivery.to_string()),
        ("x-svc-timestamp", timestamp.to_string()),
        ("x-svc-attempt", message.attempt.to_string()),
    ];
    let own = target.headers.iter().map(|(name, value)| (name.clone(), value.clone()));
    let names_trace = target.headers.keys().any(|name| name.eq_ignore_ascii_case("traceparent"));
    let trace = trace.headers().filter(|_| !names_trace);
    ours.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(trace).chain(own).collect()
}

fn kept_headers(headers: &egress::HeaderMap) -> JsonText {
    let kept: Map<String, Value> = headers
        .iter()
        .filter(|(name, _)| name.as_str() != "set-cookie")
        .take(MOST_HEADERS)
        .map(|(name, value)| {
            let text: String =
                String::from_utf8_lossy(value.as_bytes()).chars().take(LONGEST_HEADER).collect();
            (name.to_string(), storable(&text).into())
        })
        .collect();
    JsonText::of(&kept)
}

fn kept_body(body: &[u8]) -> String {
    storable(&String::from_utf8_lossy(body.get(..MOST_KEPT).unwrap_or(body)))
}

/// PostgreSQL has no place for a zero in a text.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
