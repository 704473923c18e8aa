//! The OAuth 2.1 authorization server: apps, grants, codes, tokens, and the state machine of their families. The
//! endpoints and pages are in the face `dashboard`.

mod access_tokens;
pub mod clients;
mod events;
mod grants;
pub mod machine;
mod refusal;
mod resource;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod sentences;

pub use access_tokens::AccessTokens;
pub use events::{AppEvent, AuthorizationRevoked, RevocationReason};
pub use grants::{
    Authorization, CodeExchange, Grant, Introspection, Refresh, TokenKind, TokenReply, authorize, exchange,
    find_grant, grants_of_account, grants_of_workspace, introspect, jobs, record_ended_grants, refresh,
    revoke_grant, revoke_grants_of_client, revoke_token,
};
pub use refusal::{Refusal, RefusalCode};
pub use resource::{Resource, Resources};
pub use sentences::{Sentence, Warning, everyday, sentence};

/// The tables with encrypted values.
pub const SEALED: &[&auth::SealedTable] = &[&grants::SEALED];
