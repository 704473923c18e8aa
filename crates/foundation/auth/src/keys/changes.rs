//! Changes of keys: their names, limits and ends, and their rotation.

use super::{KeyRow, StoredKey, by_id, check_limits, check_name};
use crate::KeySecret;
use crate::schema::api_keys;
use diesel::prelude::*;
use model::{Code, Error, KeyId, Result, Timestamp};
use store::{Tx, for_no_key_update, lock_row};

/// Changes to a key. What is not given stays.
#[derive(Debug, Clone, Default)]
pub struct KeyChange {
    /// The name for people.
    pub name: Option<String>,
    /// Requests per minute; the inner `None` is the plan's limit.
    pub rate_limit_rpm: Option<Option<i64>>,
    /// Requests per month; the inner `None` is the plan's limit.
    pub monthly_quota: Option<Option<i64>>,
    /// When the key expires; the inner `None` is never.
    pub expires_at: Option<Option<Timestamp>>,
}

/// Changes the name, the limits and the end of a key.
///
/// # Errors
/// `not_found`; `invalid_state` for a key that is revoked; `validation_error` for a value that [`super::create`] refuses.
pub fn change(tx: &mut Tx, id: &KeyId, change: &KeyChange) -> Result<StoredKey> {
    lock_row!(tx, api_keys::table.find(id).select(api_keys::id), for_no_key_update);
    let before = by_id(tx, id)?;
    expect_unrevoked(&before)?;
    let name = change.name.clone().unwrap_or(before.name);
    let rate = change.rate_limit_rpm.unwrap_or(before.key.rate_limit_rpm);
    let quota = change.monthly_quota.unwrap_or(before.key.monthly_quota);
    let expires = change.expires_at.unwrap_or(before.expires_at);
    check_name(&name)?;
    check_limits(rate, quota, before.key.budget_cents)?;
    diesel::update(api_keys::table.find(id))
        .set((
            api_keys::name.eq(name.trim()),
            api_keys::rate_limit_rpm.eq(rate),
            api_keys::monthly_quota.eq(quota),
            api_keys::expires_at.eq(expires),
        ))
        .execute(tx.connection())?;
    by_id(tx, id)
}

/// Replaces a key by a new one with another secret, and with the same lineage: limits, budget and usage go on. The old key
/// works for `overlap_seconds` longer, or not at all if that is 0. Returns the old key and the new one.
///
/// # Errors
/// `not_found`; `invalid_state` for a key that is revoked or has expired.
pub fn rotate(tx: &mut Tx, id: &KeyId, overlap_seconds: i64) -> Result<(StoredKey, StoredKey, KeySecret)> {
    let row: KeyRow = for_no_key_update(api_keys::table.find(id))
        .get_result(tx.connection())
        .optional()?
        .ok_or_else(|| Error::not_found("key"))?;
    let now = tx.now();
    if row.revoked_at.is_some() || row.expires_at.is_some_and(|end| end <= now) {
        let message = "The key is revoked or has expired. Create a new one.";
        return Err(Error::new(Code::InvalidState, message));
    }
    let secret = KeySecret::generate(row.env, &*tx.random());
    let ends = now.plus_seconds(overlap_seconds);
    let old_end = row.expires_at.map_or(ends, |end| end.min(ends));
    let next = KeyRow {
        id: KeyId::new(now, &*tx.random()),
        secret_hash: secret.hash().0.to_vec(),
        created_at: now,
        ..row
    };
    let new_id = next.id.clone();
    diesel::insert_into(api_keys::table).values(next).execute(tx.connection())?;
    let old = api_keys::table.find(id);
    if overlap_seconds > 0 {
        diesel::update(old).set(api_keys::expires_at.eq(old_end)).execute(tx.connection())?;
    } else {
        diesel::update(old).set(api_keys::revoked_at.eq(now)).execute(tx.connection())?;
    }
    Ok((by_id(tx, id)?, by_id(tx, &new_id)?, secret))
}

fn expect_unrevoked(stored: &StoredKey) -> Result<()> {
    if stored.revoked_at.is_none() {
        return Ok(());
    }
    Err(Error::new(Code::InvalidState, "The key is revoked, and stays so."))
}
