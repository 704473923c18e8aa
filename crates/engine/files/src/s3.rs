//! Files in an S3-compatible object store.
//!
//! `object_store` implements the protocol, and its HTTP requests go through `egress`. So there is one HTTP client,
//! one crypto provider, and no way around the rules for outbound addresses. A store on a private network needs a rule
//! in `SVC_ALLOW_OUTBOUND`, unless it is the configured endpoint, which is allowed automatically.

use crate::objects::Objects;
use async_trait::async_trait;
use bytes::Bytes;
use egress::{Connector, Limits, Request, Streaming};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use http_body::Frame;
use model::{Error, Result};
use object_store::aws::AmazonS3Builder;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::prefix::PrefixStore;
use object_store::{ClientOptions, RetryConfig};
use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// Timeout of a request, including its response body. Long, because a file is downloaded only as fast as its client
/// reads.
const REQUEST: Duration = Duration::from_secs(3600);

/// How long failed requests are retried.
const RETRY: Duration = Duration::from_secs(20);

/// An S3-compatible object store.
#[derive(Clone)]
pub struct S3Settings {
    /// The bucket.
    pub bucket: String,
    /// The prefix of all object names; may be empty.
    pub prefix: String,
    /// The URL of the server, if it is not Amazon's.
    pub endpoint: Option<String>,
    /// The region.
    pub region: String,
    /// The ID of the access key.
    pub access_key_id: String,
    /// The secret of the access key.
    pub secret_access_key: String,
    /// The session token of temporary keys.
    pub session_token: Option<String>,
}

/// Creates a store in an S3-compatible service. `connector` must be allowed to contact it.
///
/// # Errors
/// `internal_error` if the settings are invalid.
pub fn objects_in_s3(settings: S3Settings, connector: Connector) -> Result<Objects> {
    let mut builder = AmazonS3Builder::new()
        .with_bucket_name(settings.bucket)
        .with_region(settings.region)
        .with_access_key_id(settings.access_key_id)
        .with_secret_access_key(settings.secret_access_key)
        .with_allow_http(true)
        .with_retry(RetryConfig { max_retries: 3, retry_timeout: RETRY, ..RetryConfig::default() })
        .with_http_connector(Outbound(connector));
    if let Some(endpoint) = settings.endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(token) = settings.session_token {
        builder = builder.with_token(token);
    }
    let store = builder.build().map_err(Error::internal)?;
    if settings.prefix.is_empty() {
        return Ok(Objects::of(store));
    }
    Ok(Objects::of(PrefixStore::new(store, settings.prefix)))
}

/// An HTTP client for `object_store` on top of the guarded connector.
#[derive(Clone)]
struct Outbound(Connector);

impl fmt::Debug for Outbound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outbound")
    }
}

impl HttpConnector for Outbound {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Outbound {
    async fn call(&self, request: HttpRequest) -> std::result::Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let mut bytes = Vec::with_capacity(body.content_length());
        let mut body = std::pin::pin!(body);
        while let Some(frame) =
            std::future::poll_fn(|cx| http_body::Body::poll_frame(body.as_mut(), cx)).await
        {
            bytes.extend_from_slice(&frame?.into_data().unwrap_or_default());
        }
        // Return objects as they were stored, even if their metadata declares a content coding.
        let limits =
            Limits { total: REQUEST, max_response_bytes: usize::MAX, decode: false, ..Limits::default() };
        let mut outbound = Request::new(head.method, head.uri.to_string()).body(bytes).limits(limits);
        for (name, value) in &head.headers {
            if egress::frames_message(name) {
                continue;
            }
            let value = value.to_str().map_err(|error| HttpError::new(HttpErrorKind::Decode, error))?;
            outbound = outbound.header(name.as_str(), value);
        }
        let response = self.0.stream(outbound).await.map_err(failure)?;
        let mut answer = http::Response::builder().status(response.status);
        if let Some(headers) = answer.headers_mut() {
            headers.clone_from(&response.headers);
        }
        answer
            .body(HttpResponseBody::new(Receiving(Mutex::new(chunks(response)))))
            .map_err(|error| HttpError::new(HttpErrorKind::Decode, error))
    }
}

fn failure(error: egress::Error) -> HttpError {
    let kind = match error {
        egress::Error::Connect { .. } | egress::Error::Resolve => HttpErrorKind::Connect,
        egress::Error::Timeout { .. } => HttpErrorKind::Timeout,
        egress::Error::Http { .. } => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}

type Chunks = BoxStream<'static, std::result::Result<Bytes, HttpError>>;

fn chunks(response: Streaming) -> Chunks {
    stream::try_unfold(response, |mut response| async move {
        Ok(response.chunk().await.map_err(failure)?.map(|chunk| (chunk, response)))
    })
    .boxed()
}

/// The body of a response. `object_store` requires bodies to be `Sync`, hence the lock, which is never contended.
struct Receiving(Mutex<Chunks>);

impl http_body::Body for Receiving {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, HttpError>>> {
        let chunks = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        chunks.poll_next_unpin(cx).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}
