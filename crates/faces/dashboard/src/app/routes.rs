//! The routes of the application.

use super::bundle::BUNDLE;
use crate::visit::{Visit, with_next};
use crate::web::{Web, guarded};
use model::{Code, Error, RequestId, Result};
use operation::{BoxFuture, RawAnswer, RawRequest, RawRoute};

/// Scripts and styles come from this service only. The hash allows one inline style, `display: contents`, which Svelte
/// writes around components that get custom properties. Markup reaches the page through Svelte's own policy only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    style-src-attr 'unsafe-hashes' 'sha256-tcbDxjMo+xKqM21aCGYbs/QAJqB7yUXC06oPWDapBgc='; img-src 'self' data: blob:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

const ASSETS: &str = "assets/";

/// The application: each address below `/app/` that is no file is its page, because the application reads the address.
pub(crate) struct AppRoute {
    web: Web,
}

impl AppRoute {
    /// Creates the route.
    pub(crate) fn new(web: &Web) -> Self {
        Self { web: web.clone() }
    }
}

impl RawRoute for AppRoute {
    fn prefix(&self) -> &'static str {
        "/app/"
    }

    fn body_limit(&self) -> usize {
        0
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let web = self.web.clone();
        Box::pin(async move {
            if !matches!(request.method.as_str(), "GET" | "HEAD") {
                return guarded(RawAnswer::status(405).header("allow", "GET, HEAD"));
            }
            // Files contain nothing about anybody, so they need no session.
            if let Some(path) = request.rest.strip_prefix(ASSETS) {
                return asset(&request, path);
            }
            match page(&web, request).await {
                Ok(answer) => guarded(answer),
                Err(error) => guarded(failed(&web, &error)),
            }
        })
    }
}

fn asset(request: &RawRequest, path: &str) -> RawAnswer {
    let Some(asset) = BUNDLE.asset(path) else {
        // The file of another version, which another replica may still serve: nobody keeps this answer.
        return guarded(RawAnswer::status(404).body("text/plain; charset=utf-8", "There is no such file."));
    };
    let accepts_gzip = request.header("accept-encoding").is_some_and(|accepted| accepted.contains("gzip"));
    let answer = match asset.gzipped().filter(|_| accepts_gzip) {
        Some(bytes) => {
            RawAnswer::status(200).header("content-encoding", "gzip").body(asset.content_type, bytes)
        }
        None => RawAnswer::status(200).body(asset.content_type, asset.plain()),
    };
    answer
        .header("vary", "accept-encoding")
        .header("cache-control", "public, max-age=31536000, immutable")
        .header("x-content-type-options", "nosniff")
        .header("cross-origin-resource-policy", "same-origin")
}

/// Returns the page, or sends those who are not signed in to the sign-in page, from which they come back.
async fn page(web: &Web, request: RawRequest) -> Result<RawAnswer> {
    let visit = Visit::of(web, request).await?;
    if visit.signed_in().is_none() {
        let query = &visit.request.query;
        let mark = if query.is_empty() { "" } else { "?" };
        let here = format!("/app/{}{mark}{query}", visit.request.rest);
        return Ok(visit.redirect(&with_next("/sign-in", &here)));
    }
    let index = BUNDLE.index(&web.site().link("/app/"));
    Ok(RawAnswer::status(200)
        .header("content-security-policy", POLICY)
        .header("cross-origin-opener-policy", "same-origin")
        .body("text/html; charset=utf-8", index))
}

fn failed(web: &Web, error: &Error) -> RawAnswer {
    let id = RequestId::new(web.db().now(), &*web.db().random());
    let cause = error.cause().map(ToString::to_string);
    tracing::error!(request_id = %id, cause, "the page of the dashboard failed");
    let message = format!("{} Request {id}", error.message());
    RawAnswer::status(error.code().status()).body("text/plain; charset=utf-8", message)
}

/// An address that leads to a page of the application.
pub(crate) struct Shortcut {
    web: Web,
    prefix: &'static str,
    page: &'static str,
}

impl Shortcut {
    /// Creates a redirect to a page.
    pub(crate) fn new(web: &Web, prefix: &'static str, page: &'static str) -> Self {
        Self { web: web.clone(), prefix, page }
    }
}

impl RawRoute for Shortcut {
    fn prefix(&self) -> &'static str {
        self.prefix
    }

    fn body_limit(&self) -> usize {
        0
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let answer = if matches!(request.method.as_str(), "GET" | "HEAD") {
            RawAnswer::status(303).header("location", self.web.site().link(self.page))
        } else {
            let error = Error::new(Code::MethodNotAllowed, "Only GET and HEAD are allowed.");
            RawAnswer::status(error.code().status())
                .header("allow", "GET, HEAD")
                .body("text/plain; charset=utf-8", error.message().to_owned())
        };
        Box::pin(async move { guarded(answer) })
    }
}
