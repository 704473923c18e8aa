//! Queries on views.

use super::model::{Settings, ViewRow};
use crate::collections::rank::Rank;
use diesel::prelude::*;
use fields::Part;
use fields::saved::SavedQuery;
use model::{CollectionId, Error, FieldId, JsonText, Result, ViewId};
use operation::Resource;
use records::indexes::table;
use records::schema::collection_views;
use records::shape::{IndexKind, IndexOrigin, Shape};
use serde_json::{Value, json};
use store::{OptInPage, Read, Tx};

/// Returns all views of a collection, in order.
pub(super) fn all(read: &mut Read, shape: &Shape) -> Result<Vec<ViewRow>> {
    Ok(collection_views::table
        .filter(collection_views::collection_id.eq(shape.collection))
        .filter(collection_views::workspace_id.eq(shape.workspace))
        .order((collection_views::position, collection_views::id))
        .select(ViewRow::as_select())
        .load(read.connection())?)
}

pub(super) fn list(read: &mut Read, shape: &Shape, page: &OptInPage) -> Result<Vec<ViewRow>> {
    let mut query = collection_views::table
        .filter(collection_views::collection_id.eq(shape.collection))
        .filter(collection_views::workspace_id.eq(shape.workspace))
        .order((collection_views::position, collection_views::id))
        .limit(page.fetch())
        .select(ViewRow::as_select())
        .into_boxed();
    if let Some(Rank { position, id }) = page.after::<Rank<ViewId>>()? {
        query = query.filter(
            collection_views::position
                .gt(position)
                .or(collection_views::position.eq(position).and(collection_views::id.gt(id))),
        );
    }
    Ok(query.load(read.connection())?)
}

/// Returns a view of the collection.
///
/// # Errors
/// `not_found`.
pub(super) fn find(read: &mut Read, shape: &Shape, id: ViewId) -> Result<ViewRow> {
    let row = ViewRow::find(read, shape.workspace, &id)?;
    if row.collection_id == shape.collection { Ok(row) } else { Err(Error::not_found(ViewRow::NOUN)) }
}

/// Loads the query of a view.
///
/// # Errors
/// `not_found`, and `view_invalid` if it names a deleted field.
pub fn load(read: &mut Read, shape: &Shape, id: ViewId) -> Result<SavedQuery> {
    let query = find(read, shape, id)?.settings()?.query;
    query.check(shape, read.now())?;
    Ok(query)
}

/// Clears the mark of the default view.
pub(super) fn unmark_default(tx: &mut Tx, collection: CollectionId) -> Result<()> {
    diesel::update(
        collection_views::table
            .filter(collection_views::collection_id.eq(collection))
            .filter(collection_views::is_default.eq(true)),
    )
    .set(collection_views::is_default.eq(false))
    .execute(tx.connection())?;
    Ok(())
}

/// Creates the indexes that materialized sorts of views need, and drops those that they no longer need. Returns
/// whether indexes changed.
pub(super) fn settle_indexes(tx: &mut Tx, shape: &Shape) -> Result<bool> {
    let mut wanted: Vec<Vec<Part>> = Vec::new();
    for view in all(tx, shape)? {
        let settings = view.settings()?;
        let usable = settings.query.sort.iter().all(|part| part.subject.family(shape).is_some());
        if settings.materialized_sort && usable && !wanted.contains(&settings.query.sort) {
            wanted.push(settings.query.sort);
        }
    }
    let mut changed = false;
    for row in table::rows(tx, shape.collection)? {
        if row.origin != IndexOrigin::View {
            continue;
        }
        let parts: Vec<Part> = row.parts.parse()?;
        match wanted.iter().position(|sort| *sort == parts) {
            Some(place) => {
                wanted.swap_remove(place);
            }
            None => {
                table::drop(tx, &row)?;
                changed = true;
            }
        }
    }
    for sort in &wanted {
        table::begin(tx, shape, IndexKind::Composite, sort, IndexOrigin::View)?;
        changed = true;
    }
    if changed {
        table::refuse_too_many(tx, shape.collection, 0)?;
    }
    Ok(changed)
}

/// Returns the views that a field's deletion would make invalid, as details of the error.
pub(in crate::collections) fn users_of(read: &mut Read, shape: &Shape, field: FieldId) -> Result<Vec<Value>> {
    let mut users = Vec::new();
    for view in all(read, shape)? {
        if view.settings()?.query.needs().contains(&field) {
            users.push(json!({ "object": "view", "id": view.id, "name": view.name }));
        }
    }
    Ok(users)
}

/// Copies the views of a collection to another one whose fields have the same keys.
pub(in crate::collections) fn copy_all(tx: &mut Tx, from: &Shape, to: &Shape) -> Result<()> {
    let now = tx.now();
    for view in all(tx, from)? {
        let settings = view.settings()?;
        let text = settings.query.to_api(from);
        // An invalid view cannot be translated to the new fields, so it is left out.
        let Ok(query) = SavedQuery::from_api(to, &text, now) else { continue };
        let copy = ViewRow {
            collection_id: to.collection,
            settings: JsonText::of(&Settings { query, ..settings }),
            version: 1,
            created_at: now,
            updated_at: now,
            ..view
        };
        copy.insert(tx)?;
    }
    settle_indexes(tx, to).map(drop)
}
