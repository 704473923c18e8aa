//! Operation: the log of received requests.

use super::rows::WebhookRow;
use crate::receive::evaluate::RequestStatus;
use crate::receive::received::{self, Which, WithBody};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{Caller, EventId, InboundWebhookId, JsonText, ReceivedRequestId, Result, Timestamp};
use operation::{OffsetList, OffsetPage, Path, Query, Resource, operation};
use serde::{Deserialize, Serialize};
use store::Read;
use utoipa::{IntoParams, ToSchema};

/// Bytes of a body in a list.
const SHOWN_BODY: i32 = 4096;
/// The largest body that is kept.
const WHOLE_BODY: i32 = 1 << 20;

/// A request that an inbound webhook received. It is kept for 14 days by default.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "status": "processed", "method": "POST", "ip": "203.0.113.7", "query": "",
    "content_type": "application/json", "headers": { "content-type": "application/json" },
    "body": "{\"order\":\"A-1042\"}", "body_encoding": "utf8", "body_bytes": 18,
    "event_id": "evt_01m7w4n5e0k3p8r2v6x9b1d4f7",
}))]
pub struct ReceivedRequest {
    /// The id of the request.
    id: ReceivedRequestId,
    /// Always `received_request`.
    object: &'static str,
    /// The id of the webhook.
    inbound_webhook_id: InboundWebhookId,
    /// The result.
    status: RequestStatus,
    /// The HTTP method.
    method: String,
    /// The IP address of the sender.
    ip: String,
    /// The query, without secrets.
    query: String,
    /// The media type of the body.
    content_type: Option<String>,
    /// The headers, without secrets, up to 8 KiB.
    #[schema(value_type = Object)]
    headers: JsonText,
    /// The body: as text if it is text, otherwise as base64. Truncated to 4 KiB unless a single request is requested by
    /// `id`. Empty for rejected requests and duplicates.
    body: String,
    /// The encoding of `body`: `utf8` or `base64`.
    body_encoding: &'static str,
    /// Whether `body` is truncated.
    body_truncated: bool,
    /// The size of the received body in bytes.
    body_bytes: i64,
    /// The first request that this one duplicates.
    duplicate_of: Option<ReceivedRequestId>,
    /// Why the request was rejected or failed.
    error: Option<RequestFault>,
    /// The result of the mapping.
    #[schema(value_type = Option<Object>)]
    result: Option<JsonText>,
    /// The event that was published for the request.
    event_id: Option<EventId>,
    /// When it was received.
    received_at: Timestamp,
}

/// Why a received request was rejected or failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ReceivedRequestError)]
pub struct RequestFault {
    /// `verification`, or the path of a part of the mapping.
    param: String,
    /// The reason. For a verification: `missing_header`, `malformed_signature`, `wrong_secret`, `wrong_signature`,
    /// `missing_timestamp`, `stale_timestamp` or `address_not_allowed`.
    message: String,
}

/// Which requests to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct RequestQuery {
    /// Only requests with this status.
    #[serde(default)]
    status: Option<RequestStatus>,
    /// Only this request, with its whole body.
    #[serde(default)]
    id: Option<String>,
}

/// What was received and what became of it
///
/// Lists received requests with their status, newest first. The body is truncated to 4 KiB; send `id` to get one
/// request with its whole body. Requests are kept for 14 days by default.
#[operation(get "/inbound-webhooks/{inboundWebhookId}/requests", scope = "webhooks:manage")]
pub fn list_inbound_webhook_requests(
    read: &mut Read,
    caller: &Caller,
    Path(inbound_webhook_id): Path<InboundWebhookId>,
    Query(query): Query<RequestQuery>,
    page: OffsetPage,
) -> Result<OffsetList<ReceivedRequest>> {
    let workspace = caller.workspace_id();
    let webhook = WebhookRow::find(read, workspace, &inbound_webhook_id)?.id;
    // What cannot be an id is the id of nothing.
    let id = match &query.id {
        Some(text) => match ReceivedRequestId::parse(text) {
            Some(id) => Some(id),
            None => return Ok(OffsetList::of(page, Vec::new(), 0)),
        },
        None => None,
    };
    let body_limit = if id.is_some() { WHOLE_BODY } else { SHOWN_BODY };
    let which = Which { status: query.status, id };
    let (rows, total) = received::requests(read, (workspace, &webhook), &which, page, body_limit)?;
    let shown = rows.into_iter().map(|row| show(row, &webhook)).collect::<Result<Vec<_>>>()?;
    Ok(OffsetList::of(page, shown, total))
}

fn show((row, body): WithBody, webhook: &InboundWebhookId) -> Result<ReceivedRequest> {
    let status = row.status;
    let body = body.unwrap_or_default();
    let keeps_body = !matches!(status, RequestStatus::Rejected | RequestStatus::Duplicate);
    let body_truncated = keeps_body && i64::try_from(body.len()).is_ok_and(|kept| kept < row.body_bytes);
    let (body, body_encoding) = printed(body, body_truncated);
    Ok(ReceivedRequest {
        object: "received_request",
        inbound_webhook_id: webhook.clone(),
        status,
        method: row.method,
        ip: row.peer,
        query: row.query,
        content_type: row.content_type,
        headers: row.headers,
        body,
        body_encoding,
        body_truncated,
        body_bytes: row.body_bytes,
        duplicate_of: row.duplicate_of,
        error: row.error.map(|error| error.parse()).transpose()?,
        result: row.result,
        event_id: row.event_id,
        received_at: row.received_at,
        id: row.id,
    })
}

/// Text as it is. One that was cut may end within a character, which is left out.
fn printed(body: Vec<u8>, is_cut: bool) -> (String, &'static str) {
    match String::from_utf8(body) {
        Ok(text) => (text, "utf8"),
        Err(error) if is_cut && error.utf8_error().error_len().is_none() => {
            let whole = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(whole);
            (String::from_utf8(bytes).unwrap_or_default(), "utf8")
        }
        Err(error) => (STANDARD.encode(error.as_bytes()), "base64"),
    }
}
