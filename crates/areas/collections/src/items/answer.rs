//! Responses with an item.

use super::item::Item;
use model::Result;
use operation::{RawCreated, RawJson, With};
use records::print::Printer;
use records::rows::ItemRow;
use records::selection::Selection;
use records::shape::{Shape, Shapes};
use store::Read;

/// An item as an answer, with its version as `ETag`.
pub(crate) type ItemAnswer = With<RawJson<Item<'static>>>;

/// Builds the response with an item.
pub(crate) fn shown(shape: &Shape, row: &ItemRow) -> Result<ItemAnswer> {
    Ok(With::etag(row.version, RawJson::new(printed(shape, row)?)))
}

/// Builds the response with the selected members of an item.
pub(crate) fn selected(
    read: &mut Read,
    shapes: &Shapes,
    shape: &Shape,
    wanted: &Selection,
    row: &ItemRow,
) -> Result<ItemAnswer> {
    let mut out = String::with_capacity(row.data.as_str().len() + 512);
    wanted.printer(read, shapes, shape, None, &[row])?.print(row, &mut out)?;
    Ok(With::etag(row.version, RawJson::new(out)))
}

/// The answer that shows an item that was created.
///
/// # Errors
/// When what is stored is damaged.
pub(crate) fn created(shape: &Shape, row: &ItemRow) -> Result<With<RawCreated<Item<'static>>>> {
    Ok(With::etag(row.version, RawCreated::new(printed(shape, row)?)))
}

fn printed(shape: &Shape, row: &ItemRow) -> Result<String> {
    let mut out = String::with_capacity(row.data.as_str().len() + 512);
    Printer::whole(shape).print(row, &mut out)?;
    Ok(out)
}
