//! Statements about many rows, written once for both databases.
//!
//! [`Rows`] names the columns of a set of rows. A statement then has the set as a table: `{new}` in its text stands for the rows,
//! which the statement knows as `new`. PostgreSQL gets one array for each column (`unnest`), so that the text is the same for any
//! number of rows and is prepared once. SQLite gets `VALUES`, in parts of a few fixed sizes for the same reason.
//!
//! A single change is a set of one row. `docs/internals/many-rows.md` explains when to use what.

mod columns;
mod insert;
mod insertion;
mod postgres;
mod rows;
mod sqlite;
mod statement;

pub use insert::insert_all;
pub use insertion::{Insertion, OnConflict};
pub use rows::Rows;
