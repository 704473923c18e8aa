//! New records as rows of each database, many at a time.

pub(crate) mod new_rows;
pub(crate) mod stored_on_postgres;
pub(crate) mod stored_on_sqlite;
