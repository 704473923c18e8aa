//! One handler for every operation.

use crate::BASE;
use actix_web::body::BodyStream;
use actix_web::http::StatusCode;
use actix_web::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use actix_web::web::{Bytes, BytesMut, Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use futures::StreamExt;
use model::{Code, Error, Result};
use operation::{Head, Pipeline, Response, ResponseBody};
use std::net::{IpAddr, Ipv4Addr};

/// The largest header block (decision 14).
const HEADER_BYTES: usize = 16 * 1024;
/// No operation takes a larger body.
const LARGEST_BODY: u64 = 26 * 1024 * 1024;

pub(crate) async fn handle(request: HttpRequest, payload: Payload, pipeline: Data<Pipeline>) -> HttpResponse {
    let headers = request.headers();
    let lookup = |name: &str| headers.get(name).map(HeaderValue::as_bytes);
    let uri = request.uri();
    let path = uri.path();
    let head = Head {
        method: request.method().as_str(),
        path: path.strip_prefix(BASE).unwrap_or(path),
        query: uri.query().unwrap_or_default(),
        peer: request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip()),
        headers: &lookup,
    };
    if let Err(error) = check_head(headers, path) {
        return to_http(pipeline.reject(&head, error));
    }
    let admitted = match pipeline.admit(&head).await {
        Ok(admitted) => admitted,
        Err(response) => return to_http(response),
    };
    match read_body(payload, admitted.body_limit()).await {
        Ok(body) => to_http(pipeline.run(admitted, &body).await),
        Err(error) => to_http(pipeline.reject_body(admitted, error)),
    }
}

fn check_head(headers: &HeaderMap, path: &str) -> Result<()> {
    check_header_size(headers)?;
    let announced = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|announced| announced > LARGEST_BODY) {
        return Err(too_large(LARGEST_BODY));
    }
    if !path.starts_with(BASE) {
        return Err(Error::new(Code::RouteNotFound, "The API lives under /api/v1."));
    }
    Ok(())
}

/// Refuses header blocks that are too large.
pub(crate) fn check_header_size(headers: &HeaderMap) -> Result<()> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > HEADER_BYTES {
        return Err(Error::invalid("headers", format_args!("must not be larger than {HEADER_BYTES} bytes")));
    }
    Ok(())
}

/// Reads a body of at most `limit` bytes; of a larger one no more than that is held.
pub(crate) async fn read_body(mut payload: Payload, limit: usize) -> Result<Bytes> {
    let mut body = BytesMut::new();
    while let Some(chunk) = payload.next().await {
        let chunk =
            chunk.map_err(|error| Error::invalid("body", format_args!("could not be read: {error}")))?;
        if body.len() + chunk.len() > limit {
            return Err(too_large(limit));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

fn too_large(limit: impl std::fmt::Display) -> Error {
    Error::new(
        Code::PayloadTooLarge,
        format!("The body is larger than the {limit} bytes that are allowed here."),
    )
}

fn to_http(response: Response) -> HttpResponse {
    let status = StatusCode::from_u16(response.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = HttpResponse::new(status);
    let headers = answer.headers_mut();
    let content_type = match &response.body {
        ResponseBody::Json(_) => "application/json",
        ResponseBody::Events(_) => "text/event-stream; charset=utf-8",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for (name, value) in response.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    match response.body {
        ResponseBody::Json(text) => answer.set_body(Bytes::from(text)).map_into_boxed_body(),
        ResponseBody::Events(events) => answer.set_body(BodyStream::new(events)).map_into_boxed_body(),
    }
}
