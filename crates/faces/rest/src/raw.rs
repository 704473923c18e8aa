//! Routes outside the API, which groups declare as [`RawRoute`].

use crate::rest::{check_header_size, content_length, read_body};
use actix_web::body::BoxBody;
use actix_web::http::StatusCode;
use actix_web::http::header::{HeaderName, HeaderValue};
use actix_web::web::{self, Payload};
use actix_web::{HttpRequest, HttpResponse, Scope};
use futures::FutureExt;
use model::Error;
use operation::{RawAnswer, RawBody, RawRequest, RawRoute};
use std::net::{IpAddr, Ipv4Addr};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

/// Adds a route at its prefix, or at its one address.
pub(crate) fn mount(beside: Scope, route: &Arc<dyn RawRoute>) -> Scope {
    let route = route.clone();
    let rest = if route.prefix().ends_with('/') { "{rest:.*}" } else { "" };
    let pattern = format!("{}{rest}", route.prefix());
    beside.route(
        &pattern,
        web::to(move |request: HttpRequest, payload: Payload| {
            let route = route.clone();
            async move {
                // The panic hook has logged the message.
                let answer = AssertUnwindSafe(answer(&request, payload, &*route)).catch_unwind().await;
                to_http(answer.unwrap_or_else(|_| refusal(&Error::internal("a panic"))))
            }
        }),
    )
}

async fn answer(request: &HttpRequest, payload: Payload, route: &dyn RawRoute) -> RawAnswer {
    match read(request, payload, route).await {
        Ok(request) => route.answer(request).await,
        Err(error) => refusal(&error),
    }
}

async fn read(request: &HttpRequest, payload: Payload, route: &dyn RawRoute) -> model::Result<RawRequest> {
    check_header_size(request.headers())?;
    let announced = content_length(request.headers());
    let body = read_body(payload, announced, route.body_limit()).await?;
    Ok(RawRequest { body, ..head(request, route.prefix()) })
}

/// Returns a request without its body.
pub(crate) fn head(request: &HttpRequest, prefix: &str) -> RawRequest {
    let headers = request.headers().iter();
    let headers = headers
        .map(|(name, value)| (name.as_str().to_owned(), bytes::Bytes::copy_from_slice(value.as_bytes())));
    let path = request.uri().path();
    RawRequest {
        method: request.method().as_str().to_owned(),
        rest: path.strip_prefix(prefix).unwrap_or_default().to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        headers: headers.collect(),
        peer: request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip()),
        body: bytes::Bytes::new(),
    }
}

/// Returns an error as plain text, because clients of these routes do not expect the API's error format.
pub(crate) fn refusal(error: &Error) -> RawAnswer {
    RawAnswer::status(error.code().status()).body("text/plain; charset=utf-8", error.message().to_owned())
}

pub(crate) fn to_http(answer: RawAnswer) -> HttpResponse<BoxBody> {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = HttpResponse::build(status);
    let mut length = None;
    for (name, value) in answer.headers {
        // actix writes this header itself, and uses chunked encoding unless it knows the length.
        if name == "content-length" {
            length = value.parse().ok();
            continue;
        }
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.append_header((name, value));
        }
    }
    match answer.body {
        RawBody::Whole(bytes) => response.body(bytes),
        RawBody::Chunks(chunks) => {
            if let Some(length) = length {
                response.no_chunking(length);
            }
            response.streaming(chunks)
        }
    }
}
