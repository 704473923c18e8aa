//! Indexes: their rows, building them beside other work, and unique values.
//!
//! Writes keep an index up from the moment it is there; a job ([`build`](mod@build)) fills in what was there before, and only then do
//! queries use it.

mod build;
mod elements;
mod entries;
mod events;
pub mod table;
pub mod uniques;

pub(crate) use build::build_job;
pub use build::{build, find};
pub use elements::{count_ids, count_words, having_id};
pub use entries::{IndexEntry, in_range};
pub use events::IndexEvent;

use crate::shape::{self, IndexKind, IndexOrigin, IndexRow, Shape};
use fields::{Family, Part};
use model::{Error, JsonText, Result};
use store::Tx;

/// Begins an index. The caller holds the collection ([`shape::for_change`]).
///
/// # Errors
/// 409 `duplicate_value`, `limit_reached`.
pub fn create(
    tx: &mut Tx,
    shape: &Shape,
    kind: IndexKind,
    parts: &[Part],
    origin: IndexOrigin,
) -> Result<IndexRow> {
    let there = table::rows(tx, shape.collection)?;
    let text = JsonText::of(&parts);
    if let Some(row) = there.iter().find(|row| row.kind == kind && row.parts == text) {
        return Err(Error::duplicate("fields", "There is already an index of these fields.", row.id));
    }
    if kind != IndexKind::Columnar {
        table::refuse_too_many(tx, shape.collection, 1)?;
    }
    let row = table::begin(tx, shape, kind, parts, origin)?;
    shape::bump(tx, shape.collection)?;
    Ok(row)
}

/// Lets an index go: no query and no write looks at it from now on, and a job takes its rows away.
///
/// # Errors
/// When the database fails.
pub fn drop_index(tx: &mut Tx, row: &IndexRow) -> Result<()> {
    table::drop(tx, row)?;
    shape::bump(tx, row.collection_id)
}

/// The kind of index that finds records by `parts` and orders them so. One over a single field is read in both
/// directions, so it has none.
pub fn kind_for(shape: &Shape, parts: &mut [Part]) -> IndexKind {
    match parts {
        [part] => {
            part.desc = false;
            if part.subject.family(shape).is_some_and(Family::is_set) {
                IndexKind::Set
            } else {
                IndexKind::Single
            }
        }
        _ => IndexKind::Composite,
    }
}
