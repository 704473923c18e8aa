//! Asking for computed values to be brought up to date in the background.

use crate::shape::Shape;
use model::{CollectionId, FieldId, ItemId, Result, WorkspaceId};
use serde::{Deserialize, Serialize};
use store::Tx;

/// The job that brings computed values up to date.
pub(crate) const RECOMPUTE: &str = "data.recompute";

/// What is to be brought up to date.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Work {
    pub(super) workspace: WorkspaceId,
    pub(super) of: Of,
    /// Items up to this one are done.
    pub(super) after: ItemId,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Of {
    /// All items of a collection, because its computed fields changed. Nobody is told.
    Collection(CollectionId),
    /// The items that point to one by a field, because it changed.
    Pointing { field: FieldId, item: ItemId },
    /// One item that has too many links to be computed in passing.
    Item { collection: CollectionId, item: ItemId },
}

impl Work {
    pub(super) fn enqueue(&self, tx: &mut Tx) -> Result<()> {
        let after = self.after;
        let key = match self.of {
            Of::Collection(collection) => format!("{RECOMPUTE}:collection:{collection}:{after}"),
            Of::Pointing { field, item } => format!("{RECOMPUTE}:pointing:{field}:{item}:{after}"),
            Of::Item { item, .. } => format!("{RECOMPUTE}:item:{item}"),
        };
        let now = tx.now();
        tx.enqueue(self.workspace, RECOMPUTE, Some(&key), self, now)
    }
}

/// Asks for the computed values of all items of a collection, after a computed field was created or changed.
///
/// # Errors
/// The database's.
pub fn enqueue_recompute(tx: &mut Tx, workspace: WorkspaceId, collection: CollectionId) -> Result<()> {
    Work { workspace, of: Of::Collection(collection), after: ItemId(0) }.enqueue(tx)
}

/// Asks for the items behind `after` that point to an item by a field.
pub(crate) fn enqueue_pointing(
    tx: &mut Tx,
    workspace: WorkspaceId,
    field: FieldId,
    item: ItemId,
    after: ItemId,
) -> Result<()> {
    Work { workspace, of: Of::Pointing { field, item }, after }.enqueue(tx)
}

/// Asks for one item.
pub(crate) fn enqueue_item(tx: &mut Tx, shape: &Shape, item: ItemId) -> Result<()> {
    let of = Of::Item { collection: shape.collection, item };
    Work { workspace: shape.workspace, of, after: ItemId(0) }.enqueue(tx)
}
