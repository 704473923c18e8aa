//! The few statements that must differ between the databases, by name.

use crate::{AnyConnection, Read};
use diesel::prelude::*;
use model::{Result, Timestamp};

/// How many bytes the database takes, for operators.
///
/// # Errors
/// When the database fails.
pub fn size_bytes(read: &mut Read) -> Result<i64> {
    #[derive(QueryableByName)]
    struct Size {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        bytes: i64,
    }
    let sql = match read.connection() {
        AnyConnection::Sqlite(_) => {
            "SELECT page_count * page_size AS bytes FROM pragma_page_count(), pragma_page_size()"
        }
        AnyConnection::Postgres(_) => "SELECT pg_database_size(current_database()) AS bytes",
    };
    Ok(diesel::sql_query(sql).get_result::<Size>(read.connection())?.bytes)
}

/// The name and the version of the database, such as `PostgreSQL 17.2`.
///
/// # Errors
/// When the database fails.
pub fn product(read: &mut Read) -> Result<String> {
    #[derive(QueryableByName)]
    struct Version {
        #[diesel(sql_type = diesel::sql_types::Text)]
        version: String,
    }
    let (name, sql) = match read.connection() {
        AnyConnection::Sqlite(_) => ("SQLite", "SELECT sqlite_version() AS version"),
        AnyConnection::Postgres(_) => ("PostgreSQL", "SELECT current_setting('server_version') AS version"),
    };
    let version = diesel::sql_query(sql).get_result::<Version>(read.connection())?.version;
    Ok(format!("{name} {version}"))
}

/// The present moment by the database's own clock.
///
/// # Errors
/// When the database fails.
pub fn database_time(read: &mut Read) -> Result<Timestamp> {
    #[derive(QueryableByName)]
    struct Time {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        millis: i64,
    }
    let sql = match read.connection() {
        AnyConnection::Sqlite(_) => "SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS millis",
        AnyConnection::Postgres(_) => {
            "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS millis"
        }
    };
    let time = diesel::sql_query(sql).get_result::<Time>(read.connection())?;
    Ok(Timestamp::from_millis(time.millis))
}
