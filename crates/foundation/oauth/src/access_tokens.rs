//! Access tokens, cached like keys.

use crate::Resource;
use crate::grants::ACCESS;
use crate::schema::{oauth_access_tokens, oauth_families, oauth_grants};
use auth::{Audience, Cache, Directory, Identity, SecretHash, SecretText};
use diesel::prelude::*;
use model::{AccountId, AuthorizedApp, KeyId, MemberId, Principal, Result, ScopeSet, Timestamp};
use std::sync::Arc;
use store::{Db, Read};

/// The access tokens of OAuth apps, cached for at most ten seconds.
pub struct AccessTokens {
    db: Db,
    directory: Arc<Directory>,
    tokens: Cache<SecretHash, StoredToken>,
}

/// An access token that was not revoked, with its grant.
struct StoredToken {
    key: KeyId,
    app: AuthorizedApp,
    scopes: ScopeSet,
    resource: Resource,
    expires_at: Timestamp,
}

impl AccessTokens {
    /// Creates a directory of access tokens that reads from `db`.
    pub fn new(db: Db, directory: Arc<Directory>) -> Self {
        Self { db, directory, tokens: Cache::new() }
    }

    /// Returns whether a credential has the form of an access token.
    pub fn is_token(text: &str) -> bool {
        text.starts_with(ACCESS)
    }

    /// Parses a credential. Returns `None` if the length or the checksum is wrong.
    pub fn parse(text: &str) -> Option<SecretHash> {
        SecretText::parse(ACCESS, text).map(|token| token.hash())
    }

    /// Returns `true` if the cache knows that this token is or was valid. Does not query the database.
    pub fn was_token(&self, token: SecretHash) -> bool {
        self.tokens.was_found(&token)
    }

    /// Returns the grant that a token stands for. Returns `None` for a token that is not valid now for this audience. The
    /// key of the grant can be revoked.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn identify(
        &self,
        token: SecretHash,
        audience: Audience,
        now: Timestamp,
    ) -> Result<Option<Identity>> {
        let Some(token) = self.token(token).await? else { return Ok(None) };
        if now >= token.expires_at || !token.resource.opens(audience) {
            return Ok(None);
        }
        let Some(key) = self.directory.key_by_id(&token.key).await? else { return Ok(None) };
        let held = key.key.scopes;
        let scopes = Some(token.scopes.without(|scope| !held.contains(scope)));
        Ok(Some(Identity { key, principal: Principal::App(token.app.clone()), scopes }))
    }

    /// Returns whether a token is valid now, for streams that go on.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn is_valid(&self, token: SecretHash, now: Timestamp) -> Result<bool> {
        let token = self.token(token).await?;
        Ok(token.is_some_and(|token| now < token.expires_at))
    }

    /// Clears the cache. Called after a change in this process, so that the next request sees it.
    pub fn forget(&self) {
        self.tokens.clear();
    }

    async fn token(&self, hash: SecretHash) -> Result<Option<Arc<StoredToken>>> {
        let read = self.db.read(move |read| load(read, hash));
        self.tokens.get_or_read(hash, self.db.now(), read).await
    }
}

/// Loads a token, unless it, its family or the account that authorized it has ended.
fn load(read: &mut Read, hash: SecretHash) -> Result<Option<StoredToken>> {
    type Row = (KeyId, String, Resource, Timestamp, String, String, MemberId, AccountId);
    let row: Option<Row> = oauth_access_tokens::table
        .inner_join(oauth_families::table.on(oauth_families::id.eq(oauth_access_tokens::family_id)))
        .inner_join(oauth_grants::table.on(oauth_grants::key_id.eq(oauth_access_tokens::key_id)))
        .filter(oauth_access_tokens::token_hash.eq(hash.0.to_vec()))
        .filter(oauth_access_tokens::revoked_at.is_null())
        .filter(oauth_families::revoked_at.is_null())
        .select((
            oauth_access_tokens::key_id,
            oauth_access_tokens::scopes,
            oauth_access_tokens::resource,
            oauth_access_tokens::expires_at,
            oauth_families::client_id,
            oauth_grants::client_name,
            oauth_grants::member_id,
            oauth_grants::account_id,
        ))
        .first(read.connection())
        .optional()?;
    let Some((key, scopes, resource, expires_at, client_id, name, member, account)) = row else {
        return Ok(None);
    };
    if accounts::account::find(read, &account)?.disabled_at.is_some() {
        return Ok(None);
    }
    let app = AuthorizedApp { client_id, name, member };
    let scopes = ScopeSet::parse_stored(&scopes);
    Ok(Some(StoredToken { key, app, scopes, resource, expires_at }))
}
