//! Addresses beside the API: where somebody else decides what a request looks like, such as received webhooks, or where
//! an answer is no JSON, such as files. No key, no envelope, no request log: a route guards itself.

use crate::BoxFuture;
use bytes::Bytes;
use futures::Stream;
use std::net::IpAddr;
use std::pin::Pin;

/// What is at all addresses under a prefix. Implemented by a group, handed to the HTTP server by the binary.
pub trait RawRoute: Send + Sync {
    /// The beginning of its addresses, with a slash at both ends, such as `/hooks/`. It is outside `/api/v1`.
    fn prefix(&self) -> &'static str;

    /// The largest body in bytes; a larger one is a 413 that the route does not see.
    fn body_limit(&self) -> usize {
        1 << 20
    }

    /// Answers a request of any method.
    fn answer(&self, request: RawRequest) -> BoxFuture<RawAnswer>;
}

/// A request as it came.
#[derive(Debug, Clone)]
pub struct RawRequest {
    /// The method, as sent.
    pub method: String,
    /// The path behind the prefix, not decoded.
    pub rest: String,
    /// The query, not decoded.
    pub query: String,
    /// Names in lower case, and values as they came.
    pub headers: Vec<(String, Bytes)>,
    /// Who is connected.
    pub peer: IpAddr,
    /// The whole body.
    pub body: Bytes,
}

impl RawRequest {
    /// A header's first value, where it is UTF-8.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(other, _)| other == name)?;
        std::str::from_utf8(value).ok()
    }
}

/// The answer to a [`RawRequest`].
pub struct RawAnswer {
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case, and values. Those that HTTP forbids are left out.
    pub headers: Vec<(String, String)>,
    /// What follows them.
    pub body: RawBody,
}

/// Chunks that are made as the receiver takes them. An error breaks the connection off, so that what has arrived is
/// not taken for the whole.
pub type Chunks = Pin<Box<dyn Stream<Item = std::io::Result<Bytes>> + Send>>;

/// The body of an answer.
pub enum RawBody {
    /// Bytes that are there.
    Whole(Bytes),
    /// Any number of bytes in constant memory.
    Chunks(Chunks),
}

impl RawAnswer {
    /// An answer without body and headers.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: RawBody::Whole(Bytes::new()) }
    }

    /// With a header; its name is in lower case.
    #[must_use]
    pub fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// With a body.
    #[must_use]
    pub fn body(mut self, content_type: &str, bytes: impl Into<Bytes>) -> Self {
        self.body = RawBody::Whole(bytes.into());
        self.header("content-type", content_type)
    }

    /// With a body that is made as it is sent. Where its length is known, a header `content-length` tells it.
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
