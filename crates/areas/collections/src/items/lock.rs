//! Operations that lock and unlock items. A locked item rejects changes by anybody until it is unlocked.
//!
//! A lock prevents accidental changes; it is no access control. Any key with `items:write` can remove any lock, but
//! has to send `force` to remove somebody else's.

use super::answer::{self, ItemAnswer};
use super::model::Unlocking;
use model::{Caller, CollectionId, ItemId, Result};
use operation::{Body, IfMatch, Path, State, operation};
use records::activity::Action;
use records::rows::Editor;
use records::rows::{self, refuse_locked};
use records::shape::Shapes;
use store::Tx;

/// Refuse changes until unlocked
///
/// A locked item can be read and commented on. All changes are rejected with 409 `item_locked`, including those of the
/// key that locked it. Locking an item that the same key has locked changes nothing.
#[operation(post "/collections/{collectionId}/items/{itemId}/lock", scope = "items:write")]
pub fn lock_item(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<ItemAnswer> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let row = rows::locked(tx, &editor.shape, item_id)?;
    if row.locked_by.as_ref() == Some(&editor.author.cause.actor) {
        return answer::shown(&editor.shape, &row);
    }
    refuse_locked(&row)?;
    rows::expect_version(&editor.shape, &row, if_match.into())?;
    let row = editor.writer().touch(tx, &row, Action::Locked, |row, now| {
        row.locked_by = Some(editor.author.cause.actor.clone());
        row.locked_at = Some(now);
    })?;
    answer::shown(&editor.shape, &row)
}

/// Allow changes again
///
/// The key that locked the item can unlock it; other keys must send `force`. Unlocking an item that is not locked
/// changes nothing.
#[operation(post "/collections/{collectionId}/items/{itemId}/unlock", scope = "items:write")]
pub fn unlock_item(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(how): Body<Unlocking>,
    shapes: State<Shapes>,
) -> Result<ItemAnswer> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let row = rows::locked(tx, &editor.shape, item_id)?;
    let Some(holder) = &row.locked_by else { return answer::shown(&editor.shape, &row) };
    if *holder != editor.author.cause.actor && !how.force {
        refuse_locked(&row)?;
    }
    let row = editor.writer().touch(tx, &row, Action::Unlocked, |row, _| {
        row.locked_by = None;
        row.locked_at = None;
    })?;
    answer::shown(&editor.shape, &row)
}
