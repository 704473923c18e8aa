//! Panic isolation: a panic ends one request, which answers `internal_error` as after any other failure.

use futures::FutureExt;
use model::{Error, Result};
use std::any::Any;
use std::panic::AssertUnwindSafe;

/// Awaits `work`; a panic in it is `internal_error`.
///
/// What `work` shares with other requests is behind locks that outlive a panic, and its transactions have been rolled
/// back.
pub(crate) async fn catch_panic<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(Error::internal(said(&*panic))))
}

/// What the panic said.
fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("a panic: {}", text.unwrap_or("without a text"))
}
