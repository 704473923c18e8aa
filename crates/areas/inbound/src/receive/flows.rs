//! The response `flow`: a run of a flow answers the sender of a request.

use super::hook::Hook;
use crate::rows::{ResponseKind, ResponseSettings, Settings};
use crate::schema::inbound_webhooks;
use crate::verify::answer;
use diesel::prelude::*;
use model::{
    Caller, Chain, Code, ContactId, Error, FlowRunId, InboundWebhookId, JsonText, ReceivedRequestId, Result,
    Scope, WorkspaceId,
};
use operation::RawAnswer;
use ports::{
    ContactRef, FlowAnswer, FlowResponse, FlowStarter, ObjectUse, ObjectUsers, People, StartFlow, UsedObject,
    WorkspaceFlows,
};
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::time::Duration;
use store::Read;

/// How long a sender waits if the webhook does not say, in seconds.
const PATIENCE: i64 = 25;

/// The headers that a flow may answer with. Cookies, and what concerns a connection, are not among them.
const HEADERS: [&str; 11] = [
    "cache-control",
    "content-disposition",
    "content-language",
    "content-type",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "vary",
];

/// The longest value of a header.
const LONGEST_HEADER: usize = 4096;

/// What a request gives to the flow that answers it.
pub(crate) struct Question {
    /// The variables of the mapping; without a mapping the body.
    pub(crate) input: Value,
    /// The data of the event `webhook.received`.
    pub(crate) received: Value,
    /// The contact of the mapping: `key` and `value`.
    pub(crate) contact: Option<ContactRef>,
}

impl Question {
    /// The question of a request that was taken.
    pub(crate) fn new(
        vars: Option<Map<String, Value>>,
        body: Value,
        contact: Option<&Value>,
        received: Value,
    ) -> Self {
        let input = match (vars, body) {
            (Some(vars), _) => Value::Object(vars),
            (None, body @ Value::Object(_)) => body,
            (None, body) => json!({ "body": body }),
        };
        Self { input, received, contact: contact.and_then(named) }
    }

    /// The run that answers. `first` is the first request of several that are the same.
    pub(crate) fn start(
        self,
        hook: &Hook,
        first: &ReceivedRequestId,
        contact: Option<ContactId>,
        chain: Option<Chain>,
    ) -> Option<StartFlow> {
        Some(StartFlow {
            workspace: hook.workspace,
            flow: hook.response.flow_id?,
            livemode: true,
            input: self.input,
            payload: self.received,
            contact,
            by: FlowStarter::InboundWebhook(first.to_string()),
            chain,
            once: format!("inbound:{}:{first}", hook.id),
        })
    }
}

/// Finds the contact whom a request names, if there is one.
///
/// # Errors
/// When the database fails.
pub(crate) fn find_contact(
    read: &mut Read,
    people: &People,
    workspace: WorkspaceId,
    named: Option<&ContactRef>,
) -> Result<Option<ContactId>> {
    match named.map(|named| people.find(read, workspace, named)).transpose() {
        Ok(card) => Ok(card.map(|card| card.id)),
        Err(error) if error.code() == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// How the mapped contact of a request is named.
fn named(contact: &Value) -> Option<ContactRef> {
    let text = |field: &str| contact.get(field).and_then(Value::as_str);
    let by = match text("key")? {
        by @ ("phone" | "email") => by,
        "external_id" => "external",
        _ => return None,
    };
    let named: Result<ContactRef, Infallible> = format!("{by}:{}", text("value")?).parse();
    named.ok()
}

/// Checks that the flow of a response can be started, and that the caller may start it.
///
/// # Errors
/// `missing_scope`, `not_found`, `invalid_state`.
pub(crate) fn check(
    read: &mut Read,
    caller: &Caller,
    flows: &WorkspaceFlows,
    response: &ResponseSettings,
) -> Result<()> {
    let Some(flow) = response.flow_id.filter(|_| response.kind == ResponseKind::Flow) else { return Ok(()) };
    caller.key.expect_scope(Scope::AutomationsExecute)?;
    let found = flows.get()?.startable(read, caller.workspace_id(), flow)?;
    found.map(drop).map_err(|why| why.error().param("response.flow_id"))
}

/// How long the sender of a request waits.
pub(crate) fn patience(response: &ResponseSettings) -> Duration {
    let seconds = response.timeout_seconds.unwrap_or(PATIENCE).clamp(1, PATIENCE);
    Duration::from_secs(seconds.unsigned_abs())
}

/// The error for a sender whose request started no run.
pub(crate) fn unavailable(error: Error) -> Error {
    let code = error.code();
    if code == Code::ValidationError || code.status() >= 500 {
        return error;
    }
    let body = error.body();
    let stated = body.pointer("/details/reason").and_then(Value::as_str);
    Error::new(Code::FlowUnavailable, "The flow of this webhook cannot be started now.")
        .with("details", json!({ "reason": stated.unwrap_or(code.as_str()) }))
}

/// The answer of a run to the sender of a request.
///
/// # Errors
/// `flow_failed`.
pub(crate) fn answered(request: &ReceivedRequestId, answer: FlowAnswer) -> Result<RawAnswer> {
    let data = |run: FlowRunId| json!({ "id": request, "flow_run_id": run });
    let success = |status: u16, data: Value| answer::json(status, &json!({ "success": true, "data": data }));
    match answer {
        FlowAnswer::Response(run, response) => responded(&run, response),
        FlowAnswer::Completed(run, output) => {
            let mut data = data(run);
            if let Some(fields) = data.as_object_mut() {
                fields.insert("output".to_owned(), output);
            }
            Ok(success(200, data))
        }
        FlowAnswer::Pending(run) => Ok(success(202, data(run))),
        // Senders are anybody: the reason is in the run.
        FlowAnswer::Ended(run, status, _) => Err(failed(&run, status)),
    }
}

fn failed(run: &FlowRunId, status: &str) -> Error {
    Error::new(Code::FlowFailed, "The flow of this webhook failed before it answered.")
        .with("details", json!({ "flow_run_id": run, "status": status }))
}

fn responded(run: &FlowRunId, response: FlowResponse) -> Result<RawAnswer> {
    let FlowResponse { status, headers, body } = response;
    if !(200..=599).contains(&status) {
        return Err(failed(run, "invalid_response"));
    }
    let mut headers: Vec<(String, String)> = headers
        .into_iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), value))
        .filter(|(name, value)| HEADERS.contains(&name.as_str()) && is_header_value(value))
        .collect();
    let content_type = headers.iter().position(|(name, _)| name == "content-type");
    let content_type = content_type.map(|place| headers.remove(place).1);
    headers.retain(|(name, _)| name != "content-type");
    // The body of a flow must not act as a page of the service.
    let mut answer = RawAnswer::status(status)
        .header("x-content-type-options", "nosniff")
        .header("content-security-policy", "sandbox");
    if !matches!(status, 204 | 205 | 304) {
        answer = with_body(answer, content_type, body);
    }
    Ok(headers.iter().fold(answer, |answer, (name, value)| answer.header(name, value)))
}

/// Adds a body: JSON, or the text as it is where the flow says that it is of another type.
fn with_body(answer: RawAnswer, content_type: Option<String>, body: Value) -> RawAnswer {
    let is_json = content_type.as_ref().is_none_or(|kind| kind.to_ascii_lowercase().contains("json"));
    let bytes = match body {
        Value::Null => return answer,
        Value::String(text) if !is_json => text,
        body => body.to_string(),
    };
    answer.body(content_type.as_deref().unwrap_or("application/json"), bytes)
}

fn is_header_value(value: &str) -> bool {
    value.len() <= LONGEST_HEADER && value.bytes().all(|byte| (0x20..0x7f).contains(&byte))
}

/// Inbound webhooks as users of flows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WebhooksAsUsers;

impl ObjectUsers for WebhooksAsUsers {
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, used: UsedObject) -> Result<Vec<ObjectUse>> {
        let UsedObject::Flow(flow) = used else { return Ok(Vec::new()) };
        let rows: Vec<(InboundWebhookId, String, JsonText)> = inbound_webhooks::table
            .filter(inbound_webhooks::workspace_id.eq(workspace))
            .filter(inbound_webhooks::settings.like(format!("%\"flow_id\":{flow}%")))
            .order(inbound_webhooks::id)
            .select((inbound_webhooks::id, inbound_webhooks::name, inbound_webhooks::settings))
            .load(read.connection())?;
        let mut uses = Vec::new();
        for (id, name, settings) in rows {
            let response = settings.parse::<Settings>()?.response;
            if response.kind == ResponseKind::Flow && response.flow_id == Some(flow) {
                uses.push(ObjectUse { r#type: "inbound_webhook", id: id.to_string(), name, version: None });
            }
        }
        Ok(uses)
    }
}
