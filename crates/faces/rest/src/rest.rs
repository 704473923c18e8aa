//! The handler of all operations.

use crate::{BASE, HEADER_BYTES, gzip};
use actix_web::body::BodyStream;
use actix_web::error::PayloadError;
use actix_web::http::StatusCode;
use actix_web::http::header::{
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, VARY,
};
use actix_web::web::{Bytes, BytesMut, Data, Payload};
use actix_web::{HttpRequest, HttpResponse};
use flate2::Compression;
use futures::{Stream, StreamExt, stream};
use model::{Code, Error, Result};
use operation::{Audience, Head, Pipeline, Response, ResponseBody, body_too_large};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// The maximum body limit of any operation.
const LARGEST_BODY: u64 = 26 * 1024 * 1024;
/// The minimum body limit of any operation.
const ANY_BODY: u64 = 1024 * 1024;
/// Timeout between two chunks of a body.
const SILENCE: Duration = Duration::from_secs(30);
/// Up to this size a body's buffer grows as needed. Beyond it, the announced size is reserved. A client gets no large
/// buffer merely by announcing a large body.
const SMALL_BODY: usize = 64 * 1024;
/// The number of chunks buffered for the operation that reads them. actix reads chunks of up to 32 KiB.
const CHUNKS_AHEAD: usize = 16;
/// From this size on a response is compressed for clients that accept it. A smaller one fits into a few packets anyway.
const LARGE_ANSWER: usize = 8 * 1024;
/// The minimum transfer rate of a body, in bytes per second.
const SLOWEST: u64 = 16 * 1024;

pub(crate) async fn handle(request: HttpRequest, payload: Payload, pipeline: Data<Pipeline>) -> HttpResponse {
    let headers = request.headers();
    let lookup = |name: &str| {
        // A header that is sent twice is ambiguous and ignored.
        let is_twice = name == "traceparent" && headers.get_all(name).count() > 1;
        headers.get(name).filter(|_| !is_twice).map(HeaderValue::as_bytes)
    };
    let uri = request.uri();
    let path = uri.path();
    let head = Head {
        method: request.method().as_str(),
        path: path.strip_prefix(BASE).unwrap_or(path),
        query: uri.query().unwrap_or_default(),
        peer: request.peer_addr().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.ip()),
        audience: Audience::Rest,
        headers: &lookup,
    };
    if let Err(error) = check_head(headers, path, &head, &pipeline) {
        return to_http(&request, pipeline.reject(&head, error));
    }
    let admitted = match pipeline.admit(&head).await {
        Ok(admitted) => admitted,
        Err(response) => return to_http(&request, response),
    };
    if admitted.is_streamed() {
        let limit = admitted.body_limit();
        let (sender, mut arriving) = mpsc::channel(CHUNKS_AHEAD);
        let chunks = stream::poll_fn(move |cx| arriving.poll_recv(cx));
        let (response, ()) = futures::join!(
            pipeline.run_streamed(admitted, Box::pin(chunks)),
            forward(payload, limit, sender)
        );
        return to_http(&request, response);
    }
    match read_body(payload, content_length(request.headers()), admitted.body_limit()).await {
        Ok(body) => to_http(&request, pipeline.run(admitted, &body).await),
        Err(error) => to_http(&request, pipeline.reject_body(admitted, error)),
    }
}

fn check_head(headers: &HeaderMap, path: &str, head: &Head<'_>, pipeline: &Pipeline) -> Result<()> {
    check_header_size(headers)?;
    if headers.get_all(CONTENT_TYPE).count() > 1 {
        return Err(Error::invalid("Content-Type", "must be sent once"));
    }
    if let Some(announced) = content_length(headers).filter(|announced| *announced > ANY_BODY) {
        // If the route does not exist, report that instead of the size.
        let limit = pipeline.body_limit(head.method, head.path).map_or(LARGEST_BODY, |limit| limit as u64);
        if announced > limit {
            return Err(body_too_large(limit));
        }
    }
    if !path.starts_with(BASE) {
        return Err(Error::new(Code::RouteNotFound, "The API is at /api/v1."));
    }
    Ok(())
}

/// Returns the announced size of a body.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Returns an error if the headers are too large.
pub(crate) fn check_header_size(headers: &HeaderMap) -> Result<()> {
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > HEADER_BYTES {
        return Err(Error::invalid("headers", format_args!("must not be larger than {HEADER_BYTES} bytes")));
    }
    Ok(())
}

/// Reads a body of at most `limit` bytes, and never buffers more. Fails if the body stalls or is too slow.
pub(crate) async fn read_body<S>(mut payload: S, announced: Option<u64>, limit: usize) -> Result<Bytes>
where
    S: Stream<Item = std::result::Result<Bytes, PayloadError>> + Unpin,
{
    let mut body = BytesMut::new();
    let deadline = deadline(limit);
    while let Some(chunk) = next_chunk(&mut payload, deadline).await? {
        if body.len() + chunk.len() > limit {
            return Err(body_too_large(limit));
        }
        if body.len() + chunk.len() > SMALL_BODY.max(body.capacity()) {
            // Reserve the whole size at once. A buffer that doubles is copied repeatedly and ends larger than the
            // body.
            let announced = announced.and_then(|announced| usize::try_from(announced).ok()).unwrap_or(0);
            body.reserve(announced.min(limit).saturating_sub(body.len()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Forwards a body of at most `limit` bytes to the operation as it arrives. After the operation has stopped reading,
/// the rest is read and dropped, because clients read the response only after they have sent everything.
async fn forward<S>(mut payload: S, limit: usize, sender: mpsc::Sender<Result<Bytes>>)
where
    S: Stream<Item = std::result::Result<Bytes, PayloadError>> + Unpin,
{
    let (mut received, deadline) = (0, deadline(limit));
    loop {
        let chunk = match next_chunk(&mut payload, deadline).await {
            Ok(None) => return,
            Ok(Some(chunk)) => {
                received += chunk.len();
                if received > limit { Err(body_too_large(limit)) } else { Ok(chunk) }
            }
            Err(error) => Err(error),
        };
        let is_last = chunk.is_err();
        // This fails if the operation has stopped reading.
        let _ = sender.send(chunk).await;
        if is_last {
            return;
        }
    }
}

fn deadline(limit: usize) -> Instant {
    Instant::now() + SILENCE + Duration::from_secs(limit as u64 / SLOWEST)
}

async fn next_chunk<S>(payload: &mut S, deadline: Instant) -> Result<Option<Bytes>>
where
    S: Stream<Item = std::result::Result<Bytes, PayloadError>> + Unpin,
{
    let silent_until = (Instant::now() + SILENCE).min(deadline);
    match timeout_at(silent_until, payload.next()).await {
        Err(_) => Err(Error::invalid("body", "was not received in time")),
        Ok(None) => Ok(None),
        Ok(Some(Ok(chunk))) => Ok(Some(chunk)),
        Ok(Some(Err(_))) => Err(Error::invalid("body", "must be complete, with valid HTTP/1.1 chunks")),
    }
}

fn to_http(request: &HttpRequest, response: Response) -> HttpResponse {
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
        ResponseBody::Json(text) if text.len() >= LARGE_ANSWER => {
            headers.append(VARY, HeaderValue::from_static("accept-encoding"));
            let is_accepted = gzip::is_accepted(request);
            // The fastest level: it takes less time than the bytes that it saves take on a line of 100 Mbit/s.
            let compressed =
                is_accepted.then(|| gzip::compressed(text.as_bytes(), Compression::fast())).flatten();
            if compressed.is_some() {
                headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            }
            answer.set_body(compressed.unwrap_or_else(|| Bytes::from(text))).map_into_boxed_body()
        }
        ResponseBody::Json(text) => answer.set_body(Bytes::from(text)).map_into_boxed_body(),
        ResponseBody::Events(events) => answer.set_body(BodyStream::new(events)).map_into_boxed_body(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a body of `chunks` chunks, each after a pause.
    fn slowly(
        chunks: usize,
        bytes: usize,
        pause: Duration,
    ) -> impl Stream<Item = std::result::Result<Bytes, PayloadError>> + Unpin {
        Box::pin(stream::iter(0..chunks).then(move |_| async move {
            tokio::time::sleep(pause).await;
            Ok(Bytes::from(vec![b'x'; bytes]))
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_stops_coming_is_given_up() {
        let patient = Duration::from_secs(29);
        assert_eq!(read_body(slowly(3, 10, patient), None, 1 << 20).await.unwrap().len(), 30);
        let began = Instant::now();
        let error = read_body(slowly(1, 10, Duration::from_secs(3600)), None, 1 << 20).await.unwrap_err();
        assert_eq!((error.code(), error.param_name()), (Code::ValidationError, Some("body")));
        assert_eq!(began.elapsed(), SILENCE);
        // A byte now and then does not keep the connection open forever.
        let began = Instant::now();
        assert!(read_body(slowly(1000, 1, patient), None, 1 << 20).await.is_err());
        assert_eq!(began.elapsed(), SILENCE + Duration::from_secs(64));
    }

    #[tokio::test]
    async fn no_more_than_the_limit_is_held() {
        let fits = read_body(slowly(4, 25, Duration::ZERO), Some(100), 100).await;
        assert_eq!(fits.unwrap().len(), 100);
        let error = read_body(slowly(1, 101, Duration::ZERO), None, 100).await.unwrap_err();
        assert_eq!(error.code(), Code::PayloadTooLarge);
    }

    #[tokio::test]
    async fn what_is_announced_decides_nothing() {
        for announced in [None, Some(0), Some(70_000), Some(200_000), Some(u64::MAX)] {
            let body = read_body(slowly(20, 10_000, Duration::ZERO), announced, 1 << 20).await.unwrap();
            assert_eq!(body.len(), 200_000, "{announced:?}");
        }
    }
}
