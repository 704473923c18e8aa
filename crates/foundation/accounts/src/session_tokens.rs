//! The tokens that pages exchange their session for: JWTs of five minutes (platform-billing.md C.12).
//!
//! A token names its session, and the member and environment that it is for. It proves nothing by itself: at each request
//! the session, the account, the membership and the member's key are looked up too, in caches of ten seconds, so what
//! ends them ends their tokens within that time on every replica. So does a key that signs tokens no more: that a signature
//! is right is cached too, for as long.

use crate::schema::{accounts, memberships, sessions};
use crate::sessions::IDLE_SECONDS;
use auth::jwt::{Claims, Expected, Times};
use auth::keys::{KeyKind, StoredKey};
use auth::{Cache, Directory, Identity, Seal};
use diesel::prelude::*;
use model::{
    AccountId, Env, Error, KeyId, KeyOwner, MemberId, MemberSession, Principal, Result, SessionId, Timestamp,
    WorkspaceId,
};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::Arc;
use store::{Db, Read};

/// The claims of a token.
#[derive(Debug, Serialize, Deserialize)]
struct SessionClaims {
    iss: String,
    aud: String,
    sub: AccountId,
    sid: SessionId,
    wsp: WorkspaceId,
    env: Env,
    mem: MemberId,
    iat: i64,
    exp: i64,
    /// When the account last proved who it is, at the time of issue.
    auth_time: i64,
}

impl Claims for SessionClaims {
    fn times(&self) -> Times {
        Times { expires: self.exp, issued: Some(self.iat), not_before: None }
    }
}

/// What the database says about a session in a workspace.
struct Standing {
    account: AccountId,
    member: MemberId,
    live_key: KeyId,
    test_key: KeyId,
    authenticated_at: Timestamp,
    is_operator: bool,
    /// When it ends, unless it is used or revoked before.
    ends_at: Timestamp,
    is_over: bool,
}

/// Issues and verifies the tokens of sessions.
pub struct SessionTokens {
    db: Db,
    directory: Arc<Directory>,
    seal: Arc<Seal>,
    issuer: String,
    audience: String,
    standings: Cache<(SessionId, WorkspaceId), Standing>,
    /// Tokens whose signatures were verified, by their digests: a page sends the same token for minutes.
    verified: Cache<[u8; SHA256_OUTPUT_LEN], SessionClaims>,
}

impl SessionTokens {
    /// The lifetime of a token, in seconds.
    pub const LIFETIME_SECONDS: i64 = 300;

    /// Creates the tokens of a service with this base URL.
    pub fn new(db: Db, directory: Arc<Directory>, seal: Arc<Seal>, base_url: &str) -> Self {
        let issuer = base_url.trim_end_matches('/').to_owned();
        let audience = format!("{issuer}/api/v1");
        Self { db, directory, seal, issuer, audience, standings: Cache::new(), verified: Cache::new() }
    }

    /// Returns whether a credential has the form of these tokens. No other credential contains a dot.
    pub fn is_token(text: &str) -> bool {
        text.split('.').count() == 3
    }

    /// Issues a token for a member of a workspace. The caller has read the session and the membership.
    ///
    /// # Errors
    /// If the claims cannot be signed.
    pub fn issue(
        &self,
        member: &MemberSession,
        workspace: WorkspaceId,
        env: Env,
        now: Timestamp,
    ) -> Result<String> {
        self.seal.sign_token(&SessionClaims {
            iss: self.issuer.clone(),
            aud: self.audience.clone(),
            sub: member.account.clone(),
            sid: member.session.clone(),
            wsp: workspace,
            env,
            mem: member.member,
            iat: now.seconds(),
            exp: now.seconds() + Self::LIFETIME_SECONDS,
            auth_time: member.authenticated_at.seconds(),
        })
    }

    /// Returns the member that a token from an address stands for. Returns `None` for a token that is not valid now. With warm caches
    /// nothing is read from the database.
    pub async fn identify(&self, token: &str, address: IpAddr, now: Timestamp) -> Result<Option<Identity>> {
        let Some(claims) = self.claims(token, now) else { return Ok(None) };
        let Some(standing) = self.standing(&claims.sid, claims.wsp).await? else { return Ok(None) };
        let is_same = (&standing.account, standing.member) == (&claims.sub, claims.mem);
        if !is_same || standing.is_over || standing.ends_at <= now {
            return Ok(None);
        }
        let id = match claims.env {
            Env::Live => &standing.live_key,
            Env::Test => &standing.test_key,
        };
        let key = self.directory.key_by_id(id).await?;
        let Some(key) = key.filter(|key| is_of(key, &claims)) else { return Ok(None) };
        let role = key.role.ok_or_else(|| Error::internal("the key of a member has no role"))?;
        let principal = Principal::Member(MemberSession {
            account: claims.sub.clone(),
            member: claims.mem,
            session: claims.sid.clone(),
            address,
            // Both are true. The cached row may be older than the last proof, and the token too.
            authenticated_at: standing
                .authenticated_at
                .max(Timestamp::from_millis(claims.auth_time.saturating_mul(1_000))),
            role,
            is_operator: standing.is_operator,
        });
        Ok(Some(Identity { key, principal, scopes: None }))
    }

    /// Returns the claims of a token that is valid now.
    fn claims(&self, token: &str, now: Timestamp) -> Option<Arc<SessionClaims>> {
        let digest = ring::digest::digest(&SHA256, token.as_bytes());
        let digest = <[u8; SHA256_OUTPUT_LEN]>::try_from(digest.as_ref()).ok()?;
        if let Some(Some(claims)) = self.verified.get(&digest, now) {
            return Some(claims).filter(|claims| !claims.times().is_over(now));
        }
        let expected = Expected { issuer: &self.issuer, audiences: &[&self.audience], now };
        let claims: SessionClaims = self
            .seal
            .verify_token(token, &expected)
            .inspect_err(|reason| tracing::debug!(%reason, "a session token is not valid"))
            .ok()?;
        let claims = Arc::new(claims);
        self.verified.put(digest, Some(claims.clone()), now);
        Some(claims)
    }

    /// Returns whether a session is still open for a member of a workspace. For responses that last longer than a token.
    pub async fn is_open(&self, session: &SessionId, workspace: WorkspaceId, now: Timestamp) -> Result<bool> {
        let standing = self.standing(session, workspace).await?;
        Ok(standing.is_some_and(|standing| !standing.is_over && now < standing.ends_at))
    }

    /// Clears the cache. Called after a change in this process, so that the next request sees it.
    pub fn forget(&self) {
        self.standings.clear();
    }

    async fn standing(&self, session: &SessionId, workspace: WorkspaceId) -> Result<Option<Arc<Standing>>> {
        let wanted = session.clone();
        let read = self.db.read(move |read| find(read, &wanted, workspace));
        self.standings.get_or_read((session.clone(), workspace), self.db.now(), read).await
    }
}

/// Returns whether a key is the one of the token's member, workspace and environment.
fn is_of(key: &StoredKey, claims: &SessionClaims) -> bool {
    key.kind == KeyKind::Member
        && key.member == Some(claims.mem)
        && key.key.owner == KeyOwner::Workspace(claims.wsp)
        && key.key.env == claims.env
}

/// Reads a session with its account and its membership in the workspace.
fn find(read: &mut Read, session: &SessionId, workspace: WorkspaceId) -> Result<Option<Standing>> {
    type Row = (
        (AccountId, bool, Option<Timestamp>),
        (MemberId, KeyId, KeyId),
        (Timestamp, Timestamp, Timestamp, Option<Timestamp>),
    );
    let row: Option<Row> = sessions::table
        .inner_join(accounts::table.on(accounts::id.eq(sessions::account_id)))
        .inner_join(memberships::table.on(memberships::account_id.eq(sessions::account_id)))
        .filter(sessions::id.eq(session))
        .filter(memberships::workspace_id.eq(workspace))
        .select((
            (accounts::id, accounts::operator, accounts::disabled_at),
            (memberships::member_id, memberships::live_key_id, memberships::test_key_id),
            (sessions::authenticated_at, sessions::last_seen_at, sessions::ends_at, sessions::revoked_at),
        ))
        .first(read.connection())
        .optional()?;
    Ok(row.map(
        |(
            (account, is_operator, disabled),
            (member, live_key, test_key),
            (authenticated_at, seen, ends, revoked),
        )| {
            Standing {
                account,
                member,
                live_key,
                test_key,
                authenticated_at,
                is_operator,
                ends_at: ends.min(seen.plus_seconds(IDLE_SECONDS)),
                is_over: revoked.is_some() || disabled.is_some(),
            }
        },
    ))
}
