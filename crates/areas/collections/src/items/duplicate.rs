//! The operation that copies an item.

use super::answer;
use super::item::Item;
use super::model::{ItemCopy, mode};
use fields::Data;
use fields::FieldType;
use fields::value::MOST_RELATED;
use model::{Caller, CollectionId, ItemId, Result};
use operation::{Body, Path, RawCreated, State, With, operation};
use records::links::table::pointed_to;
use records::rows;
use records::rows::Editor;
use records::rows::ItemRow;
use records::rows::values::{self, Missing};
use records::rows::write::Draft;
use records::shape::{Shape, Shapes};
use store::{Read, Tx};

/// Copy an item
///
/// The copy has the item's values, including relations; `data` overrides them. Values of unique fields must be
/// overridden or cleared, or the request is rejected with 409 `duplicate_value`. The external key, comments, files and
/// free links are not copied.
#[operation(post "/collections/{collectionId}/items/{itemId}/duplicate", scope = "items:write")]
pub fn duplicate_item(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(copy): Body<ItemCopy>,
    shapes: State<Shapes>,
) -> Result<With<RawCreated<Item<'static>>>> {
    let inputs = std::iter::once(&copy.data);
    let editor = Editor::open_for(tx, caller, &shapes.0, collection_id, copy.typecast, inputs)?;
    let row = rows::live(tx, &editor.shape, item_id)?;
    let given = written_values(tx, &editor.shape, &row)?;
    // Merge as if the existing item were changed, so that archived choices can be kept.
    let mode = mode(copy.typecast);
    let data = values::merge(&editor.shape, Some(&given), &copy.data, Missing::Keep, mode, "")?;
    let draft = Draft { data, external_key: copy.external_key, position: None };
    let row = editor.writer().insert(tx, draft)?;
    answer::created(&editor.shape, &row)
}

/// Returns the writable values of an item, with all targets of relation fields.
pub(super) fn written_values(read: &mut Read, shape: &Shape, row: &ItemRow) -> Result<Data> {
    let mut data = row.values()?;
    data.retain(|key, _| shape.field(key).is_some_and(|field| !field.kind.is_read_only()));
    for field in shape.fields.iter().filter(|field| field.kind == FieldType::Relation) {
        let ids = pointed_to(read, row.id, field.id, MOST_RELATED)?;
        if ids.is_empty() {
            data.remove(&field.key);
        } else {
            data.insert(field.key.clone(), ids.iter().map(|id| id.0).collect());
        }
    }
    Ok(data)
}
