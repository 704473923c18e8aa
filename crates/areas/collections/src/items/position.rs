//! The operation that changes the position of an item in the manual order.

use super::answer::{self, ItemAnswer};
use super::model::{End, ItemPosition};
use model::{Caller, CollectionId, Error, ItemId, Result};
use operation::{Body, IfMatch, Path, State, operation};
use records::rows;
use records::rows::Editor;
use records::rows::order::{self, Spot};
use records::shape::Shapes;
use store::Tx;

/// Place an item in the manual order
///
/// Places the item `before` or `after` another item, or at the `position` `"first"` or `"last"`. Other items are not
/// changed: `position` is a string between those of its neighbours. Items that were never moved are ordered by
/// creation.
#[operation(put "/collections/{collectionId}/items/{itemId}/position", scope = "items:write")]
pub fn set_item_position(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(wanted): Body<ItemPosition>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<ItemAnswer> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    editor.alone(tx, order::IN_ORDER)?;
    let row = rows::locked(tx, &editor.shape, item_id)?;
    let spot = spot(&wanted)?;
    rows::refuse_locked(&row)?;
    rows::expect_version(&editor.shape, &row, if_match.into())?;
    answer::shown(&editor.shape, &order::put(tx, &editor, row, spot)?)
}

fn spot(wanted: &ItemPosition) -> Result<Spot> {
    match (wanted.before, wanted.after, wanted.position) {
        (Some(id), None, None) => Ok(Spot::Before(id)),
        (None, Some(id), None) => Ok(Spot::After(id)),
        (None, None, Some(End::First)) => Ok(Spot::First),
        (None, None, Some(End::Last)) => Ok(Spot::Last),
        _ => Err(Error::invalid("position", "must be sent, or `before`, or `after`, but only one of them")),
    }
}
