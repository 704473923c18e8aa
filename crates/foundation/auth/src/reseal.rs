//! Sealing anew, in pieces: what `svc secrets rotate` does to each table of [`SealedTable`].

use crate::seal::{Piece, Seal, SealedTable};
use model::{Error, Result};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use store::Db;

/// How many rows a transaction looks at: it must not keep others waiting.
pub const PIECE: i64 = 100;

/// Reads the position that [`Piece::ending`] wrote.
///
/// # Errors
/// When it is another one's.
pub fn position<P: DeserializeOwned>(after: Option<&str>) -> Result<Option<P>> {
    after.map(|text| serde_json::from_str(text).map_err(Error::internal)).transpose()
}

/// Goes through a table once. The seal's active key is the one that everything is sealed under afterwards. Can be broken
/// off at any time and begun from the start.
///
/// # Errors
/// When the database fails.
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
