//! The endpoints of the OAuth authorization server, outside the API and with the bodies of the standards instead of the
//! envelope.

mod answers;
mod discovery;
mod parameters;
mod register;
mod request;

use answers::{OauthError, preflight, shared, wrong_method};
use discovery::Discovery;
use model::Result;
use ::oauth::clients::Clients;
use operation::{BaseUrl, BoxFuture, Group, Parts, RawAnswer, RawRequest, RawRoute, Services};
use std::sync::Arc;

/// The authorization server.
pub const OAUTH: Group = Group { declare: Ok, start };

/// More than any request needs.
const LARGEST_BODY: usize = 64 * 1024;

/// What the endpoints work with.
struct Inner {
    base_url: String,
    clients: Arc<Clients>,
    discovery: Discovery,
}

fn start(services: &Services) -> Result<Parts> {
    let BaseUrl(base_url) = services.cloned()?;
    let clients: Arc<Clients> = services.get()?;
    let discovery = Discovery { base_url: base_url.clone(), registration: clients.has_registration() };
    let inner = Arc::new(Inner { base_url, clients, discovery });
    let parts = Parts::default().raw_route(WellKnown(inner.clone())).raw_route(Endpoints {
        inner: inner.clone(),
        prefix: "/oauth/",
    });
    // Some clients use these addresses whatever the metadata says.
    let aliases = ["/authorize", "/token", "/register"];
    Ok(aliases
        .into_iter()
        .fold(parts, |parts, prefix| parts.raw_route(Endpoints { inner: inner.clone(), prefix })))
}

/// The documents below `/.well-known/`.
struct WellKnown(Arc<Inner>);

impl RawRoute for WellKnown {
    fn prefix(&self) -> &'static str {
        "/.well-known/"
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let inner = self.0.clone();
        Box::pin(async move {
            inner.discovery.answer(&request.method, &request.rest).unwrap_or_else(not_found)
        })
    }
}

/// The endpoints below `/oauth/`, or one of them at another address.
struct Endpoints {
    inner: Arc<Inner>,
    prefix: &'static str,
}

impl RawRoute for Endpoints {
    fn prefix(&self) -> &'static str {
        self.prefix
    }

    fn body_limit(&self) -> usize {
        LARGEST_BODY
    }

    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer> {
        let (inner, prefix) = (self.inner.clone(), self.prefix);
        Box::pin(async move {
            match format!("{prefix}{}", request.rest).trim_start_matches("/oauth") {
                "/register" => inner.program(&request, async || register::register(&inner.clients, &request)).await,
                _ => not_found(),
            }
        })
    }
}

impl Inner {
    /// Answers an endpoint for programs, which pages of all origins may call.
    async fn program(
        &self,
        request: &RawRequest,
        answer: impl AsyncFnOnce() -> std::result::Result<RawAnswer, OauthError>,
    ) -> RawAnswer {
        match request.method.as_str() {
            "OPTIONS" => preflight("POST, OPTIONS"),
            "POST" => shared(answer().await.unwrap_or_else(OauthError::answer)),
            _ => shared(wrong_method("POST, OPTIONS")),
        }
    }
}

fn not_found() -> RawAnswer {
    OauthError::request("there is nothing at this address").with_status(404).answer()
}
