//! Sessions: browsers in which an account has signed in.

use crate::Secret;
use crate::audit::{self, Actor, Entry};
use crate::schema::{accounts, sessions};
use diesel::prelude::*;
use model::{AccountId, Error, Result, SessionId, Timestamp};
use std::net::IpAddr;
use store::{Read, Tx};

/// For how long a session stays open without being used, in seconds.
pub const IDLE_SECONDS: i64 = 12 * 3_600;
/// For how long a session stays open at most, in seconds.
pub const LIFETIME_SECONDS: i64 = 30 * 24 * 3_600;
/// For how long a proof of who somebody is counts as recent, in seconds.
pub const RECENT_SECONDS: i64 = 600;
/// How often the last use is written at most, in seconds.
const TOUCH_SECONDS: i64 = 60;
/// The greatest length of a browser's name, in characters.
const MOST_USER_AGENT: usize = 200;
/// The rows that one transaction of the purge job deletes.
const PIECE: i64 = 500;

/// A session of an account.
#[derive(Debug, Clone, PartialEq, Eq, Queryable, Selectable)]
#[diesel(table_name = sessions)]
pub struct Session {
    /// The id. It names the session and authenticates nothing.
    pub id: SessionId,
    /// The account.
    pub account_id: AccountId,
    /// When the account signed in.
    pub created_at: Timestamp,
    /// When the account last proved who it is.
    pub authenticated_at: Timestamp,
    /// When the session was last used, to the minute.
    pub last_seen_at: Timestamp,
    /// When it ends, unless it is revoked or idle before.
    pub ends_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// The address from which the account signed in.
    pub address: String,
    /// The browser as it names itself, cut to 200 characters.
    pub user_agent: String,
}

impl Session {
    /// Returns whether the session can be used.
    pub fn is_open(&self, now: Timestamp) -> bool {
        let idle_at = self.last_seen_at.plus_seconds(IDLE_SECONDS);
        self.revoked_at.is_none() && now < self.ends_at && now < idle_at
    }

    /// Returns whether the last proof of who the account is is younger than ten minutes.
    pub fn is_recent(&self, now: Timestamp) -> bool {
        now < self.authenticated_at.plus_seconds(RECENT_SECONDS)
    }

    /// Returns whether [`touch`] would write.
    pub fn is_to_be_touched(&self, now: Timestamp) -> bool {
        self.last_seen_at.plus_seconds(TOUCH_SECONDS) <= now
    }
}

/// Opens a session for an account that has just proved who it is. A secret that the browser had before is not adopted.
pub fn open(
    tx: &mut Tx,
    account: &AccountId,
    address: IpAddr,
    user_agent: &str,
) -> Result<(Session, Secret)> {
    let (now, random) = (tx.now(), tx.random());
    let secret = Secret::generate(&*random);
    let session = Session {
        id: SessionId::new(now, &*random),
        account_id: account.clone(),
        created_at: now,
        authenticated_at: now,
        last_seen_at: now,
        ends_at: now.plus_seconds(LIFETIME_SECONDS),
        revoked_at: None,
        address: address.to_string(),
        user_agent: printable(user_agent),
    };
    diesel::insert_into(sessions::table)
        .values((
            sessions::id.eq(&session.id),
            sessions::secret_hash.eq(secret.digest()),
            sessions::account_id.eq(account),
            sessions::created_at.eq(now),
            sessions::authenticated_at.eq(now),
            sessions::last_seen_at.eq(now),
            sessions::ends_at.eq(session.ends_at),
            sessions::address.eq(&session.address),
            sessions::user_agent.eq(&session.user_agent),
        ))
        .execute(tx.connection())?;
    let actor = Actor::Account(account.clone(), Some(address));
    audit::record(tx, Entry::new(actor, "session.opened", session.id.as_str()))?;
    Ok((session, secret))
}

/// Returns the open session with a secret, unless its account is disabled.
pub fn by_secret(read: &mut Read, secret: &Secret) -> Result<Option<Session>> {
    let found = usable().filter(sessions::secret_hash.eq(secret.digest()));
    let session: Option<Session> = found.select(Session::as_select()).first(read.connection()).optional()?;
    let now = read.now();
    Ok(session.filter(|session| session.is_open(now)))
}

/// Returns the open session with an id, unless its account is disabled.
pub fn by_id(read: &mut Read, id: &SessionId) -> Result<Option<Session>> {
    let found = usable().filter(sessions::id.eq(id));
    let session: Option<Session> = found.select(Session::as_select()).first(read.connection()).optional()?;
    let now = read.now();
    Ok(session.filter(|session| session.is_open(now)))
}

/// Returns the open sessions of an account, newest first.
pub fn of_account(read: &mut Read, account: &AccountId) -> Result<Vec<Session>> {
    let now = read.now();
    let found: Vec<Session> = usable()
        .filter(sessions::account_id.eq(account))
        .filter(sessions::revoked_at.is_null())
        .order(sessions::id.desc())
        .select(Session::as_select())
        .load(read.connection())?;
    Ok(found.into_iter().filter(|session| session.is_open(now)).collect())
}

#[diesel::dsl::auto_type(no_type_alias)]
fn usable() -> _ {
    sessions::table
        .inner_join(accounts::table.on(accounts::id.eq(sessions::account_id)))
        .filter(accounts::disabled_at.is_null())
}

/// Notes that a session is used, at most once a minute.
pub fn touch(tx: &mut Tx, id: &SessionId) -> Result<()> {
    let now = tx.now();
    let before = now.plus_seconds(-TOUCH_SECONDS);
    diesel::update(sessions::table.find(id).filter(sessions::last_seen_at.le(before)))
        .set(sessions::last_seen_at.eq(now))
        .execute(tx.connection())?;
    Ok(())
}

/// Gives an open session a new secret after the account has proved again who it is. The old secret ends.
///
/// # Errors
/// `not_found` if the session has ended.
pub fn rotate(tx: &mut Tx, id: &SessionId) -> Result<Secret> {
    let session = by_id(tx, id)?.ok_or_else(|| Error::not_found("session"))?;
    let (now, secret) = (tx.now(), Secret::generate(&*tx.random()));
    let changed = diesel::update(sessions::table.find(id).filter(sessions::revoked_at.is_null()))
        .set((
            sessions::secret_hash.eq(secret.digest()),
            sessions::authenticated_at.eq(now),
            sessions::last_seen_at.eq(now),
        ))
        .execute(tx.connection())?;
    // On PostgreSQL another transaction may have revoked the session since it was read.
    if changed == 0 {
        return Err(Error::not_found("session"));
    }
    let actor = Actor::Account(session.account_id, None);
    audit::record(tx, Entry::new(actor, "session.renewed", id.as_str()))?;
    Ok(secret)
}

/// Ends a session of an account. Ending it again changes nothing.
///
/// # Errors
/// `not_found` for a session of another account.
pub fn revoke(tx: &mut Tx, account: &AccountId, id: &SessionId) -> Result<()> {
    let now = tx.now();
    let row = sessions::table.filter(sessions::id.eq(id)).filter(sessions::account_id.eq(account));
    let known: i64 = row.count().get_result(tx.connection())?;
    if known == 0 {
        return Err(Error::not_found("session"));
    }
    let ended = diesel::update(row.filter(sessions::revoked_at.is_null()))
        .set(sessions::revoked_at.eq(now))
        .execute(tx.connection())?;
    if ended > 0 {
        let actor = Actor::Account(account.clone(), None);
        audit::record(tx, Entry::new(actor, "session.ended", id.as_str()))?;
    }
    Ok(())
}

/// Ends all sessions of an account but this one. Returns their number.
pub fn revoke_others(tx: &mut Tx, account: &AccountId, kept: &SessionId) -> Result<usize> {
    let ended = revoke_of_account(tx, account, Some(kept))?;
    let actor = Actor::Account(account.clone(), None);
    audit::record(
        tx,
        Entry::new(actor, "session.others_ended", account.as_str())
            .details(serde_json::json!({ "sessions": ended })),
    )?;
    Ok(ended)
}

pub(crate) fn revoke_of_account(tx: &mut Tx, account: &AccountId, kept: Option<&SessionId>) -> Result<usize> {
    let now = tx.now();
    let others = sessions::table
        .filter(sessions::account_id.eq(account))
        .filter(sessions::id.ne(kept.map_or("", SessionId::as_str).to_owned()))
        .filter(sessions::revoked_at.is_null());
    Ok(diesel::update(others).set(sessions::revoked_at.eq(now)).execute(tx.connection())?)
}

/// Deletes sessions whose time is over. Returns their number, which is 0 when none is left.
pub(crate) fn purge(tx: &mut Tx) -> Result<usize> {
    let now = tx.now();
    let over: Vec<SessionId> = sessions::table
        .filter(sessions::ends_at.le(now))
        .order(sessions::ends_at.asc())
        .limit(PIECE)
        .select(sessions::id)
        .load(tx.connection())?;
    Ok(diesel::delete(sessions::table.filter(sessions::id.eq_any(over))).execute(tx.connection())?)
}

/// Returns the name of a browser without characters that could disturb a page or a terminal.
fn printable(user_agent: &str) -> String {
    user_agent.chars().filter(|letter| !letter.is_control()).take(MOST_USER_AGENT).collect()
}
