//! Operations that create, read and change items.

use super::answer::{self, ItemAnswer};
use super::item::Item;
use super::model::{ItemPatch, ItemQuery, ItemReplacement, NewItem, mode};
use super::together::create_items;
use model::{Caller, CollectionId, Error, ItemId, Result};
use operation::{
    Body, ExpectedVersion, FromInput, IfMatch, Input, Path, Prepare, PreparedBody, Query, RawCreated, State,
    With, operation,
};
use records::rows;
use records::rows::values::{self, Missing};
use records::rows::write::Draft;
use records::rows::{Editor, ItemChange, PreparedItem};
use records::selection;
use records::shape::{Shape, Shapes};
use store::{Read, Tx};

/// Create an item
///
/// Fields that are not sent get their default values. A value must have the JSON type of its field, unless `typecast`
/// is set. A value of a unique field that another item has is a 409 `duplicate_value`.
#[operation(post "/collections/{collectionId}/items", scope = "items:write", together = create_items)]
pub fn create_item(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    new: PreparedBody<NewItem>,
    shapes: State<Shapes>,
) -> Result<With<RawCreated<Item<'static>>>> {
    let (inputs, typecast) = (std::iter::once(&new.body.data), new.body.typecast);
    let editor = Editor::open_for(tx, caller, &shapes.0, collection_id, typecast, inputs)?;
    let creation = PreparedItem::or_draft(new.take(), &editor.shape, |shape| new.body.draft(shape))?;
    let row = editor.writer().create(tx, creation)?;
    answer::created(&editor.shape, &row)
}

impl NewItem {
    /// Builds the draft of the item.
    fn draft(&self, shape: &Shape) -> Result<Draft> {
        let data = values::merge(shape, None, &self.data, Missing::Default, mode(self.typecast), "")?;
        Ok(Draft { data, external_key: self.external_key.clone(), position: None })
    }
}

impl Prepare for NewItem {
    type Prepared = PreparedItem;

    fn prepare(&self, input: &Input<'_>) -> Option<PreparedItem> {
        let Path(collection) = Path::from_input(input, "collectionId").ok()?;
        let shapes = input.services.get::<Shapes>().ok()?;
        PreparedItem::of(&shapes, input.caller, collection, |shape| self.draft(shape))
    }
}

/// One item
///
/// Returns the item with its values. The `ETag` header is the item's version. Send it as `If-Match` with a change to
/// prevent overwriting changes by others.
#[operation(get "/collections/{collectionId}/items/{itemId}", scope = "items:read")]
pub fn get_item(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Query(query): Query<ItemQuery>,
    wanted: selection::Selection,
    shapes: State<Shapes>,
) -> Result<ItemAnswer> {
    let (shape, row) = rows::find_with_shape(read, &shapes.0, caller.workspace_id(), collection_id, item_id)?;
    let row = row.filter(|row| query.trashed || row.trashed_at.is_none());
    answer::selected(read, &shapes.0, &shape, &wanted, &row.ok_or_else(|| Error::not_found("item"))?)
}

/// Change the given fields
///
/// Fields that are not sent stay unchanged; `null` clears a field. A request that changes nothing leaves the version
/// unchanged. With `version` or `If-Match`, the request is rejected with 409 `version_conflict` if the item was changed
/// in the meantime.
#[operation(patch "/collections/{collectionId}/items/{itemId}", scope = "items:write")]
pub fn update_item(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(patch): Body<ItemPatch>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<ItemAnswer> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let inputs = std::iter::once(&patch.data);
    let editor = Editor::open_for(tx, caller, &shapes.0, collection_id, patch.typecast, inputs)?;
    let change = ItemChange {
        data: &patch.data,
        missing: Missing::Keep,
        mode: mode(patch.typecast),
        external_key: patch.external_key,
        expected,
        path: "",
    };
    let row = change.locked(tx, &editor, item_id)?;
    answer::shown(&editor.shape, &change.make(tx, &editor, row)?.row)
}

/// Replace all fields
///
/// Fields that are not sent lose their values. Values that the service sets are kept.
#[operation(put "/collections/{collectionId}/items/{itemId}", scope = "items:write")]
pub fn replace_item(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(new): Body<ItemReplacement>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<ItemAnswer> {
    let expected = ExpectedVersion::new(if_match, new.version)?;
    let inputs = std::iter::once(&new.data);
    let editor = Editor::open_for(tx, caller, &shapes.0, collection_id, new.typecast, inputs)?;
    let change = ItemChange {
        data: &new.data,
        missing: Missing::Clear,
        mode: mode(new.typecast),
        external_key: new.external_key,
        expected,
        path: "",
    };
    let row = change.locked(tx, &editor, item_id)?;
    answer::shown(&editor.shape, &change.make(tx, &editor, row)?.row)
}
