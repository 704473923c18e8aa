//! Migrations, embedded in the program: one folder per database, the same versions in both.

use crate::{AnyConnection, PgConnection, SqliteConnection};
use diesel::migration::MigrationSource;
use diesel::prelude::*;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use model::{Error, Result};

const SQLITE: EmbeddedMigrations = embed_migrations!("../../../migrations/sqlite");
const POSTGRES: EmbeddedMigrations = embed_migrations!("../../../migrations/postgres");

pub(crate) fn sqlite(connection: &mut SqliteConnection) -> Result<Vec<String>> {
    run(connection, SQLITE)
}

/// Replicas that start together take turns, by an advisory lock of PostgreSQL.
pub(crate) fn postgres(connection: &mut PgConnection) -> Result<Vec<String>> {
    use diesel::connection::SimpleConnection;
    connection.batch_execute("SELECT pg_advisory_lock(7361763)")?;
    let done = run(connection, POSTGRES);
    connection.batch_execute("SELECT pg_advisory_unlock(7361763)")?;
    done
}

/// How a database's schema compares with the one that this program was built for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaState {
    /// Migrations that the program has and the database has not, in their order.
    pub pending: Vec<String>,
    /// Migrations of the database that the program does not know: a newer program has applied them.
    pub unknown: Vec<String>,
}

diesel::table! {
    __diesel_schema_migrations (version) {
        version -> Text,
    }
}

/// Compares the schema of the database with this program's. Only reads.
pub(crate) fn state(connection: &mut AnyConnection) -> Result<SchemaState> {
    let applied = __diesel_schema_migrations::table
        .select(__diesel_schema_migrations::version)
        .order(__diesel_schema_migrations::version)
        .load(connection);
    let applied: Vec<String> = match applied {
        Ok(versions) => versions,
        // A database without that table has never been migrated.
        Err(diesel::result::Error::DatabaseError(_, info)) if is_missing_table(info.message()) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    // Both databases have the same versions.
    let own = MigrationSource::<diesel::sqlite::Sqlite>::migrations(&SQLITE).map_err(Error::internal)?;
    let mut versions: Vec<String> = own.iter().map(|one| one.name().version().to_string()).collect();
    versions.sort();
    Ok(SchemaState {
        pending: versions.iter().filter(|version| !applied.contains(version)).cloned().collect(),
        unknown: applied.into_iter().filter(|version| !versions.contains(version)).collect(),
    })
}

/// Whether SQLite, or PostgreSQL, says that the table does not exist.
fn is_missing_table(message: &str) -> bool {
    message.starts_with("no such table:") || message.starts_with("relation ")
}

/// Why a program does not touch a database that a newer one has migrated: its statements may fail, or write what the newer one
/// cannot read.
pub(crate) fn newer_schema() -> Error {
    Error::internal(
        "a newer version of svc has migrated this database: use that version, or restore the backup from before the upgrade",
    )
}

fn run<DB: diesel::backend::Backend>(
    connection: &mut impl MigrationHarness<DB>,
    source: impl MigrationSource<DB>,
) -> Result<Vec<String>> {
    let known: Vec<_> = source.migrations().map_err(Error::internal)?;
    let known: Vec<_> = known.iter().map(|one| one.name().version().as_owned()).collect();
    let applied = connection.applied_migrations().map_err(Error::internal)?;
    if applied.iter().any(|version| !known.contains(version)) {
        return Err(newer_schema());
    }
    let done = connection.run_pending_migrations(source).map_err(Error::internal)?;
    Ok(done.iter().map(ToString::to_string).collect())
}
