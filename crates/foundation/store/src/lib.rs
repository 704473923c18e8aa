//! Connections, transactions and the schema.
//!
//! One code base runs on embedded SQLite and on PostgreSQL. [`Db::read`] hands out a reader, [`Db::write`] a
//! transaction; nothing else touches the database. What must differ between the two stands in [`dialect`].

mod batches;
mod connections;
mod db;
pub mod dialect;
mod full_text;
mod locks;
mod log_changes;
pub mod logs;
mod many_rows;
mod metrics;
mod migrations;
mod one_row;
mod outbox;
mod pages;
mod postgres;
mod room;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod snapshot;
mod sqlite;
mod sqlite_inserts;
mod statistics;
mod threads;
mod trial;
mod tx;

pub use batches::{Batched, Batches};
pub use connections::cached::{Cached, CachedChange};
pub use connections::connection::Backend;
pub use connections::erased::{AnyConnection, PgConnection, SqliteConnection};
pub use connections::locked::{
    Locked, for_key_share, for_no_key_update, for_no_key_update_skip_locked, for_share, for_update,
    for_update_skip_locked,
};
pub use db::{Db, Options, Stats};
pub use locks::leases::HeldLease;
pub use locks::order::{LockLevel, LockMode};
pub use many_rows::{Insertion, OnConflict, Rows, insert_all};
pub use metrics::MOST_COUNTED;
pub use migrations::SchemaState;
pub use one_row::OneRow;
pub use outbox::column;
pub use pages::{CursorPage, OffsetPage, OptInPage, PageNumber, Position};
pub use sqlite::backup::backup_sqlite;
pub use tx::{EventObserver, Read, Tx};

/// Locks rows until the transaction ends, on PostgreSQL; the one writer of SQLite needs no lock. `$lock` is diesel's
/// `for_update`, or `for_no_key_update` for rows that foreign keys point at.
#[macro_export]
macro_rules! lock_row {
    ($tx:expr, $row:expr, $lock:ident) => {
        if let $crate::AnyConnection::Postgres(connection) = $tx.connection() {
            diesel::RunQueryDsl::execute($row.$lock(), connection)?;
        }
    };
}

/// Runs one diesel expression on whichever database it is: upserts, many-row inserts and row locks compile only
/// against a concrete connection.
#[macro_export]
macro_rules! each {
    ($connection:expr, |$one:ident| $expression:expr) => {
        match $connection {
            $crate::AnyConnection::Sqlite($one) => $expression,
            $crate::AnyConnection::Postgres($one) => $expression,
        }
    };
}
