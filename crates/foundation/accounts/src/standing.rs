//! Whether an account may still act through what it has authorized.

use crate::schema::accounts;
use diesel::prelude::*;
use model::{AccountId, Result};
use store::Read;

/// Returns whether an account exists and is not disabled.
pub fn is_active(read: &mut Read, account: &AccountId) -> Result<bool> {
    let found = accounts::table.find(account).filter(accounts::disabled_at.is_null());
    Ok(found.count().get_result::<i64>(read.connection())? > 0)
}
