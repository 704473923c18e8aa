//! A set of rows with named columns.

use super::columns::{Column, Named, Set, Typed};
use super::sqlite::parts;
use super::statement::{Statement, Text};
use crate::{AnyConnection, Read};
use diesel::deserialize::QueryableByName;
use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::serialize::ToSql;
use diesel::sql_types::{BigInt, Binary, Bool, Double, Nullable, Text as SqlText, Timestamp};
use diesel::sqlite::Sqlite;
use model::Result;
use std::fmt::Debug;

/// Rows that statements write or look up, with a name for each column.
///
/// ```ignore
/// Rows::of(&accepted)
///     .big_int("id", |(id, _)| *id)
///     .text("provider_id", |(_, provider_id)| *provider_id)
///     .execute(tx, "UPDATE messages SET provider_message_id = accepted.provider_id \
///                   FROM {accepted} WHERE messages.id = accepted.id")?;
/// ```
///
/// The text is one that both databases understand. `{name}` stands for the rows, under that name; for a single value that was
/// given under it (`given_…`); and `{for update}`, or `{for update of table}`, for a lock, which SQLite's one writer does not need.
///
/// On SQLite a statement runs for one part of the rows after another. So its meaning must not depend on which rows it sees
/// together: sum up by key before, and do not group in the statement.
pub struct Rows<'a, R> {
    rows: &'a [R],
    pub(super) set: Set<'a>,
}

/// Adds a column of one type to a set, and a single value.
macro_rules! column {
    ($(#[$doc:meta])* $column:ident, $given:ident, $sql_type:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $column<U>(self, name: &'static str, value: impl Fn(&'a R) -> U) -> Self
        where
            U: Debug + ToSql<Nullable<$sql_type>, Pg> + ToSql<Nullable<$sql_type>, Sqlite> + 'a,
        {
            let values = Typed::<$sql_type, U>::new(self.rows.iter().map(value).collect());
            self.with(name, None, Box::new(values))
        }

        /// Gives the statement a single value of this type under a name.
        #[must_use]
        pub fn $given<U>(mut self, name: &'static str, value: U) -> Self
        where
            U: Debug + ToSql<Nullable<$sql_type>, Pg> + ToSql<Nullable<$sql_type>, Sqlite> + 'a,
        {
            self.set.given.push((name, Box::new(Typed::<$sql_type, U>::new(vec![value]))));
            self
        }
    };
}

impl<'a, R> Rows<'a, R> {
    /// Rows without columns.
    pub fn of(rows: &'a [R]) -> Self {
        Self { rows, set: Set { len: rows.len(), ..Set::default() } }
    }

    fn with(mut self, name: &'static str, cast: Option<&'static str>, values: Box<dyn Column + 'a>) -> Self {
        self.set.columns.push(Named { name, cast, values });
        self
    }

    column! {
        /// Adds a column of texts: ids with a prefix, words, JSON.
        text, given_text, SqlText
    }
    column! {
        /// Adds a column of whole numbers.
        big_int, given_big_int, BigInt
    }
    column! {
        /// Adds a column of truth values.
        bool, given_bool, Bool
    }
    column! {
        /// Adds a column of floating-point numbers.
        double, given_double, Double
    }
    column! {
        /// Adds a column of bytes.
        binary, given_binary, Binary
    }
    column! {
        /// Adds a column of moments.
        time, given_time, Timestamp
    }

    /// Adds a column of texts of which PostgreSQL makes another type when they are inserted, such as `tsvector`.
    #[must_use]
    pub fn cast<U>(self, name: &'static str, to: &'static str, value: impl Fn(&'a R) -> U) -> Self
    where
        U: Debug + ToSql<Nullable<SqlText>, Pg> + ToSql<Nullable<SqlText>, Sqlite> + 'a,
    {
        let values = Typed::<SqlText, U>::new(self.rows.iter().map(value).collect());
        self.with(name, Some(to), Box::new(values))
    }

    /// Runs a change. Returns how many rows it changed.
    ///
    /// # Errors
    /// The database's.
    pub fn execute(&self, read: &mut Read, template: &str) -> Result<usize> {
        self.set.execute(read, Text::Template(template))
    }

    /// Runs a query, or a change that returns rows.
    ///
    /// # Errors
    /// The database's.
    pub fn load<T>(&self, read: &mut Read, template: &str) -> Result<Vec<T>>
    where
        T: QueryableByName<Pg> + QueryableByName<Sqlite> + 'static,
    {
        self.set.load(read, Text::Template(template))
    }
}

impl Set<'_> {
    pub(super) fn execute(&self, read: &mut Read, text: Text<'_>) -> Result<usize> {
        if self.len == 0 {
            return Ok(0);
        }
        match read.connection() {
            AnyConnection::Postgres(connection) => {
                Ok(Statement { set: self, text, rows: 0..self.len }.execute(connection)?)
            }
            AnyConnection::Sqlite(connection) => {
                let mut changed = 0;
                for rows in parts(self.len) {
                    changed += Statement { set: self, text, rows }.execute(connection)?;
                }
                Ok(changed)
            }
        }
    }

    pub(super) fn load<T>(&self, read: &mut Read, text: Text<'_>) -> Result<Vec<T>>
    where
        T: QueryableByName<Pg> + QueryableByName<Sqlite> + 'static,
    {
        let mut found = Vec::new();
        match read.connection() {
            _ if self.len == 0 => {}
            AnyConnection::Postgres(connection) => {
                found = Statement { set: self, text, rows: 0..self.len }.load(connection)?;
            }
            AnyConnection::Sqlite(connection) => {
                for rows in parts(self.len) {
                    found.extend(Statement { set: self, text, rows }.load::<T>(connection)?);
                }
            }
        }
        Ok(found)
    }
}
