//! Locks on things that are no row: the agents of a workspace, a conversation.

use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::Result;
use store::{AnyConnection, Tx};

/// The number that stands for a thing.
pub(crate) fn key(thing: &str) -> i64 {
    let digest = ring::digest::digest(&ring::digest::SHA256, thing.as_bytes());
    digest.as_ref().first_chunk().map_or(0, |bytes| i64::from_be_bytes(*bytes))
}

/// Lets no other transaction lock the thing until this one ends. The one writer of SQLite does so by itself.
pub(crate) fn lock(tx: &mut Tx, key: i64) -> Result<()> {
    if let AnyConnection::Postgres(connection) = tx.connection() {
        diesel::sql_query("SELECT pg_advisory_xact_lock($1)").bind::<BigInt, _>(key).execute(connection)?;
    }
    Ok(())
}
