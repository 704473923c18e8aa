//! Request state: what the pipeline asks, and how far a request has come in it.

use crate::Services;
use crate::declaration::deprecation::Retiring;
use crate::declaration::meta::Meta;
use crate::gates::Gate;
use crate::log::{LogRow, RequestLog};
use crate::metrics::RequestMetrics;
use crate::registry::Registry;
use crate::transport::{Head, Limits, known_method};
use accounts::SessionTokens;
use auth::idempotency::Claims;
use auth::{Audience, Directory, Quotas, RateWindows, Seal, SecretHash, Spending, Window};
use model::{ApiKey, Code, Error, RequestId, SessionId, Timestamp, Trace, WorkspaceId};
use oauth::AccessTokens;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::Db;
use telemetry::{Span, Tracer};

/// The pipeline and all that it asks.
#[derive(Clone)]
pub struct Pipeline {
    /// All operations.
    pub registry: Arc<Registry>,
    /// The database.
    pub db: Db,
    /// Keys and workspaces.
    pub directory: Arc<Directory>,
    /// Tokens of members who have signed in.
    pub session_tokens: Arc<SessionTokens>,
    /// Tokens of OAuth apps.
    pub access_tokens: Arc<AccessTokens>,
    /// Rate windows.
    pub rates: Arc<RateWindows>,
    /// Monthly counts.
    pub quotas: Arc<Quotas>,
    /// Monthly spending.
    pub spending: Arc<Spending>,
    /// Seals the answers that are stored for an `Idempotency-Key`.
    pub seal: Arc<Seal>,
    /// Claims of requests with an `Idempotency-Key`.
    pub claims: Claims,
    /// The request log.
    pub log: RequestLog,
    /// Counts requests. `None` where a benchmark measures what that costs.
    pub metrics: Option<RequestMetrics>,
    /// Records spans of requests.
    pub tracer: Tracer,
    /// What operations ask for.
    pub services: Arc<Services>,
    /// What the installation set.
    pub limits: Limits,
}

/// How far a request has come: all that its headers and its log row need.
pub(crate) struct Progress {
    pub(crate) request: RequestId,
    pub(crate) gate: Gate,
    pub(crate) key: Option<Arc<ApiKey>>,
    /// The session of the member who asks.
    pub(crate) session: Option<SessionId>,
    /// The access token of the app that asks.
    pub(crate) access_token: Option<SecretHash>,
    pub(crate) window: Option<Window>,
    pub(crate) operation: Option<&'static Meta>,
    /// The operation's place in the registry.
    pub(crate) place: Option<usize>,
    pub(crate) workspace: Option<WorkspaceId>,
    pub(crate) allow: Option<String>,
    pub(crate) came_at: Timestamp,
    pub(crate) retiring: Option<Arc<Retiring>>,
    /// Why it failed, now or when its answer was stored.
    pub(crate) code: Option<Code>,
    /// What it was told, and about which parameter.
    pub(crate) refusal: Option<(String, Option<String>)>,
    pub(crate) began: Instant,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) client_request_id: Option<String>,
    /// The trace that the request came with.
    pub(crate) trace: Option<Trace>,
    /// Its own part of the trace, where traces are exported.
    pub(crate) span: Option<Span>,
    pub(crate) original_request: Option<String>,
    pub(crate) energy: i64,
    /// The interface that the request came through. `None` for REST.
    pub(crate) interface: Option<&'static str>,
}

impl Pipeline {
    /// What is known of a request when it comes.
    pub(crate) fn begin(&self, head: &Head<'_>) -> Progress {
        let client_request_id = head
            .header("x-client-request-id")
            .and_then(std::result::Result::ok)
            .filter(|id| (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic()))
            .map(str::to_owned);
        let retiring = self.registry.retiring(head.method, head.path);
        let progress = self.begin_at(head.method, head.path, trace(head));
        let interface = (head.audience == Audience::Mcp).then_some("mcp");
        Progress { client_request_id, retiring, interface, ..progress }
    }

    /// What is known of a call that did not come with headers.
    pub(crate) fn begin_at(&self, method: &str, path: &str, trace: Option<Trace>) -> Progress {
        let came_at = self.now();
        let request = RequestId::new(came_at, &*self.db.random());
        let own = || Trace::of_id(request.as_str());
        let mut span = self.tracer.serve(trace.as_ref(), known_method(method), own);
        if let Some(span) = &mut span {
            span.set("http.request.method", known_method(method));
        }
        Progress {
            request,
            gate: Gate::Size,
            key: None,
            session: None,
            access_token: None,
            window: None,
            operation: None,
            place: None,
            workspace: None,
            allow: None,
            retiring: None,
            code: None,
            refusal: None,
            began: Instant::now(),
            came_at,
            method: cut(method, 10),
            path: cut(path, 300),
            client_request_id: None,
            trace,
            span,
            original_request: None,
            energy: 0,
            interface: None,
        }
    }
}

impl Progress {
    /// Makes the request one of another operation, at this path.
    pub(crate) fn redirect(&mut self, meta: &'static Meta, place: usize, path: &str) {
        self.operation = Some(meta);
        self.place = Some(place);
        self.method = meta.method.as_str().to_owned();
        self.path = cut(path, 300);
    }

    /// The id of the trace that the request belongs to.
    pub(crate) fn trace_id(&self) -> String {
        self.trace.as_ref().map_or_else(|| Trace::of_id(self.request.as_str()).id(), Trace::id)
    }

    /// Where what the request causes goes on in the trace. `None`: at the trace of the request's own id.
    pub(crate) fn context(&self) -> Option<Trace> {
        self.span.as_ref().map(Span::trace).or(self.trace.as_ref()).cloned()
    }

    /// The gate that rejected the request; `None` where all let it through.
    pub(crate) fn rejected_by(&self) -> Option<Gate> {
        self.code.map(|_| self.gate)
    }

    /// Its row of the request log.
    pub(crate) fn row(self, status: u16, latency: Duration) -> LogRow {
        let gate = self.rejected_by().map(Gate::as_str);
        let (message, param) = self.refusal.unzip();
        LogRow {
            id: self.request.as_str().to_owned(),
            created_at: self.came_at,
            workspace_id: self.workspace,
            key_id: self.key.as_ref().map(|key| key.id.clone()),
            operation: self.operation.map(|meta| meta.id),
            method: self.method,
            path: self.path,
            status: i64::from(status),
            code: self.code.map(Code::as_str),
            gate,
            livemode: self.key.as_ref().map(|key| key.env == model::Env::Live),
            latency_us: i64::try_from(latency.as_micros()).unwrap_or(i64::MAX),
            energy: self.energy,
            replayed: self.original_request.is_some(),
            client_request_id: self.client_request_id,
            interface: self.interface,
            trace_id: self.trace.as_ref().map(Trace::id),
            message,
            param: param.flatten(),
        }
    }

    /// Notes why the request failed, for its row of the request log.
    pub(crate) fn fail(&mut self, error: &Error) {
        self.code = Some(error.code());
        let param = error.param_name().map(|param| cut_bytes(param, MOST_PARAM));
        self.refusal = Some((cut_bytes(error.message(), MOST_MESSAGE), param));
    }
}

/// The greatest length of a message in the request log, in bytes.
const MOST_MESSAGE: usize = 300;
/// The greatest length of a parameter's path there, in bytes.
const MOST_PARAM: usize = 200;

/// The longest beginning with at most `most` bytes.
fn cut_bytes(text: &str, most: usize) -> String {
    text.get(..text.floor_char_boundary(most)).unwrap_or_default().to_owned()
}

fn trace(head: &Head<'_>) -> Option<Trace> {
    let parent = head.header("traceparent")?.ok()?;
    let state = head.header("tracestate").and_then(std::result::Result::ok);
    Trace::parse(parent, state)
}

/// The first `most` characters.
fn cut(text: &str, most: usize) -> String {
    let end = text.char_indices().nth(most).map_or(text.len(), |(end, _)| end);
    text.get(..end).unwrap_or_default().to_owned()
}
