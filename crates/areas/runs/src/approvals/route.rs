//! Route `/approvals/{token}`: a page for people, and JSON for programs. Everyone with the link can see the request and decide.
//! GET changes nothing, because programs that preview links send it too.

use super::answer::{ApprovalResult, open_request};
use super::decision::Decision;
use super::link::{ApprovalRef, PREFIX};
use super::page::{self, View};
use crate::engine::RunEngine;
use crate::queries::runs;
use maud::Markup;
use model::{Code, Error, RequestId, Result};
use operation::{BoxFuture, RawAnswer, RawRequest, RawRoute};
use serde::Serialize;
use serde_json::json;
use store::Read;

/// More than any answer needs.
const LARGEST_BODY: usize = 64 * 1024;

/// Route under which people decide on approval requests.
pub struct ApprovalRoute {
    engine: RunEngine,
}

impl ApprovalRoute {
    /// The route of the runs that `engine` drives.
    pub fn new(engine: RunEngine) -> Self {
        Self { engine }
    }
}

impl RawRoute for ApprovalRoute {
    fn prefix(&self) -> &'static str {
        PREFIX
    }

    fn body_limit(&self) -> usize {
        LARGEST_BODY
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let engine = self.engine.clone();
        Box::pin(async move {
            let db = engine.db();
            let id = RequestId::new(db.now(), &*db.random());
            let form = Form::of(&request);
            let answer = match handle(&engine, request, form).await {
                Ok(answer) => answer,
                Err(error) => {
                    if let Some(cause) = error.cause() {
                        tracing::error!(request_id = %id, %cause, "an approval failed");
                    }
                    refusal(&error, form, &id)
                }
            };
            guarded(answer).header("x-request-id", id.as_str())
        })
    }
}

/// Format of a request and of its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As a browser does: a form, and pages.
    Page,
    /// As a program does, in the API's envelope.
    Json,
    /// Neither.
    Other,
}

impl Form {
    fn of(request: &RawRequest) -> Self {
        if request.method != "POST" {
            return Self::Page;
        }
        let content_type = request.header("content-type").unwrap_or_default();
        match content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "application/json" => Self::Json,
            "application/x-www-form-urlencoded" => Self::Page,
            _ => Self::Other,
        }
    }
}

async fn handle(engine: &RunEngine, request: RawRequest, form: Form) -> Result<RawAnswer> {
    let is_answer = match request.method.as_str() {
        "GET" | "HEAD" => false,
        "POST" => true,
        _ => return Err(Error::new(Code::MethodNotAllowed, "Only GET, HEAD and POST are allowed.")),
    };
    let question = engine.read_link(&request.rest).ok_or_else(nothing)?;
    if engine.0.parts.directory.is_cut(question.workspace).await? {
        return Err(Error::new(Code::WorkspaceBlocked, "The workspace is blocked."));
    }
    if !is_answer {
        let view = engine.db().read(move |read| view(read, &question)).await?;
        return Ok(html(200, page::question(&view)));
    }
    let decision = match form {
        Form::Json => Decision::from_json(&request.body)?,
        Form::Page => Decision::from_form(&request.body)?,
        Form::Other => {
            let message = "Send `application/json` or `application/x-www-form-urlencoded`.";
            return Err(Error::new(Code::UnsupportedMediaType, message));
        }
    };
    let answered = engine.answer(question, decision).await?;
    Ok(accepted(&answered, form))
}

/// Reads the data of the approval page.
fn view(read: &mut Read, question: &ApprovalRef) -> Result<View> {
    let row = runs::by_id(read, question.workspace, &question.run)
        .map_err(|error| if error.code() == Code::NotFound { nothing() } else { error })?;
    let open = open_request(read, &row, question)?;
    let (agent, tools) =
        agents::queries::version_named(read, row.workspace_id, row.agent_id, row.agent_version)?;
    let workspace = auth::workspaces::by_id(read, row.workspace_id)?.name;
    View::new(workspace, agent, &row, &open, &tools)
}

fn nothing() -> Error {
    Error::new(Code::NotFound, "There is no approval request at this URL.")
}

fn accepted(answered: &ApprovalResult, form: Form) -> RawAnswer {
    if form == Form::Json {
        json(200, &json!({ "success": true, "data": answered }))
    } else {
        html(200, page::accepted(answered))
    }
}

fn refusal(error: &Error, form: Form, id: &RequestId) -> RawAnswer {
    let status = error.code().status();
    let answer = if form == Form::Page {
        html(status, page::refusal(error, id))
    } else {
        json(status, &json!({ "success": false, "error": error.body(), "request_id": id }))
    };
    if error.code() == Code::MethodNotAllowed { answer.header("allow", "GET, HEAD, POST") } else { answer }
}

fn html(status: u16, page: Markup) -> RawAnswer {
    RawAnswer::status(status).body("text/html; charset=utf-8", page.into_string())
}

fn json(status: u16, body: &impl Serialize) -> RawAnswer {
    RawAnswer::status(status).body("application/json", serde_json::to_vec(body).unwrap_or_default())
}

/// The page loads and runs nothing, shows up in no frame, index or cache, and sends no referrer.
fn guarded(answer: RawAnswer) -> RawAnswer {
    let policy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; \
        base-uri 'none'";
    answer
        .header("content-security-policy", policy)
        .header("x-content-type-options", "nosniff")
        .header("referrer-policy", "no-referrer")
        .header("cache-control", "no-store")
        .header("x-robots-tag", "noindex")
}
