//! Links from items to other objects.
//!
//! Relation fields and free links are one table, `item_links`, so that both ends always agree. An item's own values hold
//! a copy of the first 25 ids of each relation field; the table is the truth.

use crate::items::activity::Changes;
use crate::items::{Data, ItemRow, Writer};
use crate::shape::Shape;
use model::{ItemId, JsonText, Result};
use operation::Operations;
use store::Tx;

pub(crate) fn operations() -> Operations {
    vec![]
}

/// What a write says of relation fields: by field, the ids before and after.
#[derive(Debug, Default)]
pub(crate) struct References(
    #[expect(dead_code, reason = "read when relation fields are")]
    Vec<(model::FieldId, Vec<ItemId>, Vec<ItemId>)>,
);

/// Takes the relation fields that a write changes out of its values, and checks that what they name exists.
pub(crate) fn take_references(
    _tx: &mut Tx,
    _shape: &Shape,
    _old: Option<&ItemRow>,
    _data: &mut Data,
) -> Result<References> {
    Ok(References::default())
}

pub(crate) fn differences(_references: &References) -> Changes {
    Changes::new()
}

/// Makes the links of an item what a write says. `true` where any changed, so that the item's copy is out of date.
pub(crate) fn point(
    _tx: &mut Tx,
    _writer: &Writer<'_>,
    _row: &ItemRow,
    _references: References,
) -> Result<bool> {
    Ok(false)
}

/// Puts the copy of relation fields into an item's values; gives what was cut.
pub(crate) fn inline(
    _tx: &mut Tx,
    _shape: &Shape,
    row: &ItemRow,
    _data: &mut Data,
) -> Result<Option<JsonText>> {
    Ok(row.more.clone())
}

/// An item went to the trash.
pub(crate) fn let_go(_tx: &mut Tx, _writer: &Writer<'_>, _row: &ItemRow) -> Result<()> {
    Ok(())
}

/// An item came back from the trash.
pub(crate) fn take_back(_tx: &mut Tx, _writer: &Writer<'_>, _row: &ItemRow) -> Result<()> {
    Ok(())
}

/// An item is deleted for good.
pub(crate) fn forget(_tx: &mut Tx, _row: &ItemRow) -> Result<()> {
    Ok(())
}
