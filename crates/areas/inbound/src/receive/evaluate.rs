//! Request evaluation: verification, handshake and mapping, and what is to be kept of a request. No I/O.

use super::flows::Question;
use super::hook::Hook;
use crate::events::{InboundEvent, Received};
use crate::mapping::{Mapped, Outcome};
use crate::rows::ResponseKind;
use crate::verify::body::Form;
use crate::verify::request::Incoming;
use crate::verify::scheme::Refusal;
use model::{
    FieldError, InboundWebhookId, JsonText, Random, ReceivedRequestId, Timestamp, WorkspaceId, text_enum,
};
use operation::RawAnswer;
use serde_json::Value;

/// Bodies up to this many bytes, printed as JSON, stand in the event; of longer ones the event says that they are left out.
const EVENT_BODY: usize = 24 * 1024;
/// What a mapping makes of a request is at most this many bytes, so that the event stays below 64 KiB.
const LONGEST_RESULT: usize = 24 * 1024;

text_enum! {
    /// The status of a received request.
    #[schema(as = ReceivedRequestStatus)]
    pub enum RequestStatus {
        /// Verified. The webhook has no mapping.
        Accepted = "accepted",
        /// Received before.
        Duplicate = "duplicate",
        /// Not verified.
        Rejected = "rejected",
        /// Verified, but a condition of the mapping is not met.
        Unmatched = "unmatched",
        /// Verified and mapped.
        Processed = "processed",
        /// Verified, but the mapping failed.
        Failed = "failed",
    }
}

/// What is kept of any request.
pub(crate) struct Kept {
    pub(crate) workspace: WorkspaceId,
    pub(crate) webhook: InboundWebhookId,
    pub(crate) id: ReceivedRequestId,
    pub(crate) method: String,
    pub(crate) peer: String,
    pub(crate) query: String,
    pub(crate) content_type: Option<String>,
    pub(crate) headers: JsonText,
    pub(crate) body_bytes: i64,
    pub(crate) received_at: Timestamp,
}

/// A request that is to be taken.
pub(crate) struct Taken {
    pub(crate) kept: Kept,
    /// What it is remembered by, and until when.
    pub(crate) digest: Option<(Vec<u8>, Timestamp)>,
    pub(crate) ending: Ending,
}

/// How a request ends.
pub(crate) struct Ending {
    pub(crate) status: RequestStatus,
    pub(crate) error: Option<JsonText>,
    pub(crate) result: Option<JsonText>,
    /// What is published of it; nothing where it did not match or fit.
    pub(crate) event: Option<InboundEvent>,
    /// What it asks the flow that answers it, if one does.
    pub(crate) question: Option<Question>,
}

/// The result of an evaluation.
pub(crate) enum Evaluation {
    /// A question, with its answer. Nothing is kept.
    Answered(RawAnswer),
    /// It could not be verified.
    Refused(Kept, Refusal),
    /// It is to be taken.
    Taken(Box<Taken>),
    /// Only `POST` is taken here.
    OtherMethod,
}

/// Evaluates a request.
pub(crate) fn evaluate(hook: &Hook, request: &Incoming<'_>, random: &dyn Random) -> Evaluation {
    match request.method {
        "POST" => {}
        "GET" if hook.handshake.has_get() => {}
        _ => return Evaluation::OtherMethod,
    }
    let refused = |refusal| Evaluation::Refused(kept(hook, request, random), refusal);
    if let Err(refusal) = hook.admits(request.peer) {
        return refused(refusal);
    }
    match hook.handshake.unsigned(request) {
        Some(Ok(answer)) => return Evaluation::Answered(answer),
        Some(Err(refusal)) => return refused(refusal),
        None => {}
    }
    if let Err(refusal) = hook.scheme.check(request) {
        return refused(refusal);
    }
    // Only now, of a sender who is known, is the body read.
    let (form, body) = request.read_body();
    if let Some(answer) = hook.handshake.signed(&body) {
        return Evaluation::Answered(answer);
    }
    let kept = kept(hook, request, random);
    let until = request.now.plus_seconds(hook.dedupe.window_seconds);
    let digest = hook.dedupe.digest(request, &body).map(|digest| (digest, until));
    let ending = ending(hook, request, &kept.id, form, body);
    Evaluation::Taken(Box::new(Taken { kept, digest, ending }))
}

fn kept(hook: &Hook, request: &Incoming<'_>, random: &dyn Random) -> Kept {
    let headers = request.kept_headers(hook.secret_header.as_deref());
    Kept {
        workspace: hook.workspace,
        webhook: hook.id.clone(),
        id: ReceivedRequestId::new(request.now, random),
        method: request.method.to_owned(),
        peer: request.peer.to_canonical().to_string(),
        query: request.kept_query(),
        content_type: request.media_type(),
        headers: JsonText::of(&headers),
        body_bytes: i64::try_from(request.body.len()).unwrap_or(i64::MAX),
        received_at: request.now,
    }
}

/// Maps a request and says what is published of it.
pub(crate) fn ending(
    hook: &Hook,
    request: &Incoming<'_>,
    id: &ReceivedRequestId,
    form: Form,
    body: Value,
) -> Ending {
    let outcome = hook.mapping.as_ref().map(|mapping| mapping.apply(request, &body));
    let (status, mapped) = match outcome {
        None => (RequestStatus::Accepted, Mapped::default()),
        Some(Outcome::Mapped(mapped)) => (RequestStatus::Processed, mapped),
        Some(Outcome::Unmatched) => {
            // Otherwise the log would only say that a condition is not met, although there was nothing to compare.
            let unread = form.says_json_but_is_none(request.media_type().as_deref(), request.body);
            let error = unread.then(|| FieldError::new("body", "is not valid JSON, so it was read as text"));
            return quiet(RequestStatus::Unmatched, error);
        }
        Some(Outcome::Failed(error)) => return quiet(RequestStatus::Failed, Some(error)),
    };
    let result = (status == RequestStatus::Processed).then(|| JsonText::of(&mapped));
    if result.as_ref().is_some_and(|result| result.as_str().len() > LONGEST_RESULT) {
        let message = format!("what it makes of the request is larger than {LONGEST_RESULT} bytes");
        return quiet(RequestStatus::Failed, Some(FieldError::new("mapping", message)));
    }
    let is_short = fits_event(request.body.len(), &body);
    let event = Received {
        inbound_webhook_id: hook.id.clone(),
        name: hook.name.clone(),
        request_id: id.clone(),
        received_at: request.now,
        content_type: request.media_type(),
        event_type: mapped.event_type,
        vars: mapped.vars,
        contact: mapped.contact,
        // Printed here, so that the transaction does not wait for it.
        body: is_short.then(|| JsonText::of(&body)),
        body_encoding: (is_short && form == Form::Binary).then_some("base64"),
        body_truncated: !is_short,
    };
    let is_asked = hook.response.kind == ResponseKind::Flow;
    let question = is_asked.then(|| {
        let vars = hook.mapping.is_some().then(|| event.vars.clone());
        let received = serde_json::to_value(&event).unwrap_or_default();
        Question::new(vars, body, event.contact.as_ref(), received)
    });
    let event = Some(InboundEvent::Received(Box::new(event)));
    Ending { status, error: None, result, event, question }
}

/// Whether a body may stand in an event. Printed as JSON a byte takes up to six.
fn fits_event(bytes: usize, body: &Value) -> bool {
    let printed = || serde_json::to_string(body).is_ok_and(|text| text.len() <= EVENT_BODY);
    bytes <= EVENT_BODY / 6 || bytes <= EVENT_BODY && printed()
}

fn quiet(status: RequestStatus, error: Option<FieldError>) -> Ending {
    Ending { status, error: error.as_ref().map(JsonText::of), result: None, event: None, question: None }
}
