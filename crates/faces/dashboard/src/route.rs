//! The route of a page.

use crate::visit::{PageResult, Refusal, Visit};
use crate::web::{Web, guarded};
use model::{Code, Error, RequestId, Result};
use operation::{BoxFuture, RawAnswer, RawRequest, RawRoute};

/// More than any form of a page needs. A password of a megabyte is refused before anything reads it.
const LARGEST_BODY: usize = 64 * 1024;

/// Answers a request of a browser.
pub type Handler = fn(Visit) -> BoxFuture<PageResult>;

/// The route of a page.
pub struct PageRoute {
    web: Web,
    prefix: &'static str,
    handler: Handler,
}

impl PageRoute {
    /// Creates the route of a page. A `prefix` with a slash at its end stands for all addresses below it.
    pub fn new(web: &Web, prefix: &'static str, handler: Handler) -> Self {
        Self { web: web.clone(), prefix, handler }
    }
}

impl RawRoute for PageRoute {
    fn prefix(&self) -> &'static str {
        self.prefix
    }

    fn body_limit(&self) -> usize {
        LARGEST_BODY
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let (web, prefix, handler) = (self.web.clone(), self.prefix, self.handler);
        Box::pin(async move {
            let id = RequestId::new(web.db().now(), &*web.db().random());
            let answer = match handle(&web, handler, request).await {
                Ok(answer) => answer,
                Err(error) => {
                    let cause = error.cause().map(ToString::to_string);
                    tracing::error!(request_id = %id, prefix, cause, "a page failed");
                    let message = format!("{} Request {id}", error.message());
                    RawAnswer::status(error.code().status()).body("text/plain; charset=utf-8", message)
                }
            };
            guarded(answer)
        })
    }
}

async fn handle(web: &Web, handler: Handler, request: RawRequest) -> Result<RawAnswer> {
    // What answers an error, without the body of the request.
    let plain = RawRequest { body: bytes::Bytes::new(), ..request.clone() };
    let visit = Visit::of(web, request).await?;
    let is_allowed = matches!(visit.request.method.as_str(), "GET" | "HEAD" | "POST");
    let result = if is_allowed { handler(visit).await } else { Err(not_allowed().into()) };
    match result {
        Ok(answer) => Ok(answer),
        Err(Refusal::Answer(answer)) => Ok(*answer),
        Err(Refusal::Failed(error)) if error.cause().is_some() => Err(error),
        Err(Refusal::Failed(error)) => {
            let answer = Visit::of(web, plain).await?.error_page(&error);
            Ok(if error.code() == Code::MethodNotAllowed {
                answer.header("allow", "GET, HEAD, POST")
            } else {
                answer
            })
        }
    }
}

fn not_allowed() -> Error {
    Error::new(Code::MethodNotAllowed, "Only GET, HEAD and POST are allowed.")
}
