//! Which secret key an installation's database is sealed under, and how that changes.

use crate::schema::installation;
use diesel::prelude::*;
use model::Result;
use store::{Read, Tx, each};

/// The row with the mark of the key that seals.
const ACTIVE: &str = "secret_key_mark";
/// The row with the mark of the key before it, while values may be sealed under that one.
const RETIRING: &str = "secret_key_retiring";

/// The keys of a database, by their [marks](crate::SecretKey::mark).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledKeys {
    /// The key that seals.
    pub active: String,
    /// The key before it, while a rotation has not ended.
    pub retiring: Option<String>,
}

/// The keys of a database; `None` before the first start.
///
/// # Errors
/// When the database fails.
pub fn installed_keys(read: &mut Read) -> Result<Option<InstalledKeys>> {
    let Some(active) = value(read, ACTIVE)? else { return Ok(None) };
    Ok(Some(InstalledKeys { active, retiring: value(read, RETIRING)? }))
}

/// The same. The first key that is offered to a database is its key from then on.
///
/// # Errors
/// When the database fails.
pub fn adopt_key(tx: &mut Tx, mark: &str) -> Result<InstalledKeys> {
    insert(tx, ACTIVE, mark)?;
    Ok(InstalledKeys {
        active: value(tx, ACTIVE)?.unwrap_or_else(|| mark.to_owned()),
        retiring: value(tx, RETIRING)?,
    })
}

/// Begins a rotation: from now on services seal under the key `to`. Gives whether `from` was the key until now.
///
/// # Errors
/// When the database fails.
pub fn begin_rotation(tx: &mut Tx, from: &str, to: &str) -> Result<bool> {
    let row = installation::table.find(ACTIVE).filter(installation::value.eq(from));
    if diesel::update(row).set(installation::value.eq(to)).execute(tx.connection())? == 0 {
        return Ok(false);
    }
    // A rotation that is turned back before its end has another key here.
    diesel::delete(installation::table.find(RETIRING)).execute(tx.connection())?;
    insert(tx, RETIRING, from)?;
    Ok(true)
}

/// Ends a rotation: nothing is sealed under the key `from` any more.
///
/// # Errors
/// When the database fails.
pub fn end_rotation(tx: &mut Tx, from: &str) -> Result<()> {
    let row = installation::table.find(RETIRING).filter(installation::value.eq(from));
    diesel::delete(row).execute(tx.connection())?;
    Ok(())
}

fn value(read: &mut Read, name: &str) -> Result<Option<String>> {
    Ok(installation::table.find(name).select(installation::value).first(read.connection()).optional()?)
}

fn insert(tx: &mut Tx, name: &str, value: &str) -> Result<()> {
    let row = (installation::name.eq(name), installation::value.eq(value));
    each!(tx.connection(), |connection| diesel::insert_into(installation::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    Ok(())
}
