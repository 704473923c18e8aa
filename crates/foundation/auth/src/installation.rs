//! The encryption key of an installation's database, and its rotation.

use crate::schema::installation;
use diesel::prelude::*;
use model::Result;
use store::{Read, Tx, each};

/// The name of the row with the fingerprint of the active key.
const ACTIVE: &str = "secret_key_mark";
/// The name of the row with the fingerprint of the previous key. It exists during a rotation.
const RETIRING: &str = "secret_key_retiring";

/// The fingerprints of a database's keys (see [`SecretKey::mark`](crate::SecretKey::mark)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledKeys {
    /// The key that encrypts.
    pub active: String,
    /// The previous key, until the rotation has ended.
    pub retiring: Option<String>,
}

/// Returns the keys of a database, or `None` before the first start.
pub fn installed_keys(read: &mut Read) -> Result<Option<InstalledKeys>> {
    let Some(active) = value(read, ACTIVE)? else { return Ok(None) };
    Ok(Some(InstalledKeys { active, retiring: value(read, RETIRING)? }))
}

/// Returns the keys of a database. If it has none, `mark` becomes its active key.
pub fn adopt_key(tx: &mut Tx, mark: &str) -> Result<InstalledKeys> {
    insert(tx, ACTIVE, mark)?;
    Ok(InstalledKeys {
        active: value(tx, ACTIVE)?.unwrap_or_else(|| mark.to_owned()),
        retiring: value(tx, RETIRING)?,
    })
}

/// Begins a rotation: from now on services encrypt under the key `to`. Returns `false` if `from` is not the active
/// key.
pub fn begin_rotation(tx: &mut Tx, from: &str, to: &str) -> Result<bool> {
    let row = installation::table.find(ACTIVE).filter(installation::value.eq(from));
    if diesel::update(row).set(installation::value.eq(to)).execute(tx.connection())? == 0 {
        return Ok(false);
    }
    // If a rotation is reverted before its end, the row holds the key that is active again.
    diesel::delete(installation::table.find(RETIRING)).execute(tx.connection())?;
    insert(tx, RETIRING, from)?;
    Ok(true)
}

/// Ends a rotation. The caller has made sure that nothing is encrypted under the key `from` any more.
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
