//! `/`: leads browsers to the dashboard. For other clients a page that describes the service and links to its documentation.

use crate::Home;
use actix_web::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, VARY, X_CONTENT_TYPE_OPTIONS,
};
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};

/// The page has an inline style and loads nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// The placeholder for the demo's chat.
const CHAT_SLOT: &str = "<!-- chat -->";
const VERSION_SLOT: &str = "<!-- version -->";

pub(crate) async fn page(request: HttpRequest, home: Data<Home>) -> HttpResponse {
    // Browsers ask for pages in so many words, and their users want the dashboard. The address is relative, because a proxy
    // may serve this page below a path.
    let accepted = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepted.contains("text/html") {
        return HttpResponse::Found()
            .insert_header((LOCATION, "app/"))
            .insert_header((VARY, "accept"))
            .insert_header((CACHE_CONTROL, "no-cache"))
            .finish();
    }
    // The URL consists of `http://` and a socket address, so it needs no HTML escapes.
    let chat = home.chat.as_deref().map(|address| {
        format!("<li><a href=\"{address}\">Chat</a>: write to the demo's agent as a customer</li>")
    });
    let page = include_str!("../home.html")
        .replace(CHAT_SLOT, &chat.unwrap_or_default())
        .replace(VERSION_SLOT, home.version);
    HttpResponse::Ok()
        .content_type("text/html; charset=utf-8")
        .insert_header((CACHE_CONTROL, "no-cache"))
        .insert_header((VARY, "accept"))
        .insert_header((CONTENT_SECURITY_POLICY, POLICY))
        .insert_header((X_CONTENT_TYPE_OPTIONS, "nosniff"))
        .body(page)
}
