//! The OAuth 2.1 authorization server: apps, grants, codes, tokens, and the state machine of their families. The
//! endpoints and pages are in the face `dashboard`.

mod access_tokens;
pub mod clients;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod sentences;

pub use access_tokens::AccessTokens;
pub use sentences::{Sentence, Warning, everyday, sentence};
