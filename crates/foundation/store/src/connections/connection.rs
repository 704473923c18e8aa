//! How connections to either database are opened, and the pool of them.

use crate::connections::erased::{AnyConnection, PgConnection, SqliteConnection};
use diesel::connection::SimpleConnection;
use diesel::prelude::*;
use diesel::r2d2::{self, ManageConnection};

/// Which database, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// A file.
    Sqlite(String),
    /// A connection URL.
    Postgres(String),
}

impl Backend {
    /// Reads `sqlite:PATH` or `postgres://…`.
    ///
    /// # Errors
    /// A sentence for the operator where it is neither.
    pub fn parse(url: &str) -> Result<Self, String> {
        if let Some(path) = url.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return if path.is_empty() {
                Err("the database URL names no file: write sqlite:PATH".to_owned())
            } else {
                Ok(Self::Sqlite(path.to_owned()))
            };
        }
        if url.starts_with("postgres://") || url.starts_with("postgresql://") {
            return Ok(Self::Postgres(url.to_owned()));
        }
        Err("the database URL must begin with sqlite: or postgres://".to_owned())
    }
}

/// What a SQLite connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Reader,
    Writer,
}

/// At this length of SQLite's write-ahead log, in pages, the writer folds it back by itself: 64 MiB.
pub(crate) const LONGEST_LOG: u32 = 16_000;

/// `busy_timeout` comes first, because switching the journal may have to wait. `synchronous=FULL` keeps what was
/// answered through a loss of power; group commit pays for it. The log is folded back beside the writer
/// (`checkpoints.rs`). Readers refuse to write, so that a mistake in routing fails loudly.
///
/// The file is not mapped into memory: SQLite gives a mapping up whenever another connection has written, and each page would
/// fault anew for each connection. What the system keeps of the file is read for less.
pub(crate) fn open_sqlite(path: &str, role: Role) -> ConnectionResult<SqliteConnection> {
    let mut connection = SqliteConnection::establish(path)?;
    let pragmas = "PRAGMA busy_timeout=5000; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; \
        PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY; PRAGMA journal_size_limit=67108864;";
    let of_role = match role {
        Role::Reader => "PRAGMA query_only=ON; PRAGMA cache_size=-1500;",
        Role::Writer => "PRAGMA cache_size=-8000;",
    };
    connection
        .batch_execute(&format!("{pragmas} PRAGMA wal_autocheckpoint={LONGEST_LOG}; {of_role}"))
        .map_err(|error| ConnectionError::BadConnection(error.to_string()))?;
    Ok(connection)
}

/// Sessions speak UTC, so that `TIMESTAMP` columns mean the same on both databases.
pub(crate) fn open_postgres(url: &str) -> ConnectionResult<PgConnection> {
    let mut connection = PgConnection::establish(url)?;
    connection
        .batch_execute("SET TIME ZONE 'UTC'; SET client_min_messages = 'warning'; SET lock_timeout = '10s'")
        .map_err(|error| ConnectionError::BadConnection(error.to_string()))?;
    Ok(connection)
}

/// A connection whose commits the [flusher](crate::postgres::flusher) confirms.
fn open_pooled_postgres(url: &str) -> ConnectionResult<PgConnection> {
    let mut connection = open_postgres(url)?;
    connection
        .batch_execute("SET synchronous_commit = off")
        .map_err(|error| ConnectionError::BadConnection(error.to_string()))?;
    Ok(connection)
}

/// Makes pooled connections.
pub(crate) struct Manager(pub(crate) Backend);

impl ManageConnection for Manager {
    type Connection = AnyConnection;
    type Error = r2d2::Error;

    fn connect(&self) -> Result<AnyConnection, r2d2::Error> {
        match &self.0 {
            Backend::Sqlite(path) => open_sqlite(path, Role::Reader).map(AnyConnection::Sqlite),
            Backend::Postgres(url) => open_pooled_postgres(url).map(AnyConnection::Postgres),
        }
        .map_err(r2d2::Error::ConnectionError)
    }

    fn is_valid(&self, connection: &mut AnyConnection) -> Result<(), r2d2::Error> {
        connection.batch_execute("SELECT 1").map_err(r2d2::Error::QueryError)
    }

    fn has_broken(&self, connection: &mut AnyConnection) -> bool {
        use diesel::connection::{AnsiTransactionManager, TransactionManager};
        match connection {
            AnyConnection::Sqlite(_) => false,
            AnyConnection::Postgres(connection) => {
                AnsiTransactionManager::is_broken_transaction_manager(connection)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_backend() {
        assert_eq!(Backend::parse("sqlite:data/svc.db"), Ok(Backend::Sqlite("data/svc.db".into())));
        assert_eq!(Backend::parse("sqlite:///var/svc.db"), Ok(Backend::Sqlite("/var/svc.db".into())));
        assert!(matches!(Backend::parse("postgres://u@h/db"), Ok(Backend::Postgres(_))));
        for bad in ["", "mysql://x", "sqlite:", "svc.db"] {
            assert!(Backend::parse(bad).is_err(), "{bad}");
        }
    }
}
