//! Interfaces at one address of the API that answer in a format of their own, such as MCP.

use crate::{RawAnswer, RawRequest};
use bytes::Bytes;
use futures::future::LocalBoxFuture;
use model::Result;
use std::sync::Arc;

/// An interface at an address below `/api/v1`. Unlike a [`RawRoute`](crate::RawRoute), it sees a request before its body
/// arrives, so that a request without a valid key costs no memory.
pub trait Mount: Send + Sync {
    /// Returns the address below `/api/v1`, such as `/mcp`.
    fn path(&self) -> &'static str;

    /// Checks a request of any method, whose body is still empty. An `Err` is the answer.
    fn open(
        self: Arc<Self>,
        head: RawRequest,
    ) -> LocalBoxFuture<'static, std::result::Result<Opened, RawAnswer>>;
}

/// A request whose body may be read.
pub struct Opened {
    /// The maximum size of the body in bytes.
    pub body_limit: usize,
    /// Answers the request, given its body or the reason why that could not be read.
    pub answer: Box<dyn FnOnce(Result<Bytes>) -> LocalBoxFuture<'static, RawAnswer>>,
}
