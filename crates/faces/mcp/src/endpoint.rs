//! The endpoint `POST /api/v1/mcp`: what happens to a request before and after its message is dispatched.
//!
//! The order is: method and origin, the gates of the pipeline (credential, rate, workspace, plan, `mcp:use`), the body,
//! the message, the era with its headers, the method.

use crate::catalog::Catalog;
use crate::challenge::Challenges;
use crate::dispatch::Dispatch;
use crate::era::{Era, check_other};
use crate::message::{self, Message, RpcError};
use crate::origin::{self, Origins};
use crate::server::{McpServer, to_raw};
use crate::tools::Selection;
use bytes::Bytes;
use futures::future::LocalBoxFuture;
use model::{Code, Error, RequestId, Result};
use oauth::AccessTokens;
use operation::{
    Admitted, Audience, BASE, Head, Mount, Opened, Pipeline, RawAnswer, RawRequest, Response, ResponseBody,
};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// The address below `/api/v1`.
const PATH: &str = "/mcp";
/// How long a call without progress may wait for its result. Clients give up after 60 seconds.
const PATIENCE: Duration = Duration::from_secs(55);

/// The settings of the endpoint.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The public URL of the service, without `/api/v1`.
    pub base_url: String,
    /// The origins whose pages may use the endpoint, in addition to the service's own and to loopback; `*` for all.
    pub origins: Vec<String>,
    /// The version of the service.
    pub version: &'static str,
    /// How long a call without progress waits for its result, then for its id.
    pub patience: Duration,
}

impl Settings {
    /// Creates the settings of a service, without other origins.
    pub fn new(base_url: &str, version: &'static str) -> Self {
        Self { base_url: base_url.to_owned(), origins: Vec::new(), version, patience: PATIENCE }
    }
}

/// The endpoint of the MCP server.
pub struct Endpoint {
    server: McpServer,
    origins: Origins,
}

impl Endpoint {
    /// Creates the endpoint of a service.
    pub fn new(pipeline: Arc<Pipeline>, tools: Arc<dyn Catalog>, settings: &Settings) -> Self {
        let server = McpServer {
            pipeline,
            tools,
            version: settings.version,
            patience: settings.patience,
            challenges: Challenges::new(&settings.base_url, &format!("{BASE}{PATH}")),
        };
        Self { server, origins: Origins::new(&settings.base_url, &settings.origins) }
    }

    /// Checks method, origin and credential.
    async fn admit(
        &self,
        request: &RawRequest,
        origin: Option<&str>,
    ) -> std::result::Result<Admitted, RawAnswer> {
        if let Some(origin) = origin
            && !self.origins.allow(origin)
        {
            let refused = RpcError::new(403, message::INVALID_REQUEST, "The origin is not allowed.");
            return Err(RawAnswer::status(403).body("application/json", refused.text(None)));
        }
        match request.method.as_str() {
            "POST" => {}
            "OPTIONS" => return Err(origin::preflight(origin)),
            // Clients poll GET in a loop, so this costs nothing and leaves no row in the log.
            _ => return Err(self.method_not_allowed()),
        }
        let header = |name: &str| first(request, name);
        let head = Head {
            method: &request.method,
            path: PATH,
            query: "",
            peer: request.peer,
            audience: Audience::Mcp,
            headers: &header,
        };
        self.server.pipeline.admit(&head).await.map_err(|refused| {
            let challenge = match refused.status {
                401 => Some(self.server.challenges.unauthorized()),
                403 if is_app(request) && lacks_scope(&refused) => {
                    Some(self.server.challenges.insufficient(&[]))
                }
                _ => None,
            };
            let answer = to_raw(refused);
            match challenge {
                Some(challenge) => answer.header("www-authenticate", challenge),
                None => answer,
            }
        })
    }

    fn method_not_allowed(&self) -> RawAnswer {
        let id = RequestId::new(self.server.pipeline.db.now(), &*self.server.pipeline.db.random());
        let error = Error::new(Code::MethodNotAllowed, "Send MCP messages with POST.");
        let body = json!({ "success": false, "error": error.body(), "request_id": id });
        RawAnswer::status(405)
            .header("allow", "POST")
            .header("x-request-id", id.as_str())
            .body("application/json", body.to_string())
    }

    async fn answer(&self, request: RawRequest, admitted: Admitted, body: Result<Bytes>) -> RawAnswer {
        let body = match body.and_then(|body| is_json(&request).map(|()| body)) {
            Ok(body) => body,
            Err(error) => return to_raw(self.server.pipeline.reject_body(admitted, error)),
        };
        let headers = |name: &str| all(&request, name);
        let (refused, id) = match message::read(&body) {
            Ok(Message::Request(message)) => match Era::of(&message, &headers) {
                Ok(era) => {
                    let selection = self.selection(&request).await;
                    return Dispatch { server: &self.server, era, id: message.id.clone(), selection }
                        .run(admitted, message)
                        .await;
                }
                Err(refused) => (refused, Some(message.id)),
            },
            Ok(Message::Other(_)) => match check_other(&headers) {
                Ok(()) => return self.server.reply(admitted, 202, String::new()).await,
                Err(refused) => (refused, None),
            },
            Err(unreadable) => (unreadable.error, unreadable.id),
        };
        self.server.refuse(admitted, &refused, id.as_ref()).await
    }

    async fn selection(&self, request: &RawRequest) -> Result<Selection> {
        let header = |name: &str| {
            let value = std::str::from_utf8(first(request, name)?).ok()?;
            Some(value.to_owned())
        };
        self.server.tools.select(&request.query, &header).await
    }
}

impl Mount for Endpoint {
    fn path(&self) -> &'static str {
        PATH
    }

    fn open(
        self: Arc<Self>,
        head: RawRequest,
    ) -> LocalBoxFuture<'static, std::result::Result<Opened, RawAnswer>> {
        Box::pin(async move {
            let origin = origin_of(&head);
            let admitted = match self.admit(&head, origin.as_deref()).await {
                Ok(admitted) => admitted,
                // A page that is not allowed must not read the refusal either.
                Err(refused)
                    if refused.status == 403
                        && origin.as_ref().is_some_and(|one| !self.origins.allow(one)) =>
                {
                    return Err(origin::allow(refused, None));
                }
                Err(refused) if head.method == "OPTIONS" => return Err(refused),
                Err(refused) => return Err(origin::allow(refused, origin.as_deref())),
            };
            Ok(Opened {
                body_limit: admitted.body_limit(),
                answer: Box::new(move |body| {
                    Box::pin(async move {
                        let answer = self.answer(head, admitted, body).await;
                        origin::allow(answer, origin.as_deref())
                    })
                }),
            })
        })
    }
}

/// Returns the origin of a request. Several, or one that is not text, are an origin that nobody allows.
fn origin_of(request: &RawRequest) -> Option<String> {
    match all(request, "origin").as_slice() {
        [] => None,
        [Some(origin)] => Some((*origin).to_owned()),
        _ => Some(String::new()),
    }
}

fn first<'a>(request: &'a RawRequest, name: &str) -> Option<&'a [u8]> {
    request.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_ref())
}

fn all<'a>(request: &'a RawRequest, name: &str) -> Vec<Option<&'a str>> {
    let values = request.headers.iter().filter(|(other, _)| other == name);
    values.map(|(_, value)| std::str::from_utf8(value).ok()).collect()
}

/// Checks that the body is JSON, if the request says what it is.
fn is_json(request: &RawRequest) -> Result<()> {
    let sent = request.header("content-type").unwrap_or("application/json");
    let media_type = sent.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Error::new(Code::UnsupportedMediaType, "Send `Content-Type: application/json`."))
}

/// Returns whether the credential is an access token of an OAuth app, which can be given more scopes.
fn is_app(request: &RawRequest) -> bool {
    let token = request.header("authorization").and_then(|value| value.split_once(' '));
    token.is_some_and(|(_, token)| AccessTokens::is_token(token.trim()))
}

fn lacks_scope(response: &Response) -> bool {
    let ResponseBody::Json(text) = &response.body else { return false };
    let body: Value = serde_json::from_str(text).unwrap_or_default();
    body.pointer("/error/code").and_then(Value::as_str) == Some(Code::MissingScope.as_str())
}
