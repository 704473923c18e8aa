//! Computed values: numbers that count up, formulas, rollups and lookups.
//!
//! Results are stored with the item, so that reads, filters and sorts treat them like any other value. What a field
//! looks at is a graph without cycles over all collections of the workspace: [`check`] keeps it so.

mod enqueue;
mod extent;
mod graph;
pub mod jobs;
pub mod rollup;
mod spread;

pub(crate) use enqueue::RECOMPUTE;
pub(crate) use enqueue::enqueue_pointing;
pub use enqueue::enqueue_recompute;
pub use extent::Extent;
pub use graph::{Candidate, check};
pub(crate) use jobs::recompute;

use crate::rows::ItemRow;
use crate::schema::collection_fields;
use crate::shape::Shape;
use diesel::prelude::*;
use fields::ComputedErrors;
use fields::Data;
use fields::computed;
use fields::{Field, FieldType};
use model::{Error, JsonText, Result};
use store::{Tx, each};

/// Gives new items their numbers, in order.
///
/// # Errors
/// The database's.
pub fn number<'a>(
    tx: &mut Tx,
    shape: &Shape,
    items: impl ExactSizeIterator<Item = &'a mut Data>,
) -> Result<()> {
    let fields: Vec<&Field> = numbered(shape).collect();
    if fields.is_empty() {
        return Ok(());
    }
    let mut items: Vec<&mut Data> = items.collect();
    let many = i64::try_from(items.len()).map_err(Error::internal)?;
    for field in fields {
        let first = take_numbers(tx, field, many)?;
        for (number, data) in (first..).zip(&mut items) {
            // Whatever it had is not in its place among the fields.
            data.remove(&field.key);
            data.insert(field.key.clone(), number.into());
        }
    }
    Ok(())
}

/// Gives an item the numbers that it does not have yet.
///
/// # Errors
/// The database's.
pub(crate) fn number_missing(tx: &mut Tx, shape: &Shape, data: &mut Data) -> Result<()> {
    for field in numbered(shape) {
        if !data.contains_key(&field.key) {
            let number = take_numbers(tx, field, 1)?;
            data.insert(field.key.clone(), number.into());
        }
    }
    Ok(())
}

fn numbered(shape: &Shape) -> impl Iterator<Item = &Field> {
    shape.fields.iter().filter(|field| field.kind == FieldType::AutoNumber)
}

/// Takes the next numbers of a field, which nobody else gets unless the transaction fails; gives the first.
fn take_numbers(tx: &mut Tx, field: &Field, many: i64) -> Result<i64> {
    let taken = store::Cached(
        diesel::update(collection_fields::table.find(field.id))
            .set(collection_fields::next_number.eq(collection_fields::next_number + many))
            .returning(collection_fields::next_number),
    );
    let next: i64 = each!(tx.connection(), |connection| taken.get_result(connection))?;
    Ok(next - many)
}

/// The form in which a row holds them.
pub fn stored(errors: &ComputedErrors) -> Option<JsonText> {
    (!errors.is_empty()).then(|| JsonText::of(errors))
}

/// Computes rollups, lookups and formulas of an item (`None` for one that has no id yet) and puts its values in the
/// order of the fields.
///
/// # Errors
/// The database's. What has no answer for these values has no value, and `errors` says why.
pub fn complete(
    tx: &mut Tx,
    shape: &Shape,
    row: Option<&ItemRow>,
    extent: Extent,
    data: &mut Data,
    errors: &mut ComputedErrors,
) -> Result<()> {
    errors.retain(|key, _| shape.field(key).is_some_and(|field| field.kind.is_computed()));
    rollup::fill(tx, shape, row, extent, data, errors)?;
    computed::derive(shape, data, errors);
    Ok(())
}
