//! Request pipeline: every request of every interface goes through here, in the same order.
//!
//! Guard (gate.rs) → body → idempotency → quota and budget → parse → run → envelope → headers → request log. It
//! knows no operation's types, so it is compiled once.

use crate::answers::answer::{Reply, ReplyBody};
use crate::answers::stream::{EventStream, KeyWatch, LastingRow, Sending};
use crate::calls::gate::Passed;
use crate::calls::panics::catch_panic;
use crate::calls::progress::{Pipeline, Progress};
use crate::calls::spans;
use crate::declaration::meta::Meta;
use crate::gates::Gate;
use crate::inputs::arriving::{BodyChunks, StreamedBody};
use crate::inputs::input::Input;
use crate::raw_route::Chunks;
use crate::registry::Found;
use crate::transport::{Head, Response, ResponseBody, error_reply};
use crate::{Call, Cx, Speaking};
use auth::Seal;
use auth::idempotency::{self, Ask, Claim, Known, Outcome};
use model::{Caller, Code, Error, Result, Timestamp};
use serde_json::{Map, Value};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::{Db, HeldLease, Tx};
use telemetry::Span;

/// A request behind the guard, waiting for its body.
pub struct Admitted {
    pub(crate) passed: Passed,
    pub(crate) progress: Progress,
    query: Vec<(String, String)>,
    /// Method and path, where there is an idempotency key to bind to them.
    address: Option<String>,
    idempotency_key: Option<Result<String>>,
    if_match: Option<String>,
    content_type: Option<String>,
    is_streamed: bool,
    body_limit: usize,
}

impl Admitted {
    /// The largest body that this operation takes, in bytes.
    pub fn body_limit(&self) -> usize {
        self.body_limit
    }

    /// Who asks.
    pub fn caller(&self) -> &Caller {
        &self.passed.caller
    }

    /// Whether the operation reads the body while it arrives: then it is run by [`Pipeline::run_streamed`].
    pub fn is_streamed(&self) -> bool {
        self.is_streamed
    }
}

impl Pipeline {
    pub(crate) fn now(&self) -> Timestamp {
        self.db.now()
    }

    /// The largest body in bytes of the operation at an address; `None` where there is none. For bodies that announce
    /// their length.
    pub fn body_limit(&self, method: &str, path: &str) -> Option<usize> {
        match self.registry.find(method, path) {
            Found::Operation(operation, ..) => Some(operation.meta().body_limit()),
            Found::OtherMethods(_) | Found::Nothing => None,
        }
    }

    /// Checks everything that can be checked without the body.
    ///
    /// # Errors
    /// The response to send, when a gate refused.
    pub async fn admit(&self, head: &Head<'_>) -> std::result::Result<Admitted, Response> {
        let mut progress = self.begin(head);
        match catch_panic(self.guard(head, &mut progress)).await {
            Ok(passed) => {
                let meta = progress.operation;
                let idempotency_key = head
                    .header("idempotency-key")
                    .filter(|_| meta.is_some_and(Meta::is_idempotent_by_key))
                    .map(|value| idempotency::parse_header(value.unwrap_or_default()));
                let registered = self.registry.operations().get(passed.place);
                let is_streamed = registered.is_some_and(|one| one.checks().streamed.is_some());
                Ok(Admitted {
                    passed,
                    progress,
                    query: parse_query(head.query),
                    address: idempotency_key.is_some().then(|| format!("{} {}", head.method, head.path)),
                    idempotency_key,
                    if_match: head.lossy_header("if-match"),
                    content_type: head.lossy_header("content-type"),
                    is_streamed,
                    body_limit: meta.map_or(0, Meta::body_limit),
                })
            }
            Err(error) => Err(self.refuse(progress, error)),
        }
    }

    /// The response for a request that failed before it could be admitted, such as one with a body that no
    /// operation takes.
    pub fn reject(&self, head: &Head<'_>, error: Error) -> Response {
        let mut progress = self.begin(head);
        progress.gate = Gate::Size;
        self.refuse(progress, error)
    }

    /// The response for an admitted request whose body could not be read.
    pub fn reject_body(&self, admitted: Admitted, error: Error) -> Response {
        let mut progress = admitted.progress;
        progress.gate = Gate::Size;
        self.refuse(progress, error)
    }

    /// Runs an admitted request.
    pub async fn run(&self, admitted: Admitted, body: &[u8]) -> Response {
        self.run_with(admitted, Received::Whole(body)).await
    }

    /// Runs an admitted request whose body is still arriving.
    pub async fn run_streamed(&self, admitted: Admitted, chunks: BodyChunks) -> Response {
        let body = StreamedBody::new(admitted.content_type.clone().unwrap_or_default(), chunks);
        self.run_with(admitted, Received::Arriving(&body)).await
    }

    async fn run_with(&self, admitted: Admitted, body: Received<'_>) -> Response {
        let Admitted {
            passed, mut progress, query, address, idempotency_key, if_match, content_type, ..
        } = admitted;
        let request = Request {
            passed,
            query,
            address: address.unwrap_or_default(),
            if_match,
            content_type,
            is_counted: true,
        };
        match catch_panic(self.execute(request, idempotency_key, body, &mut progress)).await {
            Ok(reply) => self.finish(progress, reply, None),
            Err(error) => self.refuse(progress, error),
        }
    }

    pub(crate) async fn execute(
        &self,
        mut request: Request,
        idempotency_key: Option<Result<String>>,
        body: Received<'_>,
        progress: &mut Progress,
    ) -> Result<Reply> {
        progress.gate = Gate::Idempotency;
        request.passed.caller.idempotency_key = idempotency_key.transpose()?;
        let Some(ask) = request.ask(body.whole(), self.seal.clone()) else {
            let call = self.prepare(&request, body, progress).await?;
            progress.gate = Gate::Operation;
            return self.call(call, request.caller(), progress).await;
        };
        let deadline = Instant::now() + self.limits.duplicate_wait;
        loop {
            // The outcome is looked up first, because a replay passes no later gate and costs nothing.
            let wanted = ask.clone();
            let known = self.db.read(move |read| idempotency::peek(read, &wanted)).await?;
            match known {
                Some(Known::Done(outcome)) => return replay(outcome, progress),
                Some(_) => {}
                None => {
                    let call = self.prepare(&request, body, progress).await?;
                    progress.gate = Gate::Operation;
                    match self.call_once(call, request.caller(), &ask, progress).await? {
                        Once::Reply(reply) => return Ok(reply),
                        Once::Failed(error) => return Err(error),
                        Once::Replay(outcome) => return replay(outcome, progress),
                        Once::InProgress => {}
                    }
                }
            }
            if Instant::now() >= deadline {
                let message = "The first request with this `Idempotency-Key` is still executing.";
                return Err(Error::new(Code::IdempotencyInProgress, message).retry_after(2));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Quota, budget, then the input.
    async fn prepare(&self, request: &Request, body: Received<'_>, progress: &mut Progress) -> Result<Call> {
        if request.is_counted {
            self.quota(request.caller(), progress).await?;
        }
        progress.gate = Gate::Body;
        let registered = self
            .registry
            .operations()
            .get(request.passed.place)
            .ok_or_else(|| Error::internal("an operation left the registry"))?;
        let streamed = registered.checks().streamed;
        if (streamed.is_some() || !body.whole().is_empty())
            && !request.has_type(streamed.unwrap_or("application/json"))
        {
            let wanted = streamed.unwrap_or("application/json");
            let message = format!("Send `Content-Type: {wanted}`.");
            return Err(Error::new(Code::UnsupportedMediaType, message));
        }
        if let Some((name, _)) = request.query.iter().find(|(_, value)| value.contains('\0')) {
            return Err(Error::invalid(name.replace('\0', ""), "must not contain the NUL character"));
        }
        if !request.query.is_empty() {
            registered.checks().refuse_unknown(&request.query)?;
        }
        registered.operation.bind(&Input {
            caller: request.caller(),
            meta: registered.meta(),
            path: &request.passed.path,
            query: &request.query,
            body: body.whole(),
            stream: body.arriving(),
            if_match: request.if_match.as_deref(),
            services: &self.services,
            registered,
        })
    }

    async fn call(&self, call: Call, caller: &Caller, progress: &mut Progress) -> Result<Reply> {
        let (caller, db) = (caller.clone(), self.db_of(caller));
        match call {
            Call::Caller(work) => work(&caller),
            Call::Read(work) => db.read(move |read| work(read, &caller)).await,
            Call::Tx(work) => db.write(move |tx| work(tx, &caller)).await,
            Call::Batched(call) => call.write(&db, caller).await,
            Call::Cx(work) => {
                let cx = Arc::new(Cx::new(db, caller));
                let result = work(cx.clone()).await;
                progress.energy = cx.energy.load(std::sync::atomic::Ordering::Relaxed);
                result
            }
        }
    }

    /// The database, for transactions at the caller's place in the chain of causes.
    fn db_of(&self, caller: &Caller) -> Db {
        self.db.caused_by(caller.chain.as_ref())
    }

    /// Runs under an `Idempotency-Key`.
    async fn call_once(
        &self,
        call: Call,
        caller: &Caller,
        ask: &Ask,
        progress: &mut Progress,
    ) -> Result<Once> {
        match call {
            Call::Tx(work) => {
                let (db, caller, ask) = (self.db_of(caller), caller.clone(), ask.clone());
                db.write(move |tx| once_in_transaction(tx, &ask, |tx| work(tx, &caller))).await
            }
            // Its outcome is stored in its transaction, so it has one of its own.
            Call::Batched(call) => {
                let (db, caller, ask) = (self.db_of(caller), caller.clone(), ask.clone());
                db.write(move |tx| once_in_transaction(tx, &ask, |tx| call.run_in(tx, &caller))).await
            }
            Call::Cx(work) => {
                let claim = match self.claims.claim(&self.db, ask.clone()).await? {
                    Known::Claimed(claim) => claim,
                    Known::Done(outcome) => return Ok(Once::Replay(outcome)),
                    Known::InProgress => return Ok(Once::InProgress),
                };
                self.call_claimed(work, caller, claim, progress).await.map(Once::Reply)
            }
            other => self.call(other, caller, progress).await.map(Once::Reply),
        }
    }

    async fn call_claimed(
        &self,
        work: Speaking,
        caller: &Caller,
        claim: Claim,
        progress: &mut Progress,
    ) -> Result<Reply> {
        let mut cx = Cx::new(self.db_of(caller), caller.clone());
        cx.claim = Some(claim.clone());
        let cx = Arc::new(cx);
        // What panics gives its claim up like anything that fails.
        let mut working = pin!(catch_panic(work(cx.clone())));
        // In this task and not beside it: a request that is dropped must not keep its claim alive.
        let result = tokio::select! {
            result = &mut working => result,
            () = beat(self.db.clone(), claim.clone()) => working.await,
        };
        progress.energy = cx.energy.load(std::sync::atomic::Ordering::Relaxed);
        if cx.answered.load(std::sync::atomic::Ordering::Acquire) {
            return result;
        }
        let to_store = match &result {
            Ok(reply) => Some((reply.status, reply.text()?.to_owned(), reply.headers.clone())),
            Err(error) if is_deterministic(error) => {
                let (status, body) = error_reply(error, &caller.request);
                Some((status, body, Vec::new()))
            }
            Err(_) => None,
        };
        self.db
            .write(move |tx| match &to_store {
                Some((status, body, headers)) => idempotency::finish(tx, &claim, *status, body, headers),
                None => idempotency::release(tx, &claim),
            })
            .await?;
        result
    }

    pub(crate) fn refuse(&self, mut progress: Progress, error: Error) -> Response {
        progress.fail(&error);
        if let Some(cause) = error.cause() {
            let (trace_id, code) = (progress.trace_id(), error.code().as_str());
            tracing::error!(request_id = %progress.request, trace_id, code, ?cause, "a request failed");
        }
        let (status, body) = error_reply(&error, &progress.request);
        self.finish(progress, Reply::new(status, body), Some(&error))
    }

    pub(crate) fn finish(&self, mut progress: Progress, reply: Reply, error: Option<&Error>) -> Response {
        let latency = progress.began.elapsed();
        if let Some(metrics) = &self.metrics {
            metrics.count(progress.place, progress.rejected_by(), reply.status, latency);
        }
        let mut headers = reply.headers;
        headers.push(("x-request-id", progress.request.as_str().to_owned()));
        if let Some(trace) = &progress.trace {
            headers.push(("traceparent", trace.parent()));
        }
        if let Some(window) = progress.window {
            headers.push(("x-ratelimit-limit", window.limit.to_string()));
            headers.push(("x-ratelimit-remaining", window.remaining.to_string()));
            headers.push(("x-ratelimit-reset", window.reset_seconds.to_string()));
        }
        if let Some(seconds) = error.and_then(Error::retry_after_seconds) {
            headers.push(("retry-after", seconds.to_string()));
        }
        if error.is_some_and(|error| !worth_retrying(error.code())) {
            headers.push(("x-svc-should-retry", "false".to_owned()));
        }
        if let Some(needed) = progress.operation.and_then(Meta::needs) {
            headers.push(("x-svc-required-scope", needed.to_owned()));
        }
        if let Some(allow) = &progress.allow {
            headers.push(("allow", allow.clone()));
        }
        if let Some(retiring) = &progress.retiring {
            headers.extend(retiring.headers(progress.came_at));
        }
        if let Some(original) = &progress.original_request {
            headers.push(("idempotent-replayed", "true".to_owned()));
            headers.push(("x-original-request-id", original.clone()));
        }
        let status = reply.status;
        let mut span = progress.span.take();
        if let Some(span) = &mut span {
            spans::describe(span, &progress, status);
        }
        let body = match reply.body {
            ReplyBody::Whole(text) => {
                self.log.push(progress.row(status, latency));
                ResponseBody::Json(text)
            }
            ReplyBody::Events(events) => {
                headers.push(("cache-control", "no-store".to_owned()));
                // Proxies would otherwise collect the events.
                headers.push(("x-accel-buffering", "no".to_owned()));
                ResponseBody::Events(self.send_events(events, progress, latency, span))
            }
        };
        Response { status, headers, body }
    }

    fn send_events(
        &self,
        events: EventStream,
        progress: Progress,
        latency: Duration,
        span: Option<Span>,
    ) -> Chunks {
        let request = progress.request.clone();
        let scope = progress.operation.and_then(|meta| meta.scope);
        let key = progress.key.as_ref().map(|key| KeyWatch {
            db: self.db.clone(),
            directory: self.directory.clone(),
            session: progress.session.clone().map(|session| (self.session_tokens.clone(), session)),
            access_token: progress.access_token.map(|token| (self.access_tokens.clone(), token)),
            key: key.id.clone(),
            workspace: progress.workspace,
            scope,
        });
        let row = LastingRow::new(self.log.clone(), progress.row(200, latency), span);
        Sending::new(events, request, key, row, &self.limits).chunks()
    }
}

/// An admitted request, as far as running it needs.
pub(crate) struct Request {
    pub(crate) passed: Passed,
    pub(crate) query: Vec<(String, String)>,
    /// Method and path, as far as an idempotency key needs them.
    pub(crate) address: String,
    pub(crate) if_match: Option<String>,
    pub(crate) content_type: Option<String>,
    /// Whether it is one of the key's requests of the month.
    pub(crate) is_counted: bool,
}

/// The body of a request.
#[derive(Clone, Copy)]
pub(crate) enum Received<'a> {
    /// All of it.
    Whole(&'a [u8]),
    /// It is read while it arrives.
    Arriving(&'a StreamedBody),
}

impl<'a> Received<'a> {
    fn whole(self) -> &'a [u8] {
        match self {
            Self::Whole(bytes) => bytes,
            Self::Arriving(_) => &[],
        }
    }

    fn arriving(self) -> Option<&'a StreamedBody> {
        match self {
            Self::Whole(_) => None,
            Self::Arriving(body) => Some(body),
        }
    }
}

impl Request {
    /// Whether the body is of this media type. JSON need not be announced.
    fn has_type(&self, media_type: &str) -> bool {
        match &self.content_type {
            None => media_type == "application/json",
            Some(sent) => sent.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type),
        }
    }

    fn caller(&self) -> &Caller {
        &self.passed.caller
    }

    /// What is remembered of a request with an `Idempotency-Key`. A body that is still arriving is not part of it: a
    /// form has another boundary each time that it is sent.
    fn ask(&self, body: &[u8], seal: Arc<Seal>) -> Option<Ask> {
        let key = self.caller().idempotency_key.clone()?;
        let mut query = self.query.clone();
        query.sort();
        let mut context = ring::digest::Context::new(&ring::digest::SHA256);
        context.update(self.address.as_bytes());
        context.update(&[0]);
        context.update(serde_json::to_string(&query).unwrap_or_default().as_bytes());
        context.update(&self.caller().workspace_id().0.to_be_bytes());
        context.update(ring::digest::digest(&ring::digest::SHA256, body).as_ref());
        let mut fingerprint = [0; 32];
        fingerprint.copy_from_slice(context.finish().as_ref());
        Some(Ask {
            lineage: self.caller().key.lineage.clone(),
            key,
            fingerprint,
            request: self.caller().request.clone(),
            seal,
        })
    }
}

enum Once {
    Reply(Reply),
    /// It failed, and is remembered as failed.
    Failed(Error),
    Replay(Outcome),
    InProgress,
}

/// Claim, work and outcome in one transaction: nobody ever sees them apart.
fn once_in_transaction(tx: &mut Tx, ask: &Ask, work: impl FnOnce(&mut Tx) -> Result<Reply>) -> Result<Once> {
    let claim = match idempotency::claim(tx, ask)? {
        Known::Claimed(claim) => claim,
        Known::Done(outcome) => return Ok(Once::Replay(outcome)),
        Known::InProgress => return Ok(Once::InProgress),
    };
    let reply = match tx.savepoint(work) {
        Ok(reply) => reply,
        Err(error) if is_deterministic(&error) => {
            let (status, body) = error_reply(&error, &ask.request);
            idempotency::finish(tx, &claim, status, &body, &[])?;
            return Ok(Once::Failed(error));
        }
        Err(error) => return Err(error),
    };
    idempotency::finish(tx, &claim, reply.status, reply.text()?, &reply.headers)?;
    Ok(Once::Reply(reply))
}

/// Keeps a claim alive while its work goes on.
async fn beat(db: Db, claim: Claim) {
    let renewal = || {
        let claim = claim.clone();
        db.write(move |tx| idempotency::renew(tx, &claim))
    };
    HeldLease::new(idempotency::LEASE).until_lost(renewal).await;
}

/// Whether a repetition would fail the same way, so that the failure is worth remembering. What says when to try again
/// passes by itself.
fn is_deterministic(error: &Error) -> bool {
    matches!(error.code().status(), 404 | 409 | 410) && error.retry_after_seconds().is_none()
}

/// A 429 that does not pass by itself soon is not worth retrying.
fn worth_retrying(code: Code) -> bool {
    !matches!(code, Code::QuotaExceeded | Code::BudgetExceeded | Code::TestRunDailyCap)
}

/// The stored answer as this request's: an error names the request that it answers, which is in `X-Request-Id` too.
fn replay(outcome: Outcome, progress: &mut Progress) -> Result<Reply> {
    progress.gate = Gate::Idempotency;
    let mut text = outcome.body;
    if outcome.status >= 400 {
        let mut body: Map<String, Value> = serde_json::from_str(&text).map_err(Error::internal)?;
        body.insert("request_id".to_owned(), progress.request.as_str().into());
        let code = body.get("error").and_then(|error| error.get("code"));
        progress.code =
            Code::ALL.iter().copied().find(|known| code.is_some_and(|code| code == known.as_str()));
        text = serde_json::to_string(&body).map_err(Error::internal)?;
    }
    progress.original_request = Some(outcome.request);
    Ok(Reply { headers: outcome.headers, ..Reply::new(outcome.status, text) })
}

/// Returns the names and values of a query, decoded, in order.
pub fn parse_query(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (decode(name), decode(value)))
        .collect()
}
