//! CORS: origins whose pages may call the API from a browser.
//!
//! Requests are authenticated by a key and never by a cookie. So a page of an allowed origin can only use a key that
//! it has.

use actix_cors::Cors;

/// How long browsers may cache the response to a preflight request, in seconds.
const REMEMBERED: usize = 600;

/// Returns the middleware that allows pages of these origins (`https://app.example.com`) to call the API. `*` allows
/// all origins.
pub(crate) fn cors(origins: &[String]) -> Cors {
    let allowed = if origins.iter().any(|origin| origin == "*") {
        Cors::default().allow_any_origin().send_wildcard()
    } else {
        origins.iter().fold(Cors::default(), |cors, origin| cors.allowed_origin(origin))
    };
    allowed.allow_any_method().allow_any_header().expose_any_header().max_age(REMEMBERED)
}
