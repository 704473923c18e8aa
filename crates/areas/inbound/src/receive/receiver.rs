//! HTTP receiver: `POST /hooks/{token}`.
//!
//! In this order: is the URL one of ours, is the webhook on, is there room in its rate, does the sender prove who it
//! is, has the request come before. What is taken is on the disk, with its event, before it is answered. With a warm
//! cache a request is one transaction and no read.

use super::bucket::Bucket;
use super::evaluate::{Evaluation, Taken, evaluate};
use super::flows::{self, Question};
use super::hook::Hook;
use super::received::{self, Appended};
use crate::queries;
use crate::rows::{ResponseKind, Status};
use crate::token::{self, TokenHash};
use crate::verify::answer;
use crate::verify::request::Incoming;
use auth::{Cache, Directory, RateWindows, Seal};
use bytes::Bytes;
use model::{Chain, Code, Error, InboundWebhookId, ReceivedRequestId, RequestId, Result, Timestamp, Trace};
use operation::{BoxFuture, CauseHeader, RawAnswer, RawRequest, RawRoute, describe_raw, known_method};
use ports::{People, WorkspaceFlows};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use store::{Db, Read, Tx};
use telemetry::{Span, Tracer};

/// Bodies from here on are hashed and read on a thread where computing is fine.
const LARGE_BODY: usize = 64 * 1024;
/// Requests per minute and address that name no webhook of ours.
const UNKNOWN_PER_MINUTE: i64 = 300;
/// Buckets that are kept before full ones are let go.
const BUCKETS: usize = 10_000;

/// What a receiver works with.
pub struct ReceiverParts {
    /// The database.
    pub db: Db,
    /// Opens tokens and secrets.
    pub seal: Arc<Seal>,
    /// Knows whose account is cut.
    pub directory: Arc<Directory>,
    /// Counts requests that name no webhook.
    pub rates: Arc<RateWindows>,
    /// How the world reaches the service, without a slash at the end.
    pub base_url: String,
    /// Records spans of requests.
    pub tracer: Tracer,
    /// The flows that answer requests.
    pub flows: WorkspaceFlows,
    /// The contacts whom requests name.
    pub people: People,
}

/// What is kept of a request that is taken.
struct Receipt {
    taken: Taken,
    body: Bytes,
    trace: Option<Trace>,
    /// The place in a chain of causes that the service itself has sent with the request.
    chain: Option<Chain>,
}

/// Receives requests for all inbound webhooks, and makes their URLs. Cheap to clone.
#[derive(Clone)]
pub struct Receiver(Arc<Inner>);

struct Inner {
    parts: ReceiverParts,
    hooks: Cache<TokenHash, Hook>,
    buckets: Mutex<HashMap<InboundWebhookId, Arc<Bucket>>>,
}

impl Receiver {
    /// A receiver. One per process.
    pub fn new(parts: ReceiverParts) -> Self {
        let (hooks, buckets) = (Cache::new(), Mutex::new(HashMap::new()));
        Self(Arc::new(Inner { parts, hooks, buckets }))
    }

    /// Forgets what it knows of webhooks, so that a change holds from now on. Other replicas notice within ten seconds.
    pub(crate) fn forget(&self) {
        self.0.hooks.clear();
    }

    /// The URL that ends in a token.
    pub(crate) fn url_of(&self, token: &str) -> String {
        self.0.url_of(token)
    }

    /// What seals and opens.
    pub(crate) fn seal(&self) -> &Seal {
        &self.0.parts.seal
    }

    /// The flows that answer requests.
    pub(crate) fn flows(&self) -> &WorkspaceFlows {
        &self.0.parts.flows
    }

    /// The contacts whom requests name.
    pub(crate) fn people(&self) -> &People {
        &self.0.parts.people
    }

    /// A stored webhook, compiled, for mapping once more what it received.
    pub(crate) fn compile(&self, row: crate::rows::WebhookRow) -> Result<Hook> {
        Hook::compile(row, self.seal(), Arc::default())
    }
}

impl RawRoute for Receiver {
    fn prefix(&self) -> &'static str {
        "/hooks/"
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let inner = self.0.clone();
        Box::pin(async move {
            let db = &inner.parts.db;
            let id = RequestId::new(db.now(), &*db.random());
            // Senders are anybody, so their `traceparent` decides nothing here.
            let method = known_method(&request.method);
            let mut span = inner.parts.tracer.serve(None, method, || Trace::of_id(id.as_str()));
            let answer = match inner.receive(request, &id, span.as_mut()).await {
                Ok(answer) => answer,
                Err(error) => {
                    if let Some(span) = &mut span {
                        span.set("svc.error_code", error.code().as_str());
                    }
                    if let Some(cause) = error.cause() {
                        tracing::error!(request_id = %id, %cause, "a received request failed");
                    }
                    let answer = answer::refusal(&error, &id);
                    let is_method = error.code() == Code::MethodNotAllowed;
                    if is_method { answer.header("allow", "POST") } else { answer }
                }
            };
            if let Some(span) = &mut span {
                describe_raw(span, method, "/hooks/{token}", &id, answer.status);
            }
            answer
        })
    }
}

impl Inner {
    fn url_of(&self, token: &str) -> String {
        format!("{}/hooks/{token}", self.parts.base_url)
    }

    async fn receive(
        &self,
        request: RawRequest,
        id: &RequestId,
        mut span: Option<&mut Span>,
    ) -> Result<RawAnswer> {
        let now = self.parts.db.now();
        let hook = self.hook(&request, now).await?;
        if let Some(span) = &mut span {
            span.set("svc.workspace_id", hook.workspace.0);
            span.set("svc.inbound_webhook_id", hook.id.to_string());
        }
        if hook.status == Status::Disabled {
            return Err(Error::new(Code::EndpointRetired, "This webhook is disabled."));
        }
        if self.parts.directory.is_cut(hook.workspace).await? {
            return Err(Error::new(Code::WorkspaceBlocked, "The workspace of this webhook is blocked."));
        }
        if let Err(seconds) = hook.bucket.take(hook.rate_limit, now) {
            let message = "The webhook's rate limit is exceeded.";
            return Err(Error::new(Code::RateLimited, message).retry_after(seconds));
        }
        let body = request.body.clone();
        let chain = request.header(CauseHeader::NAME);
        let chain = chain.and_then(|value| CauseHeader::read(&self.parts.seal, value, now));
        match self.evaluated(&hook, request, now).await? {
            Evaluation::Answered(answer) => Ok(answer),
            Evaluation::OtherMethod => Err(Error::new(Code::MethodNotAllowed, "Only POST is allowed.")),
            Evaluation::Refused(kept, refusal) => {
                self.parts.db.write(move |tx| received::note_refusal(tx, &kept, refusal)).await?;
                tracing::debug!(webhook = %hook.id, reason = refusal.as_str(), "a received request was refused");
                // The sender hears nothing that would help with guessing.
                let message = "The request could not be verified. The webhook's log has the reason.";
                Err(Error::new(Code::InvalidSignature, message))
            }
            Evaluation::Taken(taken) => {
                let trace = span.map(|span| span.trace().clone());
                self.take(&hook, Receipt { taken: *taken, body, trace, chain }, id).await
            }
        }
    }

    /// The webhook that a request names. Wrong tokens, tokens of old and of nonsense look the same.
    async fn hook(&self, request: &RawRequest, now: Timestamp) -> Result<Arc<Hook>> {
        let token = token::hash(&request.rest);
        let found = match token {
            Some(token) => self.known(token, now).await?.filter(|hook| hook.opens_with(&token, now)),
            None => None,
        };
        if let Some(hook) = found {
            return Ok(hook);
        }
        // Guessing must not be free.
        let window = self.parts.rates.count_address("hooks", request.peer, UNKNOWN_PER_MINUTE, now).await;
        if window.exceeded {
            let message = "Too many requests from this address to unknown webhooks.";
            return Err(Error::new(Code::RateLimited, message).retry_after(window.reset_seconds));
        }
        Err(Error::new(Code::NotFound, "There is no webhook at this URL."))
    }

    async fn known(&self, token: TokenHash, now: Timestamp) -> Result<Option<Arc<Hook>>> {
        if let Some(known) = self.hooks.get(&token, now) {
            return Ok(known);
        }
        let row = self.parts.db.read(move |read| queries::by_token(read, &token)).await?;
        let hook = match row {
            Some(row) => {
                let bucket = self.bucket(&row.id, now);
                Some(Arc::new(Hook::compile(row, &self.parts.seal, bucket)?))
            }
            None => None,
        };
        self.hooks.put(token, hook.clone(), now);
        Ok(hook)
    }

    /// The bucket of a webhook, which outlives what the cache knows of it.
    fn bucket(&self, webhook: &InboundWebhookId, now: Timestamp) -> Arc<Bucket> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= BUCKETS {
            buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        buckets.entry(webhook.clone()).or_default().clone()
    }

    async fn evaluated(&self, hook: &Arc<Hook>, request: RawRequest, now: Timestamp) -> Result<Evaluation> {
        let mut url = self.url_of(&request.rest);
        if !request.query.is_empty() {
            url.extend(["?", &request.query]);
        }
        let (hook, random) = (hook.clone(), self.parts.db.random());
        let is_large = request.body.len() > LARGE_BODY;
        let work = move || {
            let incoming = Incoming {
                method: &request.method,
                url,
                query: &request.query,
                headers: &request.headers,
                peer: request.peer,
                body: &request.body,
                now,
            };
            evaluate(&hook, &incoming, &*random)
        };
        if is_large { tokio::task::spawn_blocking(work).await.map_err(Error::internal) } else { Ok(work()) }
    }

    async fn take(&self, hook: &Hook, mut receipt: Receipt, id: &RequestId) -> Result<RawAnswer> {
        let new = receipt.taken.kept.id.clone();
        let (question, sent) = (receipt.taken.ending.question.take(), receipt.chain.clone());
        let append = move |tx: &mut Tx| {
            let Receipt { taken, body, trace, chain } = &receipt;
            received::append(tx, taken, body, trace.as_ref(), chain.as_ref())
        };
        let appended = self.parts.db.write(append).await?;
        let answer = match question {
            Some(question) => {
                let (first, chain) = match appended {
                    Appended::New(Some(event)) => (new, Some(Chain::after(&event, sent.as_ref()))),
                    Appended::New(None) => (new, sent.map(|chain| chain.next())),
                    Appended::Duplicate(first) => (first, sent.map(|chain| chain.next())),
                };
                self.ask(hook, question, first, chain).await?
            }
            None if hook.response.kind == ResponseKind::Static => fixed(hook),
            None => acknowledged(&new, &appended),
        };
        Ok(answer.header("x-request-id", id.as_str()))
    }

    /// Has a run of the webhook's flow answer. Requests that are the same as `first` share its run.
    async fn ask(
        &self,
        hook: &Hook,
        question: Question,
        first: ReceivedRequestId,
        chain: Option<Chain>,
    ) -> Result<RawAnswer> {
        let (people, workspace, contact) =
            (self.parts.people.clone(), hook.workspace, question.contact.clone());
        let look = move |read: &mut Read| flows::find_contact(read, &people, workspace, contact.as_ref());
        let contact = self.parts.db.read(look).await?;
        let start = question.start(hook, &first, contact, chain);
        let start = start.ok_or_else(|| Error::internal("a webhook that a flow answers has no flow"))?;
        let answer = self.parts.flows.get()?.answer(start, flows::patience(&hook.response)).await;
        flows::answered(&first, answer.map_err(flows::unavailable)?)
    }
}

/// The answer of a webhook that always answers the same.
fn fixed(hook: &Hook) -> RawAnswer {
    let response = &hook.response;
    let content_type = response.content_type.as_deref().unwrap_or("text/plain; charset=utf-8");
    let answer = RawAnswer::status(response.status.unwrap_or(200));
    match &response.body {
        Some(body) => answer.body(content_type, body.clone()),
        None => answer,
    }
}

/// The answer that says that a request was taken.
fn acknowledged(new: &ReceivedRequestId, appended: &Appended) -> RawAnswer {
    let success = |data: Value| json!({ "success": true, "data": data });
    match appended {
        Appended::New(_) => answer::json(202, &success(json!({ "id": new }))),
        Appended::Duplicate(first) => answer::json(200, &success(json!({ "id": first, "duplicate": true }))),
    }
}
