//! The route of links: a page for people, and JSON for programs. Everyone with the link can see what is asked and decide. GET
//! changes nothing, because programs that preview links send it too.

use crate::link::Links;
use crate::page;
use bytes::Bytes;
use maud::Markup;
use model::{Code, Error, RequestId, Result};
use operation::{BoxFuture, RawAnswer, RawRequest, RawRoute};
use serde_json::{Value, json};
use store::Db;

/// More than any answer needs.
const LARGEST_BODY: usize = 64 * 1024;

/// What links of one kind lead to.
pub trait Action: Clone + Send + Sync + 'static {
    /// The links.
    fn links(&self) -> &Links;

    /// The database.
    fn db(&self) -> &Db;

    /// The error for a link that was not made here, or leads to nothing any more.
    fn nothing(&self) -> Error;

    /// The page that asks.
    ///
    /// # Errors
    /// Why it cannot be answered: `not_found`, `invalid_state` where it was answered, `approval_expired`.
    fn ask(&self, identity: String) -> BoxFuture<Result<Markup>>;

    /// Takes an answer. Of several answers one counts, so it is taken under the lock of what the link is about.
    ///
    /// # Errors
    /// As those of [`ask`](Self::ask), and `validation_error`.
    fn answer(&self, identity: String, form: Form, body: Bytes) -> BoxFuture<Result<Answered>>;
}

/// What became of an answer, for programs and for people.
pub struct Answered {
    /// The `data` of the response.
    pub data: Value,
    /// The page.
    pub page: Markup,
}

/// The format of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As a browser does: a form, which is answered with a page.
    Page,
    /// As a program does, in the API's envelope.
    Json,
}

impl Form {
    /// The format of a request; `None` for any other.
    fn of(request: &RawRequest) -> Option<Self> {
        if request.method != "POST" {
            return Some(Self::Page);
        }
        let content_type = request.header("content-type").unwrap_or_default();
        match content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
            "application/json" => Some(Self::Json),
            "application/x-www-form-urlencoded" => Some(Self::Page),
            _ => None,
        }
    }
}

/// The route under which people open links.
pub struct LinkRoute<A>(A);

impl<A: Action> LinkRoute<A> {
    /// The route of an action.
    pub fn new(action: A) -> Self {
        Self(action)
    }
}

impl<A: Action> RawRoute for LinkRoute<A> {
    fn prefix(&self) -> &'static str {
        self.0.links().prefix()
    }

    fn body_limit(&self) -> usize {
        LARGEST_BODY
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let action = self.0.clone();
        Box::pin(async move {
            let id = RequestId::new(action.db().now(), &*action.db().random());
            let form = Form::of(&request);
            let answer = match handle(&action, request, form).await {
                Ok(answer) => answer,
                Err(error) => {
                    if let Some(cause) = error.cause() {
                        tracing::error!(request_id = %id, prefix = action.links().prefix(), %cause, "a link failed");
                    }
                    refusal(&error, form, &id)
                }
            };
            guarded(answer).header("x-request-id", id.as_str())
        })
    }
}

async fn handle<A: Action>(action: &A, request: RawRequest, form: Option<Form>) -> Result<RawAnswer> {
    let is_answer = match request.method.as_str() {
        "GET" | "HEAD" => false,
        "POST" => true,
        _ => return Err(Error::new(Code::MethodNotAllowed, "Only GET, HEAD and POST are allowed.")),
    };
    let identity = action.links().read(&request.rest).ok_or_else(|| action.nothing())?;
    if !is_answer {
        return Ok(html(200, action.ask(identity).await?));
    }
    let form = form.ok_or_else(|| {
        let message = "Send `application/json` or `application/x-www-form-urlencoded`.";
        Error::new(Code::UnsupportedMediaType, message)
    })?;
    let Answered { data, page } = action.answer(identity, form, request.body).await?;
    Ok(match form {
        Form::Json => json_answer(200, &json!({ "success": true, "data": data })),
        Form::Page => html(200, page),
    })
}

fn refusal(error: &Error, form: Option<Form>, id: &RequestId) -> RawAnswer {
    let status = error.code().status();
    let answer = if form == Some(Form::Page) {
        html(status, page::refusal(error, id))
    } else {
        json_answer(status, &json!({ "success": false, "error": error.body(), "request_id": id }))
    };
    if error.code() == Code::MethodNotAllowed { answer.header("allow", "GET, HEAD, POST") } else { answer }
}

fn html(status: u16, page: Markup) -> RawAnswer {
    RawAnswer::status(status).body("text/html; charset=utf-8", page.into_string())
}

fn json_answer(status: u16, body: &Value) -> RawAnswer {
    RawAnswer::status(status).body("application/json", body.to_string())
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
