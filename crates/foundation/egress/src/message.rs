//! Requests, responses and their limits.

use std::fmt;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::time::{Instant, timeout_at};
use url::Url;

use crate::coding::{self, Coding, Decoder};
use crate::error::Error;
use crate::url_rules::UrlRules;

const MAX_HEADERS: usize = 64;
const MAX_HEADER_BYTES: usize = 32 * 1024;

pub(crate) const TOTAL: Error = Error::Timeout { reason: "no complete response in time" };
const BODY: Error = Error::TooLarge { reason: "the body is larger than accepted" };

/// The limits of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Time until a connection is available, including lookup and TLS handshake, for each hop. At most 60 s.
    pub connect: Duration,
    /// Time until the last byte of the response, over all hops.
    pub total: Duration,
    /// The maximum size of the response's body after decoding, in bytes.
    pub max_response_bytes: usize,
    /// How to treat a larger body.
    pub oversize: Oversize,
    /// Whether to decode a body with a `Content-Encoding` (`gzip`, `deflate`). Otherwise it is returned as
    /// transferred.
    pub decode: bool,
    /// The number of redirects to follow. With 0, a redirect is returned like any other response; otherwise, one
    /// redirect more is an error.
    pub max_redirects: u8,
    /// The URLs that are accepted, on every hop.
    pub url: UrlRules,
}

impl Default for Limits {
    /// Returns 5 s to connect, 30 s in total, 1 MiB or an error, decoding on, no redirects, `http` or `https` on
    /// usual ports.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            total: Duration::from_secs(30),
            max_response_bytes: 1024 * 1024,
            oversize: Oversize::Fail,
            decode: true,
            max_redirects: 0,
            url: UrlRules::default(),
        }
    }
}

/// The treatment of a body beyond [`Limits::max_response_bytes`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Oversize {
    /// Fail with [`Error::TooLarge`].
    #[default]
    Fail,
    /// Keep the bytes up to the limit and drop the rest. If the body cannot be decoded, keep the bytes before the
    /// error.
    Truncate,
}

/// A request that is not yet checked.
#[derive(Clone)]
pub struct Request {
    /// Any method except `CONNECT` and `TRACE`.
    pub method: Method,
    /// The URL as the tenant wrote it.
    pub url: String,
    /// Names and values. Headers that frame the message (`Host`, `Content-Length`, …) are refused.
    pub headers: Vec<(String, String)>,
    /// The body, or empty.
    pub body: Bytes,
    /// The limits.
    pub limits: Limits,
}

impl Request {
    /// Creates a request without headers and body, with default limits.
    pub fn new(method: Method, url: impl Into<String>) -> Self {
        Self { method, url: url.into(), headers: Vec::new(), body: Bytes::new(), limits: Limits::default() }
    }

    /// Creates a `GET` request.
    pub fn get(url: impl Into<String>) -> Self {
        Self::new(Method::GET, url)
    }

    /// Creates a `POST` request. Set `Content-Type` with [`header`](Self::header).
    pub fn post(url: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::new(Method::POST, url).body(body)
    }

    /// Adds a header. Existing headers with the same name stay.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// Omits the URL, header values and body: they contain secrets of tenants.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("body_bytes", &self.body.len())
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Returns whether a header frames the message, routes it or controls the connection. A request may not set these
/// headers.
#[must_use]
pub fn frames_message(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "host"
            | "content-length"
            | "transfer-encoding"
            | "connection"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
            | "proxy-authorization"
            | "te"
            | "trailer"
            | "upgrade"
            | "expect"
            | "http2-settings"
    )
}

/// Returns whether a header says nothing about the sender. All other headers are treated as secrets: they are dropped
/// when a redirect leaves the origin, and kept out of HTTP/2's compression tables.
pub(crate) fn is_harmless(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "accept"
            | "accept-encoding"
            | "accept-language"
            | "content-encoding"
            | "content-type"
            | "range"
            | "user-agent"
    )
}

/// Checks and converts a caller's headers.
pub(crate) fn header_map(headers: &[(String, String)]) -> Result<HeaderMap, Error> {
    let invalid = |reason| Error::InvalidRequest { reason };
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    // Tenants choose these headers, so bound what a request can send.
    if headers.len() > MAX_HEADERS || bytes > MAX_HEADER_BYTES {
        return Err(invalid("more than 64 headers or 32 KiB of them"));
    }
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let name =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid("a header's name is malformed"))?;
        if frames_message(&name) {
            return Err(invalid("a header is set that belongs to the connection"));
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| invalid("a header's value is malformed"))?;
        value.set_sensitive(!is_harmless(&name));
        map.append(name, value);
    }
    Ok(map)
}

/// A response whose body was read completely or up to its limit.
#[derive(Clone)]
#[non_exhaustive]
pub struct Response {
    /// The status, 200 to 999.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, decoded.
    pub body: Bytes,
    /// Whether the body was cut ([`Oversize::Truncate`]).
    pub truncated: bool,
    /// The URL of this response: the request's own, or the target of the last redirect.
    pub final_url: Url,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .field("body_bytes", &self.body.len())
            .field("truncated", &self.truncated)
            .finish_non_exhaustive()
    }
}

/// A response whose body is still being received. Dropping it cancels the rest.
pub struct Streaming {
    /// The status, 200 to 999.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The URL of this response: the request's own, or the target of the last redirect.
    pub final_url: Url,
    /// `None` after the end, the limit or an error.
    body: Option<Incoming>,
    /// The decoder, with the bytes that have arrived but are not yet decoded.
    coded: Option<(Decoder, Bytes)>,
    remaining: usize,
    oversize: Oversize,
    truncated: bool,
    deadline: Instant,
}

impl fmt::Debug for Streaming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streaming").field("status", &self.status).finish_non_exhaustive()
    }
}

impl Streaming {
    pub(crate) fn new(
        response: http::Response<Incoming>,
        final_url: Url,
        limits: &Limits,
        deadline: Instant,
    ) -> Result<Self, Error> {
        let (mut head, mut body) = (response, None);
        let coding = match limits.decode {
            true => Coding::of(head.status(), head.headers()),
            false => Coding::Plain,
        };
        let mut truncated = false;
        let coded = match coding {
            Coding::Plain => None,
            Coding::Coded(decoder) => {
                // These headers describe the encoded body, but the caller gets the decoded one.
                head.headers_mut().remove(header::CONTENT_ENCODING);
                head.headers_mut().remove(header::CONTENT_LENGTH);
                Some((decoder, Bytes::new()))
            }
            // Without a body there is nothing to decode.
            Coding::Unknown if head.body().is_end_stream() => None,
            Coding::Unknown if limits.oversize == Oversize::Fail => return Err(coding::unknown()),
            Coding::Unknown => {
                truncated = true;
                None
            }
        };
        let (head, incoming) = head.into_parts();
        // Refuse an announced size beyond the limit without reading the body. (A HEAD response announces a body that
        // does not come; its hint is 0 here.)
        let announced = incoming.size_hint().lower();
        if coded.is_none()
            && limits.oversize == Oversize::Fail
            && announced > limits.max_response_bytes as u64
        {
            return Err(BODY);
        }
        if !truncated {
            body = Some(incoming);
        }
        Ok(Self {
            status: head.status.as_u16(),
            headers: head.headers,
            final_url,
            body,
            coded,
            remaining: limits.max_response_bytes,
            oversize: limits.oversize,
            truncated,
            deadline,
        })
    }

    /// Returns the next part of the body, or `None` at its end or after an error. Cancel safe.
    ///
    /// # Errors
    /// [`Error::Timeout`], [`Error::TooLarge`] or [`Error::Http`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        while self.body.is_some() {
            let next = match self.decoded() {
                Ok(None) => self.received().await,
                decoded => decoded,
            };
            let Some(mut data) = next.or_else(|error| self.fail(error))? else { continue };
            if data.len() > self.remaining {
                self.body = None;
                if self.oversize == Oversize::Fail {
                    return Err(BODY);
                }
                self.truncated = true;
                data.truncate(self.remaining);
            }
            self.remaining -= data.len();
            if !data.is_empty() {
                return Ok(Some(data));
            }
        }
        Ok(None)
    }

    /// Receives the next part of the body. For a coded body, stores it to be decoded and returns `None`.
    async fn received(&mut self) -> Result<Option<Bytes>, Error> {
        let Some(body) = &mut self.body else { return Ok(None) };
        let frame = match timeout_at(self.deadline, body.frame()).await {
            Ok(Some(frame)) => frame.map_err(|error| Error::from_http(&error))?,
            Ok(None) => {
                self.body = None;
                return self.coded.as_mut().map_or(Ok(()), |(decoder, _)| decoder.finish()).map(|()| None);
            }
            Err(_) => return Err(TOTAL),
        };
        // Trailers are ignored.
        let data = frame.into_data().ok();
        match (&mut self.coded, data) {
            (Some((_, waiting)), Some(data)) => {
                *waiting = data;
                Ok(None)
            }
            (_, data) => Ok(data),
        }
    }

    /// Decodes and returns the next piece of the received data.
    fn decoded(&mut self) -> Result<Option<Bytes>, Error> {
        let Some((decoder, waiting)) = &mut self.coded else { return Ok(None) };
        if waiting.is_empty() {
            return Ok(None);
        }
        let piece = waiting.split_to(waiting.len().min(coding::PIECE));
        decoder.decode(&piece).map(|decoded| Some(decoded.into()))
    }

    /// Ends the body with an error. With [`Oversize::Truncate`], a decoding error only truncates it.
    fn fail(&mut self, error: Error) -> Result<Option<Bytes>, Error> {
        self.body = None;
        if self.oversize == Oversize::Truncate && coding::is_of_coding(error) {
            self.truncated = true;
            return Ok(None);
        }
        Err(error)
    }

    /// Returns whether the body was truncated ([`Oversize::Truncate`]). Final once [`chunk`](Self::chunk) returned
    /// `None`.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// Lowers the limit for the rest of the body. It never raises the request's own limit.
    #[must_use]
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.remaining = self.remaining.min(bytes);
        self
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    pub async fn collect(mut self) -> Result<Response, Error> {
        let first = self.chunk().await?.unwrap_or_default();
        let body = match self.chunk().await? {
            None => first,
            Some(second) => {
                let mut whole = BytesMut::from(first);
                whole.extend_from_slice(&second);
                while let Some(part) = self.chunk().await? {
                    whole.extend_from_slice(&part);
                }
                whole.freeze()
            }
        };
        Ok(Response {
            status: self.status,
            headers: self.headers,
            body,
            truncated: self.truncated,
            final_url: self.final_url,
        })
    }
}
