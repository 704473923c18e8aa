//! Rows that are to be inserted into a table.

use super::columns::Set;
use model::{Error, Result};

/// What becomes of a row whose key the table has already.
#[derive(Debug, Clone, Copy)]
pub enum OnConflict<'s> {
    /// The statement fails.
    Fail,
    /// The row is left out.
    Ignore,
    /// The row that is there is changed. No two rows of the set may have the same key: PostgreSQL would refuse them, and SQLite
    /// would change the row twice.
    Update {
        /// The columns of the unique index.
        key: &'s [&'s str],
        /// What follows `SET`, with the new row as `excluded`.
        set: &'s str,
    },
}

impl OnConflict<'_> {
    pub(super) fn sql(self) -> String {
        match self {
            Self::Fail => String::new(),
            Self::Ignore => " ON CONFLICT DO NOTHING".to_owned(),
            Self::Update { key, set } => format!(" ON CONFLICT ({}) DO UPDATE SET {set}", key.join(", ")),
        }
    }

    /// Fails in a debug build where a set has one key twice.
    pub(super) fn check(self, set: &Set<'_>) -> Result<()> {
        match self {
            Self::Update { key, .. } if cfg!(debug_assertions) && set.has_duplicates(key) => {
                Err(Error::internal(format!("two rows of one upsert have the same {}", key.join(", "))))
            }
            _ => Ok(()),
        }
    }
}

/// Rows for a table.
pub struct Insertion<'s> {
    pub(super) table: &'s str,
    pub(super) conflict: OnConflict<'s>,
    pub(super) set: &'s Set<'s>,
}

impl<'s> Insertion<'s> {
    pub(crate) fn set(&self) -> &'s Set<'s> {
        self.set
    }

    pub(crate) fn table(&self) -> &'s str {
        self.table
    }

    /// What follows the rows.
    pub(crate) fn rest(&self) -> String {
        self.conflict.sql()
    }
}
