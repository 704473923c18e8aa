//! Full-text tables of SQLite (FTS5, contentless), which are written at the end of a group of transactions, in the order of
//! their row ids.
//!
//! FTS5 gathers what is written and makes one segment of it, but only as long as row ids ascend and no statement sets a
//! savepoint. A change of a row with a smaller id makes it write a segment at once: a few pages of the log for each change.

use crate::{AnyConnection, CachedChange, SqliteConnection};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use std::collections::BTreeMap;

/// A row of a full-text table.
#[derive(Debug)]
struct Row {
    table: &'static str,
    id: i64,
    /// `None`: the row is deleted.
    terms: Option<String>,
    /// Whether the table has no row of this id.
    is_new: bool,
}

/// Rows that are still to be written.
#[derive(Debug, Default)]
pub(crate) struct FullText {
    /// The changes of the group, in the order in which they were made.
    changes: Vec<Row>,
    /// How many of them the table has.
    written: usize,
}

/// A place in the changes, to which a savepoint goes back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    changes: usize,
    written: usize,
}

impl FullText {
    /// Sets the terms of a row, or deletes it. `is_new`: the table has no such row.
    pub(crate) fn set(&mut self, table: &'static str, id: i64, terms: Option<String>, is_new: bool) {
        self.changes.push(Row { table, id, terms, is_new });
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { changes: self.changes.len(), written: self.written }
    }

    /// Forgets what was changed since, because the transaction went back to there.
    pub(crate) fn go_back(&mut self, to: Mark) {
        self.changes.truncate(to.changes);
        self.written = to.written;
    }

    /// Writes what is not written yet. Nothing on PostgreSQL, where there is nothing.
    pub(crate) fn write(&mut self, connection: &mut AnyConnection) -> QueryResult<()> {
        match connection {
            AnyConnection::Sqlite(connection) => self.write_rows(connection),
            AnyConnection::Postgres(_) => Ok(()),
        }
    }

    fn write_rows(&mut self, connection: &mut SqliteConnection) -> QueryResult<()> {
        let mut rows: BTreeMap<(&'static str, i64), (bool, Option<&str>)> = BTreeMap::new();
        for change in self.changes.iter().skip(self.written) {
            let row = rows.entry((change.table, change.id)).or_insert((change.is_new, None));
            row.1 = change.terms.as_deref();
        }
        for ((table, id), (is_new, terms)) in rows {
            if !is_new {
                let delete = diesel::sql_query(format!("DELETE FROM {table} WHERE rowid = ?"));
                CachedChange(delete.bind::<BigInt, _>(id)).run(connection)?;
            }
            if let Some(terms) = terms {
                let insert = diesel::sql_query(format!("INSERT INTO {table} (rowid, terms) VALUES (?, ?)"));
                CachedChange(insert.bind::<BigInt, _>(id).bind::<Text, _>(terms)).run(connection)?;
            }
        }
        self.written = self.changes.len();
        Ok(())
    }
}
