//! Operations that list, create, read, change, delete and copy views.

use super::events::{ViewChanged, ViewData, ViewEvent};
use super::model::{CollectionView, NewView, Settings, ViewPatch, ViewRow};
use super::queries;
use crate::collections::rank::Rank;
use ::query::check_related;
use fields::saved::SavedQuery;
use fields::saved::SavedQueryText;
use fields::text;
use model::{Caller, Code, CollectionId, Error, JsonText, Patch, Result, ViewId};
use operation::{
    Body, Created, Deleted, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, Resource, State, Update,
    operation,
};
use records::Author;
use records::publish::{added, changed_at, differences, publish, removed};
use records::shape::{self, Shape, Shapes};
use serde::Deserialize;
use std::sync::Arc;
use store::{Read, Tx};
use utoipa::ToSchema;

/// Saved views
///
/// Lists the collection's views in their order. A view with `valid: false` uses fields or choices that no longer exist.
#[operation(get "/collections/{collectionId}/views", scope = "collections:read")]
pub fn list_views(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<CollectionView>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let now = read.now();
    let rows = queries::list(read, &shape, page.page())?;
    let views = rows.iter().map(|row| row.view(&shape, now)).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(views, |view| Rank { position: view.position, id: view.id }.to_string()))
}

/// Save a view: filters, sort, visible fields
///
/// Saves a filter, an order and a choice of fields. Use it with `view_id` when listing items.
#[operation(post "/collections/{collectionId}/views", scope = "collections:write")]
pub fn create_view(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Body(new): Body<NewView>,
    shapes: State<Shapes>,
) -> Result<Created<CollectionView>> {
    Ok(Created(create(tx, &shapes.0, &Author::of(caller), collection_id, new)?))
}

/// Creates a view.
///
/// # Errors
/// `validation_error`, `duplicate_value`, `limit_reached`, `invalid_state`.
pub fn create(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    collection: CollectionId,
    new: NewView,
) -> Result<CollectionView> {
    let shape = held(tx, shapes, author, collection)?;
    let (now, views) = (tx.now(), queries::all(tx, &shape)?);
    let text = SavedQueryText {
        filter_tree: new.filter_tree,
        sort: new.sort.unwrap_or_default(),
        visible_fields: new.visible_fields,
        group_by: new.group_by.unwrap_or_default(),
        search: new.search,
    };
    let query = SavedQuery::from_api(&shape, &text, now)?;
    if let Some(filter) = &query.filter {
        check_related(tx, shapes, &shape, filter, now)?;
    }
    let name = new.name.trim();
    let settings = Settings { query, materialized_sort: new.materialized_sort };
    refuse_unsorted(&settings)?;
    let row = ViewRow {
        id: ViewId(0),
        workspace_id: shape.workspace,
        collection_id: collection,
        name: name.to_owned(),
        name_key: text::name_key(name),
        kind: new.kind.unwrap_or_default(),
        settings: JsonText::of(&settings),
        is_default: new.is_default,
        locked: new.locked,
        position: new.position.unwrap_or_else(|| behind(&views)),
        version: 1,
        created_at: now,
        updated_at: now,
    };
    add(tx, author, &shape, &row)
}

/// Inserts a view and publishes the change.
fn add(tx: &mut Tx, author: &Author, shape: &Arc<Shape>, row: &ViewRow) -> Result<CollectionView> {
    if row.is_default {
        queries::unmark_default(tx, shape.collection)?;
    }
    let row = row.create(tx)?;
    settle(tx, shape)?;
    let view = row.view(shape, tx.now())?;
    let path = format!("views.{}", view.id);
    let event = ViewEvent::Created(ViewData { view: &view, collection_id: shape.collection });
    publish(tx, author, shape.collection, &added(&path, &view)?, &event)?;
    Ok(view)
}

/// Locks a collection until the transaction ends, in order to change its views, and returns its shape.
fn held(tx: &mut Tx, shapes: &Shapes, author: &Author, collection: CollectionId) -> Result<Arc<Shape>> {
    let row = shape::for_change(tx, author.workspace, collection)?;
    row.refuse_archived()?;
    shape::within_change(tx, shapes, author.workspace, collection)
}

/// Checks that a view is not locked.
///
/// # Errors
/// `invalid_state`.
fn refuse_locked(row: &ViewRow) -> Result<()> {
    if !row.locked {
        return Ok(());
    }
    Err(Error::new(Code::InvalidState, "The view is locked. Unlock it first.")
        .with("details", serde_json::json!({ "state": "locked" })))
}

fn settle(tx: &mut Tx, shape: &Shape) -> Result<()> {
    if queries::settle_indexes(tx, shape)? {
        shape::bump(tx, shape.collection)?;
    }
    Ok(())
}

fn behind(views: &[ViewRow]) -> i64 {
    views.iter().map(|view| view.position + 1).max().unwrap_or(0)
}

/// Checks that a view with a materialized sort has a sort.
///
/// # Errors
/// `validation_error` at `materialized_sort`.
fn refuse_unsorted(settings: &Settings) -> Result<()> {
    if settings.materialized_sort && settings.query.sort.is_empty() {
        return Err(Error::invalid("materialized_sort", "requires `sort`"));
    }
    Ok(())
}

/// One view
///
/// Returns the view. `valid` is `false` if it uses fields or choices that no longer exist.
#[operation(get "/collections/{collectionId}/views/{viewId}", scope = "collections:read")]
pub fn get_view(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(view_id): Path<ViewId>,
    shapes: State<Shapes>,
) -> Result<Json<CollectionView>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let now = read.now();
    Ok(Json(queries::find(read, &shape, view_id)?.view(&shape, now)?))
}

/// Change a view
///
/// Fields that are not sent stay unchanged. A locked view accepts only a change that unlocks it.
#[operation(patch "/collections/{collectionId}/views/{viewId}", scope = "collections:write")]
pub fn update_view(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(view_id): Path<ViewId>,
    Body(patch): Body<ViewPatch>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Json<CollectionView>> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let author = Author::of(caller);
    let shape = held(tx, &shapes.0, &author, collection_id)?;
    let (now, row) = (tx.now(), queries::find(tx, &shape, view_id)?);
    let before = row.view(&shape, now)?;
    expected.check_showing(row.version, || serde_json::to_value(&before).map_err(Error::internal))?;
    if patch.locked != Some(false) {
        refuse_locked(&row)?;
    }
    let was_default = row.is_default;
    let is_filtered = matches!(patch.filter_tree, Patch::Set(_));
    let mut update = Update::of(row, ExpectedVersion::default())?;
    let next = &mut update.row;
    if let Some(name) = &patch.name {
        next.rename(name);
    }
    next.kind = patch.kind.unwrap_or(next.kind);
    next.is_default = patch.is_default.unwrap_or(next.is_default);
    next.locked = patch.locked.unwrap_or(next.locked);
    next.position = patch.position.unwrap_or(next.position);
    let settings = changed_settings(&shape, next, patch, now)?;
    if let Some(filter) = settings.query.filter.as_ref().filter(|_| is_filtered) {
        check_related(tx, &shapes.0, &shape, filter, now)?;
    }
    next.settings = JsonText::of(&settings);
    let changed = differences(&before, &next.view(&shape, now)?)?;
    if changed.is_empty() {
        return Ok(Json(before));
    }
    if next.is_default && !was_default {
        queries::unmark_default(tx, collection_id)?;
    }
    let view = update.store(tx)?.view(&shape, now)?;
    settle(tx, &shape)?;
    let path = format!("views.{view_id}");
    let event = ViewEvent::Updated(ViewChanged { view: &view, collection_id, changed: &changed });
    publish(tx, &author, collection_id, &changed_at(&path, &changed), &event)?;
    Ok(Json(view))
}

/// Applies a patch to the query of a view. Only the parts that are sent must be valid, so that parts with deleted
/// fields can be corrected one by one.
fn changed_settings(
    shape: &Shape,
    row: &ViewRow,
    patch: ViewPatch,
    now: model::Timestamp,
) -> Result<Settings> {
    let mut settings = row.settings()?;
    let query = &mut settings.query;
    let read = |text: SavedQueryText| SavedQuery::from_api(shape, &text, now);
    match patch.filter_tree {
        Patch::Keep => {}
        Patch::Clear => query.filter = None,
        Patch::Set(tree) => {
            query.filter = read(SavedQueryText { filter_tree: Some(tree), ..Default::default() })?.filter;
        }
    }
    if let Some(sort) = patch.sort {
        query.sort = read(SavedQueryText { sort, ..Default::default() })?.sort;
    }
    match patch.visible_fields {
        Patch::Keep => {}
        Patch::Clear => query.visible = None,
        Patch::Set(fields) => {
            query.visible =
                read(SavedQueryText { visible_fields: Some(fields), ..Default::default() })?.visible;
        }
    }
    if let Some(group_by) = patch.group_by {
        query.group_by = read(SavedQueryText { group_by, ..Default::default() })?.group_by;
    }
    patch.search.apply(&mut query.search);
    settings.materialized_sort = patch.materialized_sort.unwrap_or(settings.materialized_sort);
    refuse_unsorted(&settings)?;
    Ok(settings)
}

/// Delete a view
///
/// Also deletes the index that was created for its order. A locked view must be unlocked first.
#[operation(delete "/collections/{collectionId}/views/{viewId}", scope = "collections:write")]
pub fn delete_view(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(view_id): Path<ViewId>,
    shapes: State<Shapes>,
) -> Result<Deleted<CollectionView>> {
    let author = Author::of(caller);
    let shape = held(tx, &shapes.0, &author, collection_id)?;
    let row = queries::find(tx, &shape, view_id)?;
    refuse_locked(&row)?;
    let view = row.view(&shape, tx.now())?;
    row.delete(tx)?;
    settle(tx, &shape)?;
    let path = format!("views.{view_id}");
    let event = ViewEvent::Deleted(ViewData { view: &view, collection_id });
    publish(tx, &author, collection_id, &removed(&path, &view)?, &event)?;
    Ok(Deleted::of("view", view_id))
}

/// How a copy of a view differs from the original.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Expensive toys (copy)" }))]
pub struct ViewCopy {
    /// The copy's name; the original's name with "(copy)" if not given.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    name: Option<String>,
}

/// Copy a view
///
/// The copy is not locked and is not the default view.
#[operation(post "/collections/{collectionId}/views/{viewId}/duplicate", scope = "collections:write")]
pub fn duplicate_view(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(view_id): Path<ViewId>,
    Body(copy): Body<ViewCopy>,
    shapes: State<Shapes>,
) -> Result<Created<CollectionView>> {
    let author = Author::of(caller);
    let shape = held(tx, &shapes.0, &author, collection_id)?;
    let row = queries::find(tx, &shape, view_id)?;
    let (now, views) = (tx.now(), queries::all(tx, &shape)?);
    let taken = |name: &str| views.iter().any(|view| view.name_key == text::name_key(name));
    let name = match copy.name {
        Some(name) => name.trim().to_owned(),
        None => text::copy_name(&row.name, 100, taken),
    };
    let row = ViewRow {
        name_key: text::name_key(&name),
        name,
        is_default: false,
        locked: false,
        position: behind(&views),
        version: 1,
        created_at: now,
        updated_at: now,
        ..row
    };
    add(tx, &author, &shape, &row).map(Created)
}
