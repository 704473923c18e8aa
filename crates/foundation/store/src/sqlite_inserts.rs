//! Inserting many rows on SQLite.
//!
//! A statement of many rows that may be undone by itself keeps a journal. `OR IGNORE` and `OR FAIL` leave what was inserted to
//! the transaction.

use crate::SqliteConnection;
use diesel::prelude::*;
use diesel::query_builder::{BoxedSqlQuery, SqlQuery};
use diesel::sqlite::Sqlite;
use model::Result;

/// How many rows a statement inserts. What is left of a multiple goes row by row, so that there are two statements for
/// each table, and each is prepared once.
const AT_ONCE: usize = 32;

/// A statement that values are bound to.
type Statement<'q> = BoxedSqlQuery<'q, Sqlite, SqlQuery>;

/// Inserts rows by a statement without its `VALUES`; `places` is a place for each value of a row. Gives how many were
/// inserted.
///
/// # Errors
/// When the database fails.
pub(crate) fn insert_rows<'q, R>(
    connection: &mut SqliteConnection,
    insert: &str,
    places: &str,
    rows: &'q [R],
    bind: impl Fn(Statement<'q>, &'q R) -> Statement<'q>,
) -> Result<usize> {
    let (many, rest) = rows.as_chunks::<AT_ONCE>();
    let many = many.iter().map(<[R; AT_ONCE]>::as_slice);
    let mut inserted = 0;
    for rows in many.chain(rest.chunks(1)) {
        let values = vec![places; rows.len()].join(", ");
        let statement = diesel::sql_query(format!("{insert} VALUES {values}")).into_boxed();
        inserted += rows.iter().fold(statement, &bind).execute(connection)?;
    }
    Ok(inserted)
}
