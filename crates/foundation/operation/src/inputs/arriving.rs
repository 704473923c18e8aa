//! Request bodies while they arrive.

use bytes::Bytes;
use futures::Stream;
use model::{Code, Error, Result};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};

/// The chunks of a body. An error is the last item.
pub type BodyChunks = Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

/// A body that is still arriving. It can be read once.
pub struct StreamedBody {
    pub(crate) content_type: String,
    chunks: Mutex<Option<BodyChunks>>,
}

impl StreamedBody {
    /// Creates a body with its `Content-Type`.
    pub fn new(content_type: String, chunks: BodyChunks) -> Self {
        Self { content_type, chunks: Mutex::new(Some(chunks)) }
    }

    /// Takes the chunks.
    ///
    /// # Errors
    /// `idempotency_in_progress` if they were taken before.
    pub(crate) fn take(&self) -> Result<BodyChunks> {
        let chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A request that waited for another one with its key may have to execute after all, when its body is already
        // read.
        chunks.ok_or_else(|| {
            let message =
                "The first request with this `Idempotency-Key` did not complete. Send the file again.";
            Error::new(Code::IdempotencyInProgress, message).retry_after(1)
        })
    }
}
