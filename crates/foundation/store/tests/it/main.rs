//! What the store promises, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that fails must say where"
)]

mod batches;
mod flushes;
mod full_text;
mod locks;
mod many_rows;
mod prepared;
mod room;
mod statistics;
mod transactions;

use diesel::prelude::*;
use model::{Error, Result, Timestamp};
use store::schema::jobs;
use store::{Db, Tx};

/// Something to find again.
fn mark(tx: &mut Tx, name: &str) -> Result<()> {
    tx.enqueue(None, name, None, &(), Timestamp::from_millis(0))
}

/// The marks that are there, in order.
async fn marks(db: &Db) -> Vec<String> {
    db.read(|read| Ok(jobs::table.select(jobs::kind).order(jobs::id).load(read.connection())?)).await.unwrap()
}

fn broken() -> Error {
    Error::internal("on purpose")
}
