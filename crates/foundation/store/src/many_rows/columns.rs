//! The columns of a set of rows, whose types are erased: what builds a statement is compiled once.

use diesel::pg::Pg;
use diesel::prelude::*;
use diesel::query_builder::AstPass;
use diesel::serialize::ToSql;
use diesel::sql_types::{Array, HasSqlType, Nullable, SqlType, is_nullable::NotNull};
use diesel::sqlite::Sqlite;
use std::fmt::{Debug, Write};
use std::marker::PhantomData;

/// The values of a column.
pub(crate) trait Column {
    /// Binds all of them as one array.
    fn push_array<'b>(&'b self, pass: AstPass<'_, 'b, Pg>) -> QueryResult<()>;

    /// Binds the first of them on PostgreSQL.
    fn push_first<'b>(&'b self, pass: AstPass<'_, 'b, Pg>) -> QueryResult<()>;

    /// Binds that of one row on SQLite.
    fn push_one<'b>(&'b self, row: usize, pass: AstPass<'_, 'b, Sqlite>) -> QueryResult<()>;

    /// Writes that of one row, so that two of them can be told apart.
    fn describe(&self, row: usize, out: &mut String);
}

/// Values that diesel stores as `ST`, or as `NULL`.
pub(crate) struct Typed<ST, U> {
    values: Vec<U>,
    sql_type: PhantomData<ST>,
}

impl<ST, U> Typed<ST, U> {
    pub(crate) fn new(values: Vec<U>) -> Self {
        Self { values, sql_type: PhantomData }
    }

    fn at(&self, row: usize) -> QueryResult<&U> {
        let missing = || diesel::result::Error::QueryBuilderError("a set of rows misses a value".into());
        self.values.get(row).ok_or_else(missing)
    }
}

impl<ST, U> Column for Typed<ST, U>
where
    ST: SqlType<IsNull = NotNull>,
    Pg: HasSqlType<ST>,
    Sqlite: HasSqlType<ST>,
    U: Debug + ToSql<Nullable<ST>, Pg> + ToSql<Nullable<ST>, Sqlite>,
    Vec<U>: ToSql<Array<Nullable<ST>>, Pg>,
{
    fn push_array<'b>(&'b self, mut pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        pass.push_bind_param::<Array<Nullable<ST>>, _>(&self.values)
    }

    fn push_first<'b>(&'b self, mut pass: AstPass<'_, 'b, Pg>) -> QueryResult<()> {
        pass.push_bind_param::<Nullable<ST>, _>(self.at(0)?)
    }

    fn push_one<'b>(&'b self, row: usize, mut pass: AstPass<'_, 'b, Sqlite>) -> QueryResult<()> {
        pass.push_bind_param::<Nullable<ST>, _>(self.at(row)?)
    }

    fn describe(&self, row: usize, out: &mut String) {
        let _cannot_fail = write!(out, "{:?},", self.values.get(row));
    }
}

/// A column with its name.
pub(crate) struct Named<'a> {
    pub(crate) name: &'static str,
    /// The type that PostgreSQL is to make of a text before it is inserted.
    pub(crate) cast: Option<&'static str>,
    pub(crate) values: Box<dyn Column + 'a>,
}

/// A set of rows, column by column, and single values for the statement.
#[derive(Default)]
pub(crate) struct Set<'a> {
    pub(crate) len: usize,
    pub(crate) columns: Vec<Named<'a>>,
    pub(crate) given: Vec<(&'static str, Box<dyn Column + 'a>)>,
}

impl Set<'_> {
    /// The names of the columns, as a list for SQL.
    pub(crate) fn names(&self) -> String {
        self.columns.iter().map(|column| column.name).collect::<Vec<_>>().join(", ")
    }

    /// Whether two rows have the same values in these columns.
    pub(crate) fn has_duplicates(&self, key: &[&str]) -> bool {
        let is_key = |column: &&Named<'_>| key.contains(&column.name);
        let row = |row: usize| {
            let mut text = String::new();
            self.columns.iter().filter(is_key).for_each(|column| column.values.describe(row, &mut text));
            text
        };
        let mut seen = std::collections::HashSet::with_capacity(self.len);
        !(0..self.len).all(|number| seen.insert(row(number)))
    }
}
