//! Finds families by their refresh tokens.

use super::rows::UsedRow;
use crate::schema::{oauth_families, oauth_used_refresh_tokens};
use diesel::prelude::*;
use model::{FamilyId, Result};
use store::Read;

/// Returns the family of a refresh token, active or used.
pub(super) fn family_of(read: &mut Read, hash: &[u8]) -> Result<Option<FamilyId>> {
    let active: Option<FamilyId> = oauth_families::table
        .filter(oauth_families::refresh_hash.eq(hash))
        .select(oauth_families::id)
        .first(read.connection())
        .optional()?;
    match active {
        Some(id) => Ok(Some(id)),
        None => Ok(used_token(read, hash)?.map(|used| used.family_id)),
    }
}

/// Returns a refresh token that was used.
pub(super) fn used_token(read: &mut Read, hash: &[u8]) -> Result<Option<UsedRow>> {
    Ok(oauth_used_refresh_tokens::table.find(hash).first(read.connection()).optional()?)
}
