//! The endpoints of the OAuth authorization server, outside the API and with the bodies of the standards instead of the
//! envelope.

mod answers;
mod authorize;
mod consent;
mod discovery;
mod parameters;
mod register;
mod request;
mod token;

use crate::visit::Visit;
use crate::web::{Web, guarded};
use ::oauth::Resources;
use ::oauth::clients::Clients;
use answers::{OauthError, preflight, shared, wrong_method};
use auth::Seal;
use discovery::Discovery;
use jobs::Job;
use model::{RequestId, Result};
use operation::{BaseUrl, BoxFuture, Group, Parts, RawAnswer, RawRequest, RawRoute, Services};
use std::sync::Arc;
use std::time::Duration;
use store::Db;

/// The authorization server.
pub const OAUTH: Group =
    Group { declare: |declarations| Ok(declarations.sealed(::oauth::SEALED.iter().copied())), start };

/// More than any request needs.
const LARGEST_BODY: usize = 64 * 1024;

/// What the endpoints work with.
struct Inner {
    db: Db,
    seal: Arc<Seal>,
    base_url: String,
    resources: Resources,
    clients: Arc<Clients>,
    web: Web,
    discovery: Discovery,
}

fn start(services: &Services) -> Result<Parts> {
    let BaseUrl(base_url) = services.cloned()?;
    let clients: Arc<Clients> = services.get()?;
    let discovery = Discovery { base_url: base_url.clone(), registration: clients.has_registration() };
    let purged = clients.clone();
    let inner = Arc::new(Inner {
        db: services.cloned()?,
        seal: services.get()?,
        resources: Resources::new(&base_url),
        base_url,
        clients,
        web: services.cloned()?,
        discovery,
    });
    let parts = Parts::default().jobs(::oauth::jobs()).job(Job::every(
        "oauth.assertions",
        Duration::from_secs(600),
        "deletes the ids of assertions by which OAuth clients have authenticated, after their time",
        move |_| {
            let clients = purged.clone();
            async move {
                while clients.purge_assertions().await? > 0 {}
                Ok(())
            }
        },
    ));
    let parts = parts
        .raw_route(WellKnown(inner.clone()))
        .raw_route(Endpoints { inner: inner.clone(), prefix: "/oauth/" });
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
        Box::pin(
            async move { inner.discovery.answer(&request.method, &request.rest).unwrap_or_else(not_found) },
        )
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
            let address = format!("{prefix}{}", request.rest);
            match address.strip_prefix("/oauth").unwrap_or(&address) {
                "/authorize" => page(&inner, request).await,
                "/token" => inner.program(&request, async || token::token(&inner, &request).await).await,
                "/revoke" => inner.program(&request, async || token::revoke(&inner, &request).await).await,
                "/introspect" => {
                    inner.program(&request, async || token::inspect(&inner, &request).await).await
                }
                "/register" => {
                    inner.program(&request, async || register::register(&inner.clients, &request)).await
                }
                _ => not_found(),
            }
        })
    }
}

/// Answers the endpoint for people.
async fn page(inner: &Arc<Inner>, request: RawRequest) -> RawAnswer {
    if !matches!(request.method.as_str(), "GET" | "HEAD" | "POST") {
        return wrong_method("GET, HEAD, POST");
    }
    let id = RequestId::new(inner.db.now(), &*inner.db.random());
    guarded(try_page(inner, request).await.unwrap_or_else(|error| {
        let cause = error.cause().map(ToString::to_string);
        tracing::error!(request_id = %id, cause, "an authorization failed");
        let message = format!("{} Request {id}", error.message());
        RawAnswer::status(error.code().status()).body("text/plain; charset=utf-8", message)
    }))
}

async fn try_page(inner: &Arc<Inner>, request: RawRequest) -> Result<RawAnswer> {
    // What answers an error.
    let shown = Visit::of(&inner.web, request.clone()).await?;
    let visit = Visit::of(&inner.web, request).await?;
    match authorize::answer(inner, visit).await {
        Ok(answer) => Ok(answer),
        Err(refusal) => authorize::failed(&shown, refusal),
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
