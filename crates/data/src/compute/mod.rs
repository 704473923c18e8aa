//! Computed values: numbers that count up, formulas, rollups and lookups.
//!
//! Results are stored with the item, so that reads, filters and sorts treat them like any other value. What a field
//! looks at is a graph without cycles over all collections of the workspace: [`check`] keeps it so.

pub mod formula;
mod graph;
pub(crate) mod jobs;
pub mod rollup;
mod spread;

pub use graph::{Candidate, check};
pub use jobs::{RECOMPUTE, enqueue_recompute, recompute};
pub(crate) use rollup::Extent;
pub(crate) use spread::{renew, spread};

use crate::items::{Data, ItemRow};
use crate::shape::{Field, FieldType, Shape};
use diesel::prelude::*;
use model::Result;
use store::schema::collection_fields;
use store::{Tx, each};

/// Gives a new item its numbers.
///
/// # Errors
/// The database's.
pub(crate) fn number(tx: &mut Tx, shape: &Shape, data: &mut Data) -> Result<()> {
    for field in shape.fields.iter().filter(|field| field.kind == FieldType::AutoNumber) {
        data.remove(&field.key);
    }
    number_missing(tx, shape, data)
}

/// Gives an item the numbers that it does not have yet.
///
/// # Errors
/// The database's.
pub(crate) fn number_missing(tx: &mut Tx, shape: &Shape, data: &mut Data) -> Result<()> {
    let missing = |field: &&Field| field.kind == FieldType::AutoNumber && !data.contains_key(&field.key);
    let missing: Vec<&Field> = shape.fields.iter().filter(missing).collect();
    for field in missing {
        let taken = store::Cached(
            diesel::update(collection_fields::table.find(field.id))
                .set(collection_fields::next_number.eq(collection_fields::next_number + 1))
                .returning(collection_fields::next_number),
        );
        let next: i64 = each!(tx.connection(), |connection| taken.get_result(connection))?;
        data.insert(field.key.clone(), (next - 1).into());
    }
    Ok(())
}

/// Computes rollups, lookups and formulas of an item (`None` for one that has no id yet) and puts its values in the
/// order of the fields.
///
/// # Errors
/// The database's. A formula that has no answer for these values has no value.
pub(crate) fn complete(
    tx: &mut Tx,
    shape: &Shape,
    row: Option<&ItemRow>,
    extent: Extent,
    data: &mut Data,
) -> Result<()> {
    rollup::fill(tx, shape, row, extent, data)?;
    derive(shape, data);
    Ok(())
}

/// Computes what an item's own values decide, and puts them in the order of the fields.
pub(crate) fn derive(shape: &Shape, data: &mut Data) {
    formulas(shape, data);
    if shape.fields.iter().any(|field| field.kind.is_read_only()) {
        order(shape, data);
    }
}

/// Puts the values in the order of the fields; those of no field go.
pub(crate) fn order(shape: &Shape, data: &mut Data) {
    let mut unordered = std::mem::take(data);
    let of = |field: &Field| unordered.remove(&field.key).map(|value| (field.key.clone(), value));
    *data = shape.fields.iter().filter_map(of).collect();
}

/// Computes the formulas of an item, each after those that it reads.
pub(crate) fn formulas(shape: &Shape, data: &mut Data) {
    for field in shape.formulas() {
        let value =
            field.formula().and_then(|formula| formula.value(shape, &|field| data.get(&field.key).cloned()));
        match value {
            Some(value) => data.insert(field.key.clone(), value),
            None => data.remove(&field.key),
        };
    }
}
