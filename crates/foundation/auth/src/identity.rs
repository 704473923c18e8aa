//! What a credential proves.

use crate::keys::StoredKey;
use model::{Principal, ScopeSet};
use std::sync::Arc;

/// The interface that a request came to. An access token can be bound to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Audience {
    /// The REST interface at `/api/v1`.
    Rest,
    /// The MCP server at `/api/v1/mcp`.
    Mcp,
}

/// The key through which the holder of a credential acts, and who that is.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The key, in any state.
    pub key: Arc<StoredKey>,
    /// Who acts through it.
    pub principal: Principal,
    /// The scopes of the credential, if they are fewer than those of the key.
    pub scopes: Option<ScopeSet>,
}

impl Identity {
    /// Returns the identity of whoever has the secret of a key.
    pub fn of_key(key: Arc<StoredKey>) -> Self {
        Self { key, principal: Principal::Key, scopes: None }
    }
}
