//! Links of items that go to the trash, come back, or are deleted for good.
//!
//! Links stay in the table while an end is in the trash: nobody sees them, and they come back with it.

use super::locks::{self, LockSet, hold};
use super::relation::{self, Others};
use super::table::{self, ITEM};
use crate::Author;
use crate::activity::Action;
use crate::compute;
use crate::rows::{self, ItemRow, Writer};
use crate::schema::item_links;
use crate::shape::{self, Shape, Shapes};
use diesel::prelude::*;
use fields::OnDelete;
use jobs::JobContext;
use model::{Cause, Code, Error, FieldId, ItemId, JsonText, RequestRef, Result, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use store::LockMode;
use store::Tx;

/// As many items follow another into the trash in its own transaction; the rest in a job.
const FOLLOW_AT_ONCE: usize = 1_000;

/// As many items have their copies of links brought up to date in the transaction that made them wrong.
const COPIES_AT_ONCE: usize = 100;

/// A job's transaction takes this many.
const SLICE: usize = 50;

/// The job that sends further items after one that went to the trash.
pub(crate) const CASCADE: &str = "data.links.cascade";

/// Holds items that are about to go to the trash, what follows them there, and what points to any of them.
///
/// # Errors
/// The database's.
pub fn hold_leaving(tx: &mut Tx, shapes: &Shapes, workspace: WorkspaceId, ids: &[ItemId]) -> Result<()> {
    let mut homes = Homes::new();
    hold(tx, workspace, |tx| {
        let mut locks = LockSet::default();
        add_leaving(tx, shapes, workspace, ids, &mut homes, &mut locks)?;
        Ok(locks)
    })
}

/// Holds items that are about to be deleted for good, live or in the trash, with all at the other ends of their links.
///
/// # Errors
/// The database's.
pub fn hold_purged(tx: &mut Tx, shapes: &Shapes, workspace: WorkspaceId, ids: &[ItemId]) -> Result<()> {
    let mut homes = Homes::new();
    hold(tx, workspace, |tx| {
        let mut locks = LockSet::default();
        let live = table::live_among(tx, workspace, ids)?;
        add_leaving(tx, shapes, workspace, &live, &mut homes, &mut locks)?;
        locks.add(locks::all_ends(tx, workspace, ids)?, LockMode::Shared);
        locks.add(ids.iter().copied(), LockMode::Exclusive);
        Ok(locks)
    })
}

/// Holds an item that is about to come back from the trash, and what points to it.
///
/// # Errors
/// The database's.
pub fn hold_returning(tx: &mut Tx, shapes: &Shapes, workspace: WorkspaceId, id: ItemId) -> Result<()> {
    hold(tx, workspace, |tx| {
        let mut locks = LockSet::default();
        locks.add([id], LockMode::Exclusive);
        for (_, field) in pointing_fields(tx, shapes, workspace, id)? {
            locks.add(table::all_pointing(tx, workspace, id, field, FOLLOW_AT_ONCE)?, LockMode::Exclusive);
        }
        Ok(locks)
    })
}

/// The shapes of the collections of relation fields, which are the same for all items that are looked at.
type Homes = HashMap<FieldId, Option<Arc<Shape>>>;

fn add_leaving(
    tx: &mut Tx,
    shapes: &Shapes,
    workspace: WorkspaceId,
    ids: &[ItemId],
    homes: &mut Homes,
    locks: &mut LockSet,
) -> Result<()> {
    let mut seen: HashSet<ItemId> = ids.iter().copied().collect();
    let mut open: VecDeque<ItemId> = ids.iter().copied().collect();
    // As many as are sent after one of them at once, for each.
    let mut left = FOLLOW_AT_ONCE.saturating_mul(ids.len());
    while let Some(item) = open.pop_front() {
        locks.add([item], LockMode::Exclusive);
        for field in table::pointing_fields(tx, workspace, item)? {
            let shape = match homes.entry(field) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(home(tx, shapes, workspace, field)?),
            };
            let Some(found) = shape.as_ref().and_then(|shape| shape.field_by_id(field)) else { continue };
            match found.options.on_delete.unwrap_or(OnDelete::Detach) {
                OnDelete::Restrict => {}
                OnDelete::Detach => {
                    let pointing = table::pointing(tx, workspace, item, field, ItemId(0), COPIES_AT_ONCE)?;
                    locks.add(pointing, LockMode::Exclusive);
                }
                OnDelete::Cascade => {
                    let most = FOLLOW_AT_ONCE.min(left);
                    let mut following = table::pointing(tx, workspace, item, field, ItemId(0), most)?;
                    following.retain(|item| seen.insert(*item));
                    left -= following.len();
                    open.extend(following);
                }
            }
        }
    }
    Ok(())
}

/// What else happens when an item goes to the trash.
#[derive(Debug, Default)]
pub(crate) struct Fallout {
    /// Fields whose items go to the trash too, with their collections.
    cascades: Vec<(Arc<Shape>, FieldId)>,
    /// Items that lose their pointer.
    detached: Others,
    /// What all that goes to the trash has in common, where more than the item itself does.
    operation: Option<String>,
}

impl Fallout {
    /// Who moves the item and all that follows it.
    pub fn author(&self, author: &Author) -> Author {
        Author { operation: author.operation.clone().or_else(|| self.operation.clone()), ..author.clone() }
    }
}

/// What else happens when an item, which is marked as in the trash by now, goes there.
///
/// # Errors
/// `resource_in_use` where an item points to it by a field that forbids its deletion.
pub(crate) fn fallout(tx: &mut Tx, writer: &Writer<'_>, row: &ItemRow) -> Result<Fallout> {
    let mut fallout = Fallout::default();
    for (shape, field) in pointing_fields(tx, writer.shapes, row.workspace_id, row.id)? {
        let Some(found) = shape.field_by_id(field) else { continue };
        match found.options.on_delete.unwrap_or(OnDelete::Detach) {
            OnDelete::Restrict => refuse_pointed_to(tx, row, field, &found.key)?,
            OnDelete::Cascade => fallout.cascades.push((shape, field)),
            OnDelete::Detach => show_pointing(tx, row, &shape, field, &mut fallout.detached)?,
        }
    }
    if !fallout.cascades.is_empty() {
        let named = writer.author.cause.request.as_ref().map(|request| request.id.to_string());
        fallout.operation = Some(named.unwrap_or_else(|| format!("trash_{}_{}", row.id, row.version)));
    }
    Ok(fallout)
}

/// Adds the items that point to one by a field to those that are to be brought up to date; leaves them to a job where
/// they are many.
fn show_pointing(
    tx: &mut Tx,
    row: &ItemRow,
    shape: &Shape,
    field: FieldId,
    others: &mut Others,
) -> Result<()> {
    let left = COPIES_AT_ONCE.saturating_sub(others.len());
    let mut items = table::pointing(tx, row.workspace_id, row.id, field, ItemId(0), left + 1)?;
    if items.len() > left {
        items.truncate(left);
        let after = items.last().copied().unwrap_or(ItemId(0));
        compute::enqueue_pointing(tx, row.workspace_id, field, row.id, after)?;
    }
    others.extend(items.into_iter().map(|item| (shape.collection, item)));
    others.sort_unstable_by_key(|(_, item)| *item);
    others.dedup();
    Ok(())
}

/// The relation fields by which an item is pointed to, with the shapes of their collections.
fn pointing_fields(
    tx: &mut Tx,
    shapes: &Shapes,
    workspace: WorkspaceId,
    item: ItemId,
) -> Result<Vec<(Arc<Shape>, FieldId)>> {
    let mut found = Vec::new();
    for field in table::pointing_fields(tx, workspace, item)? {
        found.extend(home(tx, shapes, workspace, field)?.map(|shape| (shape, field)));
    }
    Ok(found)
}

/// The shape of a field's collection; `None` where either is gone.
fn home(tx: &mut Tx, shapes: &Shapes, workspace: WorkspaceId, field: FieldId) -> Result<Option<Arc<Shape>>> {
    let Some(home) = table::home(tx, workspace, field)? else { return Ok(None) };
    match shape::held(tx, shapes, workspace, home) {
        Err(error) if error.code() == Code::NotFound => Ok(None),
        other => other.map(Some),
    }
}

fn refuse_pointed_to(tx: &mut Tx, row: &ItemRow, field: FieldId, key: &str) -> Result<()> {
    let items = table::pointing(tx, row.workspace_id, row.id, field, ItemId(0), 10)?;
    if items.is_empty() {
        return Ok(());
    }
    let message = format!("Other items refer to item {} by `{key}`, which restricts its deletion.", row.id);
    Err(Error::new(Code::ResourceInUse, message)
        .with("details", json!({ "item_id": row.id, "field_key": key, "item_ids": items })))
}

/// An item went to the trash: what follows it is sent after it, what only pointed to it loses its copy.
///
/// # Errors
/// `item_locked` and `resource_in_use` for items that follow, or the database's.
pub(crate) fn let_go(tx: &mut Tx, writer: &Writer<'_>, row: &ItemRow, fallout: Fallout) -> Result<()> {
    let mut left = FOLLOW_AT_ONCE;
    let mut detached = fallout.detached;
    // A queue, because items can follow each other through any number of steps.
    let mut cascades: VecDeque<(Arc<Shape>, FieldId, ItemId)> =
        fallout.cascades.into_iter().map(|(shape, field)| (shape, field, row.id)).collect();
    while let Some((shape, field, pointed_to)) = cascades.pop_front() {
        let items = table::pointing(tx, row.workspace_id, pointed_to, field, ItemId(0), left + 1)?;
        if items.len() > left {
            enqueue_cascade(tx, writer.author, pointed_to, field)?;
        }
        for item in items.into_iter().take(left) {
            let Some(more) = follow(tx, &Writer { shape: &shape, ..*writer }, item)? else { continue };
            left -= 1;
            detached.extend(more.detached);
            cascades.extend(more.cascades.into_iter().map(|(shape, field)| (shape, field, item)));
        }
    }
    detached.sort_unstable_by_key(|(_, item)| *item);
    detached.dedup();
    writer.renew_all(tx, detached, Action::Updated)?;
    Ok(())
}

/// Sends an item to the trash after another, unless it is there already because it followed a third.
fn follow(tx: &mut Tx, writer: &Writer<'_>, item: ItemId) -> Result<Option<Fallout>> {
    rows::lock(tx, item)?;
    match rows::find(tx, writer.shape, item)?.filter(|row| row.trashed_at.is_none()) {
        Some(row) => writer.send_to_trash(tx, &row).map(|(_, fallout)| Some(fallout)),
        None => Ok(None),
    }
}

/// An item that is marked as live by now comes back from the trash. Where the one place that a link can have was taken
/// meanwhile, the link is gone.
pub(crate) fn take_back(tx: &mut Tx, writer: &Writer<'_>, row: &ItemRow) -> Result<()> {
    for (shape, field) in pointing_fields(tx, writer.shapes, row.workspace_id, row.id)? {
        let Some(found) = shape.field_by_id(field) else { continue };
        let Some(ends) = relation::ends(tx, writer.shapes, &shape, found)? else { continue };
        if !ends.one {
            continue;
        }
        for item in table::pointing_elsewhere(tx, row.workspace_id, row.id, field)? {
            table::delete(tx, item, field, ends.back(), &[row.id])?;
        }
    }
    Ok(())
}

/// An item is back from the trash: whoever points to it shows it again. `true` where anything was brought up to date.
pub(crate) fn return_to(tx: &mut Tx, writer: &Writer<'_>, row: &ItemRow) -> Result<bool> {
    let mut others = Others::new();
    for (shape, field) in pointing_fields(tx, writer.shapes, row.workspace_id, row.id)? {
        show_pointing(tx, row, &shape, field, &mut others)?;
    }
    writer.renew_all(tx, others, Action::Updated)
}

/// An item is deleted for good, and its links at both ends with it.
pub fn forget(tx: &mut Tx, row: &ItemRow) -> Result<()> {
    diesel::delete(item_links::table.filter(item_links::item_id.eq(row.id))).execute(tx.connection())?;
    let to_it = item_links::table
        .filter(item_links::to_kind.eq(ITEM))
        .filter(item_links::to_id.eq(row.id.to_string()))
        .filter(item_links::workspace_id.eq(row.workspace_id));
    diesel::delete(to_it).execute(tx.connection())?;
    Ok(())
}

/// What is left to be sent after an item.
#[derive(Debug, Serialize, Deserialize)]
struct Cascade {
    workspace: WorkspaceId,
    item: ItemId,
    field: FieldId,
    actor: serde_json::Value,
    #[serde(default)]
    request: Option<RequestRef>,
    source: serde_json::Value,
    operation: Option<String>,
    emits: bool,
}

fn enqueue_cascade(tx: &mut Tx, author: &Author, item: ItemId, field: FieldId) -> Result<()> {
    let payload = Cascade {
        workspace: author.workspace,
        item,
        field,
        actor: author.cause.actor.parse()?,
        request: author.cause.request.clone(),
        source: author.source.parse()?,
        operation: author.operation.clone(),
        emits: author.emits,
    };
    let now = tx.now();
    tx.enqueue(author.workspace, CASCADE, Some(&format!("{CASCADE}:{field}:{item}")), &payload, now)
}

/// Sends items after one that went to the trash, some at a time, until all are there. It ends where the item came back
/// meanwhile. Items that somebody locked, or that others forbid to delete, stay.
///
/// # Errors
/// The database's.
pub async fn cascade(shapes: &Arc<Shapes>, job: JobContext) -> Result<()> {
    let mut after = Some(ItemId(0));
    while let Some(from) = after {
        let (payload, shapes) = (job.payload.parse::<Cascade>()?, shapes.clone());
        after = job.db.write(move |tx| cascade_slice(tx, &shapes, &payload, from)).await?;
    }
    Ok(())
}

/// One transaction of [`cascade`]; gives where to go on.
fn cascade_slice(tx: &mut Tx, shapes: &Shapes, payload: &Cascade, after: ItemId) -> Result<Option<ItemId>> {
    let Some(shape) = home(tx, shapes, payload.workspace, payload.field)? else { return Ok(None) };
    if !table::is_in_trash(tx, payload.workspace, payload.item)? {
        return Ok(None);
    }
    let author = Author {
        cause: Cause {
            request: payload.request.clone(),
            actor: JsonText::of(&payload.actor),
            chain: None,
            trace: None,
        },
        source: JsonText::of(&payload.source),
        operation: payload.operation.clone(),
        emits: payload.emits,
        ..Author::system(payload.workspace, "cascade")
    };
    let writer = Writer { shapes, shape: &shape, author: &author };
    let items = table::pointing(tx, payload.workspace, payload.item, payload.field, after, SLICE)?;
    hold_leaving(tx, shapes, payload.workspace, &items)?;
    for item in &items {
        let followed = tx.savepoint(|tx| {
            rows::lock(tx, *item)?;
            match rows::find(tx, &shape, *item)?.filter(|row| row.trashed_at.is_none()) {
                Some(row) => writer.trash(tx, &row).map(drop),
                None => Ok(()),
            }
        });
        match followed {
            Err(error) if matches!(error.code(), Code::ItemLocked | Code::ResourceInUse) => {
                tracing::info!(item = item.0, "an item did not follow another into the trash");
            }
            other => other?,
        }
    }
    Ok(items.last().copied().filter(|_| items.len() == SLICE))
}
