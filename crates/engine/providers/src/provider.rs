//! The trait of model providers, and the routes to their models.

use crate::answer::{Completion, ProviderError};
use crate::prompt::Prompt;
use std::sync::Arc;

/// Future that a provider returns.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Provider of language models.
pub trait Provider: Send + Sync {
    /// Answers one prompt. Retries what is worth retrying within the request's deadline.
    fn complete<'a>(
        &'a self,
        request: &'a Prompt,
    ) -> BoxFuture<'a, std::result::Result<Completion, ProviderError>>;
}

/// A model of a provider.
#[derive(Clone)]
pub struct Route {
    /// The provider.
    pub provider: Arc<dyn Provider>,
    /// The provider's name for it.
    pub model: String,
    /// The `model_revision` that callers see.
    pub label: String,
    /// Tokens that prompt and answer may have together.
    pub context_tokens: i64,
}
