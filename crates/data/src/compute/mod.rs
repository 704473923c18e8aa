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

use crate::decimal::Loss;
use crate::items::{Data, ItemRow};
use crate::shape::{Field, FieldType, Shape};
use diesel::prelude::*;
use model::{JsonText, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use store::schema::collection_fields;
use store::{Tx, each};
use utoipa::ToSchema;

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

/// Why a number cannot be computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ComputedError {
    /// Something is divided by zero.
    DivisionByZero,
    /// It is a root or a power that is no real number, such as the root of -1.
    NoRealNumber,
    /// It has more digits than a number keeps.
    TooPrecise,
    /// It is greater, or nearer to zero, than a number can be.
    OutOfRange,
}

impl From<Loss> for ComputedError {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::TooPrecise => Self::TooPrecise,
            Loss::OutOfRange => Self::OutOfRange,
        }
    }
}

/// Why computed fields have no value, by their keys.
pub type ComputedErrors = BTreeMap<String, ComputedError>;

/// The form in which a row holds them.
pub(crate) fn stored(errors: &ComputedErrors) -> Option<JsonText> {
    (!errors.is_empty()).then(|| JsonText::of(errors))
}

/// Keeps the result of a computed field, or why there is none.
fn keep(
    key: &str,
    result: Result<Option<Value>, ComputedError>,
    data: &mut Data,
    errors: &mut ComputedErrors,
) {
    errors.remove(key);
    match result {
        Ok(Some(value)) => data.insert(key.to_owned(), value),
        Ok(None) => data.shift_remove(key),
        Err(error) => {
            errors.insert(key.to_owned(), error);
            data.shift_remove(key)
        }
    };
}

/// Computes rollups, lookups and formulas of an item (`None` for one that has no id yet) and puts its values in the
/// order of the fields.
///
/// # Errors
/// The database's. What has no answer for these values has no value, and `errors` says why.
pub(crate) fn complete(
    tx: &mut Tx,
    shape: &Shape,
    row: Option<&ItemRow>,
    extent: Extent,
    data: &mut Data,
    errors: &mut ComputedErrors,
) -> Result<()> {
    errors.retain(|key, _| shape.field(key).is_some_and(|field| field.kind.is_computed()));
    rollup::fill(tx, shape, row, extent, data, errors)?;
    derive(shape, data, errors);
    Ok(())
}

/// Computes what an item's own values decide, and puts them in the order of the fields.
pub(crate) fn derive(shape: &Shape, data: &mut Data, errors: &mut ComputedErrors) {
    formulas(shape, data, errors);
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
pub(crate) fn formulas(shape: &Shape, data: &mut Data, errors: &mut ComputedErrors) {
    for field in shape.formulas() {
        let read = |field: &Field| {
            errors.get(&field.key).map_or(Ok(data.get(&field.key).cloned()), |error| Err(*error))
        };
        let result = field.formula().map_or(Ok(None), |formula| formula.value(shape, &read));
        keep(&field.key, result, data, errors);
    }
}
