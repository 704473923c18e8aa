//! Sealing anew, in pieces: what `svc secrets rotate` does to each table of [`SealedTable`].

use crate::seal::{Seal, SealedTable};
use model::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{Db, Tx};

/// How many rows a transaction looks at: it must not keep others waiting.
pub const PIECE: i64 = 100;

/// Seals the values of the next rows behind a position anew; `None` behind the last row. A row that changed meanwhile is
/// left as it is: whoever changed it has sealed it, and if that was under the earlier key, the next pass finds it.
pub type Reseal = fn(&mut Tx, &Seal, Option<&str>) -> Result<Option<Piece>>;

/// What became of some rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece {
    /// The position of the last of them.
    pub last: String,
    /// How many values were sealed anew.
    pub resealed: usize,
    /// How many values none of the keys opens. They stay as they are.
    pub unreadable: usize,
}

impl Piece {
    /// A piece that ends with the row at `position`.
    pub fn ending<P: Serialize>(position: &P) -> Result<Self> {
        Ok(Self { last: serde_json::to_string(position).map_err(Error::internal)?, ..Self::default() })
    }

    /// Counts the outcome of one value, and gives what is to be stored in its place.
    pub fn count(&mut self, resealed: Result<Option<String>>) -> Option<String> {
        match resealed {
            Ok(Some(sealed)) => {
                self.resealed += 1;
                Some(sealed)
            }
            Ok(None) => None,
            Err(_) => {
                self.unreadable += 1;
                None
            }
        }
    }
}

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
pub async fn reseal_table(
    db: &Db,
    seal: &std::sync::Arc<Seal>,
    table: &'static SealedTable,
) -> Result<Piece> {
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
