//! Cross-origin requests: which pages of other origins may call the API from a browser.
//!
//! Requests carry a key and never a cookie, so a page of an allowed origin can do what its own key can do, and nothing more.

use actix_cors::Cors;

/// For how long browsers remember the answer to a preflight, in seconds.
const REMEMBERED: usize = 600;

/// Returns the middleware that lets pages of these origins (`https://app.example.com`) call the API. `*` allows all origins.
pub(crate) fn cors(origins: &[String]) -> Cors {
    let allowed = if origins.iter().any(|origin| origin == "*") {
        Cors::default().allow_any_origin().send_wildcard()
    } else {
        origins.iter().fold(Cors::default(), |cors, origin| cors.allowed_origin(origin))
    };
    allowed.allow_any_method().allow_any_header().expose_any_header().max_age(REMEMBERED)
}
