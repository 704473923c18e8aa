//! Routes outside the API, where a third party defines the request (such as received webhooks) or the response is not
//! JSON (such as files). They have no API key, no envelope and no request log: each route authenticates its own
//! requests.

use crate::BoxFuture;
use bytes::Bytes;
use futures::Stream;
use std::net::IpAddr;
use std::pin::Pin;

/// A handler for all addresses under a prefix, or for one address. A group implements it, and the binary passes it to the
/// HTTP server.
pub trait RawRoute: Send + Sync {
    /// Returns the prefix of its addresses, with a slash at both ends, such as `/hooks/`. Without the slash at its end, it
    /// is a single address, such as `/sign-in`. It is outside `/api/v1`.
    fn prefix(&self) -> &'static str;

    /// Returns the maximum size of a body in bytes. A larger body is answered with 413 and does not reach the route.
    fn body_limit(&self) -> usize {
        1 << 20
    }

    /// Answers a request of any method.
    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer>;
}

/// A request as it was received.
#[derive(Debug, Clone)]
pub struct RawRequest {
    /// The method as it was sent.
    pub method: String,
    /// The path after the prefix, not decoded. Empty for a route of a single address.
    pub rest: String,
    /// The query, not decoded.
    pub query: String,
    /// The headers, with names in lower case and values as they were sent.
    pub headers: Vec<(String, Bytes)>,
    /// The address of the peer.
    pub peer: IpAddr,
    /// The complete body.
    pub body: Bytes,
}

impl RawRequest {
    /// Returns the first value of a header, if it is valid UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(other, _)| other == name)?;
        std::str::from_utf8(value).ok()
    }
}

/// The answer to a [`RawRequest`].
pub struct RawAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The headers, with names in lower case. Headers that HTTP forbids are left out.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: RawBody,
}

/// Chunks that are created as the receiver reads them. An error breaks the connection, so that the receiver does not
/// take an incomplete body for a complete one.
pub type Chunks = Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>;

/// The body of a [`RawAnswer`].
pub enum RawBody {
    /// Bytes in memory.
    Whole(Bytes),
    /// Any number of bytes, in constant memory.
    Chunks(Chunks),
}

impl RawAnswer {
    /// Creates an answer without headers and body.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: RawBody::Whole(Bytes::new()) }
    }

    /// Adds a header, whose name must be in lower case.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, content_type: &str, bytes: impl Into<Bytes>) -> Self {
        self.body = RawBody::Whole(bytes.into());
        self.header("content-type", content_type)
    }

    /// Sets a body that is created while it is sent. A header `content-length` can state its length, if it is known.
    #[must_use]
    pub fn chunks(
        mut self,
        content_type: &str,
        chunks: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    ) -> Self {
        self.body = RawBody::Chunks(Box::pin(chunks));
        self.header("content-type", content_type)
    }
}
