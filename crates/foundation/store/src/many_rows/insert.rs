//! Insertions of sets of rows.

use super::insertion::{Insertion, OnConflict};
use super::postgres;
use super::rows::Rows;
use super::statement::Text;
use crate::{AnyConnection, Read};
use diesel::deserialize::QueryableByName;
use diesel::pg::Pg;
use diesel::sqlite::Sqlite;
use model::Result;

impl<R> Rows<'_, R> {
    /// Inserts the rows into the columns of a table that have their names.
    ///
    /// # Errors
    /// The database's, such as a violated unique index.
    pub fn insert(&self, read: &mut Read, table: &str) -> Result<()> {
        self.insert_or(read, table, OnConflict::Fail).map(drop)
    }

    /// Inserts the rows, or changes what is there. Returns how many were inserted or changed.
    ///
    /// # Errors
    /// The database's. In a debug build an internal error where two rows of an upsert have the same key.
    pub fn insert_or(&self, read: &mut Read, table: &str, conflict: OnConflict<'_>) -> Result<usize> {
        conflict.check(&self.set)?;
        self.set.execute(read, Text::Insert { table, rest: &conflict.sql() })
    }

    /// The same, and returns columns of what was inserted or changed.
    ///
    /// # Errors
    /// As of [`Self::insert_or`].
    pub fn insert_returning<T>(
        &self,
        read: &mut Read,
        table: &str,
        conflict: OnConflict<'_>,
        columns: &str,
    ) -> Result<Vec<T>>
    where
        T: QueryableByName<Pg> + QueryableByName<Sqlite> + 'static,
    {
        conflict.check(&self.set)?;
        let rest = format!("{} RETURNING {columns}", conflict.sql());
        self.set.load(read, Text::Insert { table, rest: &rest })
    }

    /// The insertion of the rows into a table, for [`insert_all`].
    pub fn insertion<'s>(&'s self, table: &'s str, conflict: OnConflict<'s>) -> Insertion<'s> {
        Insertion { table, conflict, set: &self.set }
    }
}

/// Inserts rows into several tables, which is one round trip to PostgreSQL. Returns how many were inserted into each.
///
/// # Errors
/// As of [`Rows::insert_or`].
pub fn insert_all(read: &mut Read, insertions: &[Insertion<'_>]) -> Result<Vec<usize>> {
    for insertion in insertions {
        insertion.conflict.check(insertion.set)?;
    }
    match read.connection() {
        AnyConnection::Postgres(connection) => postgres::insert_all(connection, insertions),
        AnyConnection::Sqlite(_) => {
            let insert = |one: &Insertion<'_>| {
                one.set.execute(read, Text::Insert { table: one.table, rest: &one.rest() })
            };
            insertions.iter().map(insert).collect()
        }
    }
}
