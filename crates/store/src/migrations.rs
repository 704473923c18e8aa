//! Migrations, embedded in the program: one folder per database, the same versions in both.

use crate::{PgConnection, Read, SqliteConnection};
use diesel::migration::MigrationSource;
use diesel::prelude::*;
use diesel_migrations::{EmbeddedMigrations, MigrationHarness, embed_migrations};
use model::{Error, Result};
use std::collections::HashSet;

const SQLITE: EmbeddedMigrations = embed_migrations!("../../migrations/sqlite");
const POSTGRES: EmbeddedMigrations = embed_migrations!("../../migrations/postgres");

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

pub(crate) fn check_sqlite(connection: &mut SqliteConnection) -> Result<()> {
    check(connection, SQLITE)
}

pub(crate) fn check_postgres(connection: &mut PgConnection) -> Result<()> {
    check(connection, POSTGRES)
}

/// Whether all migrations of this program are in the database. Unlike [`check`] it only reads.
pub(crate) fn is_current(read: &mut Read) -> Result<bool> {
    diesel::table! {
        __diesel_schema_migrations (version) {
            version -> Text,
        }
    }
    let applied: HashSet<String> = __diesel_schema_migrations::table
        .select(__diesel_schema_migrations::version)
        .load(read.connection())?
        .into_iter()
        .collect();
    let own = MigrationSource::<diesel::sqlite::Sqlite>::migrations(&SQLITE).map_err(Error::internal)?;
    Ok(own.iter().all(|migration| applied.contains(&migration.name().version().to_string())))
}

fn run<DB: diesel::backend::Backend>(
    connection: &mut impl MigrationHarness<DB>,
    source: impl MigrationSource<DB>,
) -> Result<Vec<String>> {
    let done = connection.run_pending_migrations(source).map_err(Error::internal)?;
    Ok(done.iter().map(ToString::to_string).collect())
}

fn check<DB: diesel::backend::Backend>(
    connection: &mut impl MigrationHarness<DB>,
    source: impl MigrationSource<DB>,
) -> Result<()> {
    if connection.has_pending_migration(source).map_err(Error::internal)? {
        return Err(Error::internal("the database has an older schema: run `svc migrate` first"));
    }
    Ok(())
}
