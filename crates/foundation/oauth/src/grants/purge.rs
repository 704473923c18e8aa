//! The deletion of codes, tokens and families after their time.

use crate::machine;
use crate::schema::{oauth_access_tokens, oauth_codes, oauth_families, oauth_used_refresh_tokens};
use diesel::prelude::*;
use jobs::Job;
use model::{FamilyId, Result};
use std::time::Duration;
use store::Tx;

/// The most rows that one transaction deletes, to keep lock times short.
const AT_ONCE: i64 = 500;
/// How long answers are stored. Longer than they are repeated, because the clocks of replicas can differ.
const ANSWER_SECONDS: i64 = 2 * machine::REPEAT_SECONDS;
/// How long a code stays after it expired, so that a later use still ends its family.
const CODE_ROWS_SECONDS: i64 = 24 * 3600;
/// How long access tokens stay after they expired.
const ACCESS_ROWS_SECONDS: i64 = 60;

/// Returns the jobs of this crate.
pub fn jobs() -> [Job; 2] {
    [
        Job::every(
            "oauth.answers",
            Duration::from_secs(60),
            "deletes the sealed answers that clients of OAuth can no longer ask for again",
            |job| async move {
                while job.db.write(purge_answers).await? > 0 {}
                Ok(())
            },
        ),
        Job::every(
            "oauth.purge",
            Duration::from_secs(600),
            "deletes authorization codes, tokens and families of OAuth after their time",
            |job| async move {
                while job.db.write(purge_codes).await? > 0 {}
                while job.db.write(purge_access_tokens).await? > 0 {}
                while job.db.write(purge_used_tokens).await? > 0 {}
                while job.db.write(purge_families).await? > 0 {}
                Ok(())
            },
        ),
    ]
}

/// Deletes some answers, and returns how many.
pub(crate) fn purge_answers(tx: &mut Tx) -> Result<usize> {
    let until = tx.now().plus_seconds(-ANSWER_SECONDS);
    let old: Vec<Vec<u8>> = oauth_used_refresh_tokens::table
        .filter(oauth_used_refresh_tokens::used_at.le(until))
        .filter(oauth_used_refresh_tokens::answer.is_not_null())
        .select(oauth_used_refresh_tokens::refresh_hash)
        .limit(AT_ONCE)
        .load(tx.connection())?;
    let rows = oauth_used_refresh_tokens::table.filter(oauth_used_refresh_tokens::refresh_hash.eq_any(old));
    let nothing = oauth_used_refresh_tokens::answer.eq(None::<String>);
    Ok(diesel::update(rows).set(nothing).execute(tx.connection())?)
}

/// Deletes some codes, and returns how many.
pub(crate) fn purge_codes(tx: &mut Tx) -> Result<usize> {
    let until = tx.now().plus_seconds(-CODE_ROWS_SECONDS);
    let old: Vec<Vec<u8>> = oauth_codes::table
        .filter(oauth_codes::expires_at.le(until))
        .select(oauth_codes::code_hash)
        .limit(AT_ONCE)
        .load(tx.connection())?;
    let rows = oauth_codes::table.filter(oauth_codes::code_hash.eq_any(old));
    Ok(diesel::delete(rows).execute(tx.connection())?)
}

/// Deletes some access tokens, and returns how many.
pub(crate) fn purge_access_tokens(tx: &mut Tx) -> Result<usize> {
    let until = tx.now().plus_seconds(-ACCESS_ROWS_SECONDS);
    let old: Vec<Vec<u8>> = oauth_access_tokens::table
        .filter(oauth_access_tokens::expires_at.le(until))
        .select(oauth_access_tokens::token_hash)
        .limit(AT_ONCE)
        .load(tx.connection())?;
    let rows = oauth_access_tokens::table.filter(oauth_access_tokens::token_hash.eq_any(old));
    Ok(diesel::delete(rows).execute(tx.connection())?)
}

/// Deletes some used refresh tokens of families that go on, and returns how many. Their reuse is then refused without
/// ending the family.
pub(crate) fn purge_used_tokens(tx: &mut Tx) -> Result<usize> {
    let until = tx.now().plus_seconds(-machine::IDLE_SECONDS);
    let old: Vec<Vec<u8>> = oauth_used_refresh_tokens::table
        .filter(oauth_used_refresh_tokens::used_at.le(until))
        .select(oauth_used_refresh_tokens::refresh_hash)
        .limit(AT_ONCE)
        .load(tx.connection())?;
    let rows = oauth_used_refresh_tokens::table.filter(oauth_used_refresh_tokens::refresh_hash.eq_any(old));
    Ok(diesel::delete(rows).execute(tx.connection())?)
}

/// Deletes some families that have ended, with their tokens, and returns how many.
pub(crate) fn purge_families(tx: &mut Tx) -> Result<usize> {
    let now = tx.now();
    let ended: Vec<FamilyId> = oauth_families::table
        .filter(oauth_families::idle_end_at.le(now))
        .select(oauth_families::id)
        .limit(AT_ONCE / 10)
        .load(tx.connection())?;
    let used = oauth_used_refresh_tokens::table.filter(oauth_used_refresh_tokens::family_id.eq_any(&ended));
    diesel::delete(used).execute(tx.connection())?;
    let access = oauth_access_tokens::table.filter(oauth_access_tokens::family_id.eq_any(&ended));
    diesel::delete(access).execute(tx.connection())?;
    let families = oauth_families::table.filter(oauth_families::id.eq_any(&ended));
    Ok(diesel::delete(families).execute(tx.connection())?)
}
