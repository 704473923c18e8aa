//! Connections, transactions and the schema.
//!
//! One code base runs on embedded SQLite and on PostgreSQL. [`Db::read`] hands out a reader, [`Db::write`] a
//! transaction; nothing else touches the database. What must differ between the two stands in [`dialect`].

mod cached;
mod connection;
mod db;
pub mod dialect;
mod erased;
mod lock_order;
mod migrations;
mod pages;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod threads;
mod tx;
mod writer;

pub use cached::{Cached, CachedChange};
pub use connection::Backend;
pub use db::{Db, Options, Stats};
pub use erased::{AnyConnection, PgConnection, SqliteConnection};
pub use lock_order::{LockLevel, LockMode};
pub use pages::{CursorPage, OffsetPage, OptInPage, PageNumber, Position};
pub use tx::{EventObserver, Read, Tx};

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
