//! `private_key_jwt` (RFC 7523): a client proves who it is by a JWT that it signs with a private key.

use super::client::{self, Client};
use super::error::ClientError;
use super::metadata::KeySource;
use super::remote::{Remote, RemoteError, fetch};
use crate::schema::oauth_used_assertions;
use auth::jwt::{self, Claims, Expected, PublicKey, Times};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use diesel::prelude::*;
use egress::Connector;
use model::{Error, Result, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use std::sync::Arc;
use store::{Db, Tx, each};

/// The maximum size of a key set.
const LARGEST: usize = 64 * 1024;
/// The maximum lifetime of an assertion. Its id is kept as long.
const LONGEST_SECONDS: i64 = 3600;
/// How often a key set is fetched again for an assertion that none of its keys has signed.
const REFRESH_SECONDS: i64 = 60;
/// The maximum length of the id of an assertion.
const LONGEST_ID: usize = 512;
/// Rows that a purge deletes in one transaction.
const PURGED: i64 = 1000;

/// The claims that are used.
#[derive(Deserialize)]
struct Assertion {
    iss: String,
    sub: String,
    jti: Option<String>,
    exp: i64,
    iat: Option<i64>,
    nbf: Option<i64>,
}

impl Claims for Assertion {
    fn times(&self) -> Times {
        Times { expires: self.exp, issued: self.iat, not_before: self.nbf }
    }
}

/// Verifies assertions.
pub(super) struct Assertions {
    db: Db,
    connector: Connector,
    audiences: Vec<String>,
    key_sets: Remote<Vec<PublicKey>>,
}

impl Assertions {
    pub(super) fn new(db: Db, connector: Connector, audiences: Vec<String>) -> Self {
        Self { db, connector, audiences, key_sets: Remote::new() }
    }

    /// Checks that the client has signed the assertion, for this service, and that it was not used before.
    pub(super) async fn check(&self, client: &Client, token: &str) -> Result<(), ClientError> {
        let now = self.db.now();
        let claims = self.verified(client, token, now).await?;
        let refused = |reason| Err(ClientError::Unauthenticated(reason));
        if claims.iss != client.id || claims.sub != client.id {
            return refused("`iss` and `sub` of the assertion must be the `client_id`");
        }
        if claims.exp > now.millis() / 1000 + LONGEST_SECONDS {
            return refused("the assertion must end within an hour");
        }
        let Some(id) = claims.jti.filter(|id| (1..=LONGEST_ID).contains(&id.len())) else {
            return refused("the assertion must have a `jti` of 1 to 512 characters");
        };
        let hash = client::hash_secret(&format!("{}\0{id}", client.id));
        // Kept for longer than the tolerance with which `exp` is compared.
        let until = now.plus_seconds(claims.exp - now.millis() / 1000 + 60);
        match self.db.write(move |tx| use_once(tx, &hash, until)).await? {
            true => Ok(()),
            false => refused("the assertion was used before"),
        }
    }

    async fn verified(&self, client: &Client, token: &str, now: Timestamp) -> Result<Assertion, ClientError> {
        match &client.keys {
            None => Err(ClientError::Unauthenticated("the client has no keys")),
            Some(KeySource::Inline(text)) => {
                let set: Value = serde_json::from_str(text).map_err(Error::internal)?;
                self.verify(&PublicKey::from_jwks(&set), client, token, now)
            }
            Some(KeySource::Url(url)) => {
                let keys = self.keys(url, now, now.plus_seconds(-24 * 3600)).await?;
                let is_unknown = jwt::key_id(token)
                    .is_ok_and(|wanted| !keys.iter().any(|key| is_named(key, wanted.as_deref())));
                if !is_unknown {
                    return self.verify(&keys, client, token, now);
                }
                // The client may have rotated its keys.
                let keys = self.keys(url, now, now.plus_seconds(-REFRESH_SECONDS)).await?;
                self.verify(&keys, client, token, now)
            }
        }
    }

    fn verify(
        &self,
        keys: &[PublicKey],
        client: &Client,
        token: &str,
        now: Timestamp,
    ) -> Result<Assertion, ClientError> {
        let refused = |error: jwt::InvalidToken| ClientError::Unauthenticated(error.0);
        let wanted = jwt::key_id(token).map_err(refused)?;
        let audiences: Vec<&str> = self.audiences.iter().map(String::as_str).collect();
        let expected = Expected { issuer: &client.id, audiences: &audiences, now };
        let mut failure = ClientError::Unauthenticated("none of the client's keys has signed the assertion");
        for key in keys.iter().filter(|key| is_named(key, wanted.as_deref())) {
            match key.verify(token, &expected) {
                Ok(claims) => return Ok(claims),
                Err(error) => failure = refused(error),
            }
        }
        Err(failure)
    }

    async fn keys(
        &self,
        url: &str,
        now: Timestamp,
        after: Timestamp,
    ) -> Result<Arc<Vec<PublicKey>>, ClientError> {
        let fetched = async {
            let fetched = fetch(&self.connector, url, LARGEST).await?;
            let set: Value = serde_json::from_slice(&fetched.body)
                .map_err(|_| RemoteError::Content("the key set is not JSON".to_owned()))?;
            Ok((PublicKey::from_jwks(&set), fetched.seconds))
        };
        self.key_sets.get_newer(url, now, after, fetched).await.map_err(ClientError::Keys)
    }
}

/// Returns whether a key may have signed a token that names this one. A token that names none may have any.
fn is_named(key: &PublicKey, wanted: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| key.id().is_none_or(|id| id == wanted))
}

/// Returns who claims to have signed a token, before anything is verified. Clients may leave `client_id` out.
pub(super) fn issuer(token: &str) -> Option<String> {
    let claims = token.split('.').nth(1)?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    claims.get("iss")?.as_str().map(str::to_owned)
}

/// Stores the id of an assertion. Returns `false` if it is stored already.
fn use_once(tx: &mut Tx, hash: &[u8], until: Timestamp) -> Result<bool> {
    let row = (oauth_used_assertions::hash.eq(hash), oauth_used_assertions::expires_at.eq(until));
    let inserted = each!(tx.connection(), |connection| diesel::insert_into(oauth_used_assertions::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    Ok(inserted == 1)
}

/// Deletes the ids of assertions that have expired. Returns how many.
pub(super) fn purge(tx: &mut Tx) -> Result<usize> {
    let now = tx.now();
    let expired: Vec<Vec<u8>> = oauth_used_assertions::table
        .filter(oauth_used_assertions::expires_at.le(now))
        .select(oauth_used_assertions::hash)
        .limit(PURGED)
        .load(tx.connection())?;
    let gone = oauth_used_assertions::table.filter(oauth_used_assertions::hash.eq_any(expired));
    Ok(diesel::delete(gone).execute(tx.connection())?)
}
