//! Creating, reading and changing items.

use super::desk::{self, Desk, Shown};
use super::find;
use super::model::{ItemPatch, ItemQuery, ItemReplacement, NewItem, mode};
use super::row::{Item, ItemRow};
use super::values::{self, Missing};
use super::write::{self, Draft};
use crate::links::{self, Grip, Grips};
use crate::output;
use crate::shape::{self, Shapes};
use fields::Data;
use fields::value::Mode;
use model::{Caller, CollectionId, Error, ItemId, Patch, Result};
use operation::{Body, ExpectedVersion, IfMatch, Path, Query, RawCreated, RawJson, State, With, operation};
use store::{Read, Tx};

/// Create an item
///
/// Fields that are not named get their defaults. Each value has the JSON type of its field, unless `typecast` is set.
#[operation(post "/collections/{collectionId}/items", scope = "items:write")]
pub fn create_item(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Body(new): Body<NewItem>,
    shapes: State<Shapes>,
) -> Result<With<RawCreated<Item>>> {
    let inputs = std::iter::once(&new.data);
    let desk = Desk::open_for(tx, caller, &shapes.0, collection_id, new.typecast, inputs)?;
    let data = values::merge(&desk.shape, None, &new.data, Missing::Default, mode(new.typecast), "")?;
    let draft = Draft { data, external_key: new.external_key, position: None };
    let row = desk.writer().insert(tx, draft)?;
    desk::created(&desk.shape, &row)
}

/// One item
///
/// The `ETag` is the item's version; send it as `If-Match` with a change that must not overwrite another.
#[operation(get "/collections/{collectionId}/items/{itemId}", scope = "items:read")]
pub fn get_item(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Query(query): Query<ItemQuery>,
    wanted: output::Shown,
    shapes: State<Shapes>,
) -> Result<Shown> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let row = if query.trashed {
        find::find(read, &shape, item_id)?.ok_or_else(|| Error::not_found("item"))?
    } else {
        find::live(read, &shape, item_id)?
    };
    let mut text = String::with_capacity(row.data.as_str().len() + 512);
    wanted.printer(read, &shapes.0, &shape, None, &[&row])?.print(&row, &mut text)?;
    Ok(With::etag(row.version, RawJson::new(text)))
}

/// Change the given fields
///
/// Fields that are not named stay as they are, and `null` clears one. A change that changes nothing leaves the version
/// as it is.
#[operation(patch "/collections/{collectionId}/items/{itemId}", scope = "items:write")]
pub fn update_item(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(patch): Body<ItemPatch>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Shown> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let inputs = std::iter::once(&patch.data);
    let desk = Desk::open_for(tx, caller, &shapes.0, collection_id, patch.typecast, inputs)?;
    let change = Change {
        data: &patch.data,
        missing: Missing::Keep,
        mode: mode(patch.typecast),
        external_key: patch.external_key,
        expected,
        path: "",
    };
    let row = change.locked(tx, &desk, item_id)?;
    desk::shown(&desk.shape, &change.make(tx, &desk, row)?.row)
}

/// Replace all fields
///
/// Fields that are not named lose their values; what the service sets stays.
#[operation(put "/collections/{collectionId}/items/{itemId}", scope = "items:write")]
pub fn replace_item(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(new): Body<ItemReplacement>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Shown> {
    let expected = ExpectedVersion::new(if_match, new.version)?;
    let inputs = std::iter::once(&new.data);
    let desk = Desk::open_for(tx, caller, &shapes.0, collection_id, new.typecast, inputs)?;
    let change = Change {
        data: &new.data,
        missing: Missing::Clear,
        mode: mode(new.typecast),
        external_key: new.external_key,
        expected,
        path: "",
    };
    let row = change.locked(tx, &desk, item_id)?;
    desk::shown(&desk.shape, &change.make(tx, &desk, row)?.row)
}

/// A change of an item's values, as a caller asks for it.
pub(crate) struct Change<'a> {
    pub(crate) data: &'a Data,
    pub(crate) missing: Missing,
    pub(crate) mode: Mode,
    pub(crate) external_key: Patch<String>,
    pub(crate) expected: ExpectedVersion,
    /// What stands before the names of fields in errors, such as `rows[3].`.
    pub(crate) path: &'a str,
}

impl Change<'_> {
    /// Locks the live item that is to be changed, with the items at the other ends of links that the change makes or
    /// removes.
    ///
    /// # Errors
    /// `not_found`.
    pub(crate) fn locked(&self, tx: &mut Tx, desk: &Desk<'_>, id: ItemId) -> Result<ItemRow> {
        if desk.relates(self.data, self.missing) {
            links::hold(tx, desk.shape.workspace, |tx| {
                let mut grips = Grips::default();
                self.foresee(tx, desk, id, &mut grips)?;
                Ok(grips)
            })?;
        }
        find::locked(tx, &desk.shape, id)
    }

    /// Adds to `grips` the item, and the items at the other ends of links that the change would make or remove now.
    ///
    /// # Errors
    /// The database's.
    pub(crate) fn foresee(&self, tx: &mut Tx, desk: &Desk<'_>, id: ItemId, grips: &mut Grips) -> Result<()> {
        grips.add([id], Grip::Changing);
        let row = find::find(tx, &desk.shape, id)?.filter(|row| row.trashed_at.is_none());
        let Some(row) = row else { return Ok(()) };
        let before = row.values()?;
        // What is wrong is told when the change is made.
        match values::merge(&desk.shape, Some(&before), self.data, self.missing, self.mode, self.path) {
            Ok(data) => links::foresee(tx, &desk.writer(), Some(&row), &data, grips),
            Err(_) => Ok(()),
        }
    }

    /// Makes it to a live item that this transaction has locked.
    ///
    /// # Errors
    /// `version_conflict`, `item_locked`, `validation_error`, `duplicate_value`.
    pub(crate) fn make(self, tx: &mut Tx, desk: &Desk<'_>, row: ItemRow) -> Result<write::Written> {
        find::refuse_locked(&row)?;
        find::expect_version(&desk.shape, &row, self.expected)?;
        let before = row.values()?;
        let data = values::merge(&desk.shape, Some(&before), self.data, self.missing, self.mode, self.path)?;
        let mut external_key = row.external_key.clone();
        self.external_key.apply(&mut external_key);
        let draft = Draft { data, external_key, position: row.position.clone() };
        desk.writer().update(tx, row, draft)
    }
}
