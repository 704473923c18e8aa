//! Re-encryption in batches: `svc secrets rotate` applies it to each [`SealedTable`].

use crate::seal::{Piece, Seal, SealedTable};
use model::{Error, Result};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use store::Db;

/// Rows per transaction, to keep lock times short.
pub const PIECE: i64 = 100;

/// Parses a position written by [`Piece::ending`].
///
/// # Errors
/// If the position is of another type.
pub fn position<P: DeserializeOwned>(after: Option<&str>) -> Result<Option<P>> {
    after.map(|text| serde_json::from_str(text).map_err(Error::internal)).transpose()
}

/// Re-encrypts a whole table under the active key of `seal`. Can be interrupted at any time and started again.
pub async fn reseal_table(db: &Db, seal: &Arc<Seal>, table: &'static SealedTable) -> Result<Piece> {
    let mut total = Piece::default();
    let mut after: Option<String> = None;
    loop {
        let (seal, from) = (seal.clone(), after.take());
        let piece = db.write(move |tx| (table.reseal)(tx, &seal, from.as_deref())).await?;
        let Some(piece) = piece else { return Ok(total) };
        total.resealed += piece.resealed;
        total.unreadable += piece.unreadable;
        after = Some(piece.last);
    }
}
