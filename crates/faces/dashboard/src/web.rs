//! What all pages share, and the route of a page.

use crate::cookies::Cookie;
use crate::session::SignedIn;
use crate::site::Site;
use crate::visit::{PageResult, Refusal, Visit};
use accounts::{SessionTokens, SignIn};
use auth::{Directory, Seal};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Code, Error, RequestId, Result};
use oauth::AccessTokens;
use operation::{BoxFuture, RawAnswer, RawRequest, RawRoute};
use std::sync::Arc;
use store::Db;

/// More than any form of a page needs. A password of a megabyte is refused before anything reads it.
const LARGEST_BODY: usize = 64 * 1024;

/// The services behind the pages.
pub struct WebParts {
    /// The database.
    pub db: Db,
    /// Signs form tokens and the marks of browsers.
    pub seal: Arc<Seal>,
    /// The address of the service.
    pub site: Site,
    /// Caches keys and workspaces.
    pub directory: Arc<Directory>,
    /// Issues the tokens that pages use the API with.
    pub session_tokens: Arc<SessionTokens>,
    /// Caches the tokens of apps.
    pub access_tokens: Arc<AccessTokens>,
    /// Checks passwords.
    pub sign_in: Arc<SignIn>,
}

/// The services behind the pages, shared.
#[derive(Clone)]
pub struct Web(Arc<WebParts>);

impl Web {
    /// Creates them.
    pub fn new(parts: WebParts) -> Self {
        Self(Arc::new(parts))
    }

    /// Returns the database.
    pub fn db(&self) -> &Db {
        &self.0.db
    }

    /// Returns what signs form tokens.
    pub fn seal(&self) -> &Seal {
        &self.0.seal
    }

    /// Returns the address of the service.
    pub fn site(&self) -> &Site {
        &self.0.site
    }

    /// Returns what checks passwords.
    pub fn sign_in(&self) -> &SignIn {
        &self.0.sign_in
    }

    /// Returns what issues tokens of sessions.
    pub(crate) fn session_tokens(&self) -> &SessionTokens {
        &self.0.session_tokens
    }

    /// Clears the caches of this process after somebody has lost access, so that the next request sees it. Other
    /// replicas see it within ten seconds.
    pub(crate) fn forget(&self) {
        self.0.directory.forget();
        self.0.session_tokens.forget();
        self.0.access_tokens.forget();
    }

    /// Returns who is signed in, as the cookie of a request proves it. Returns `None` for a cookie that opens no session.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn signed_in(&self, request: &RawRequest) -> Result<Option<SignedIn>> {
        match Cookie::Session.read(self.site(), request) {
            Some(secret) => SignedIn::find(self, &secret).await,
            None => Ok(None),
        }
    }

    /// Returns this many random bytes as text.
    pub(crate) fn random_text<const BYTES: usize>(&self) -> String {
        let mut bytes = [0; BYTES];
        self.db().random().fill(&mut bytes);
        URL_SAFE_NO_PAD.encode(bytes)
    }
}

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

/// Adds the headers of all pages: in no frame, cache or index, and no referrer, because addresses contain codes. There is no
/// `Cross-Origin-Opener-Policy`: apps open the consent page in a window to which they have to stay connected.
pub fn guarded(answer: RawAnswer) -> RawAnswer {
    answer
        .header("x-content-type-options", "nosniff")
        .header("x-frame-options", "DENY")
        .header("referrer-policy", "no-referrer")
        .header("cache-control", "no-store")
        .header("x-robots-tag", "noindex")
}
