//! Guards for requests from this machine that no page of another origin made, and their responses.

use super::answer;
use crate::control_error::ControlError;
use actix_web::guard::GuardContext;
use actix_web::http::StatusCode;
use actix_web::http::header::{HOST, HeaderValue, ORIGIN};
use actix_web::web::Bytes;
use actix_web::{HttpResponse, ResponseError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::net::Ipv4Addr;

/// Returns whether the request's host is this machine, and no page of another origin made the request.
pub(super) fn is_local(context: &GuardContext<'_>) -> bool {
    let headers = &context.head().headers;
    let host = headers.get(HOST).and_then(|value| value.to_str().ok());
    let Some(host) = host else { return false };
    let name =
        host.rsplit_once(':').map_or(host, |(name, port)| if port.ends_with(']') { host } else { name });
    let is_loopback = name == "localhost"
        || name == "[::1]"
        || name.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback());
    let is_ours = |origin: &str| origin.strip_prefix("http://") == Some(host);
    is_loopback && headers.get(ORIGIN).is_none_or(|origin| origin.to_str().is_ok_and(is_ours))
}

/// Like [`is_local`], but also rejects navigation from other sites. Browsers state the site even for requests without
/// an origin.
pub(super) fn is_own(context: &GuardContext<'_>) -> bool {
    let site = context.head().headers.get("sec-fetch-site");
    let is_same = |site: &HeaderValue| matches!(site.as_bytes(), b"same-origin" | b"none");
    is_local(context) && site.is_none_or(is_same)
}

pub(super) type Done = Result<HttpResponse, ControlError>;

impl ResponseError for ControlError {
    fn status_code(&self) -> StatusCode {
        if self.is_missing { StatusCode::NOT_FOUND } else { StatusCode::BAD_REQUEST }
    }

    fn error_response(&self) -> HttpResponse {
        answer(self.status_code().as_u16(), &json!({ "error": { "message": self.message } }))
    }
}

pub(super) fn parsed<T: DeserializeOwned>(body: &Bytes) -> Result<T, ControlError> {
    serde_json::from_slice(body).map_err(|error| ControlError::invalid(error.to_string()))
}

pub(super) fn done(result: Result<impl Serialize, ControlError>) -> Done {
    result.map(|value| answer(200, &json!(value)))
}
