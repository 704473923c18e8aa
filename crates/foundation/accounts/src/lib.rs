//! People who sign in: accounts, the members that they are in workspaces, sessions, one-time links, passwords, and the
//! audit log.

#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod session_tokens;
mod standing;

pub use session_tokens::SessionTokens;
pub use standing::is_active;
