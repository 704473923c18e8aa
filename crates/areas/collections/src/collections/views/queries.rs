//! Views in the database.

use super::model::{Settings, ViewRow};
use crate::collections::rank::Rank;
use diesel::prelude::*;
use fields::Part;
use fields::saved::SavedQuery;
use model::{CollectionId, Error, FieldId, JsonText, Result, ViewId};
use records::indexes::table;
use records::schema::collection_views;
use records::shape::{IndexKind, IndexOrigin, Shape};
use serde_json::{Value, json};
use store::{OptInPage, Read, Tx};

/// The most views of a collection.
pub(super) const MOST: usize = 200;

/// All views of a collection, in order.
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

/// A view of the collection.
///
/// # Errors
/// `not_found`.
pub(super) fn find(read: &mut Read, shape: &Shape, id: ViewId) -> Result<ViewRow> {
    collection_views::table
        .filter(collection_views::id.eq(id))
        .filter(collection_views::collection_id.eq(shape.collection))
        .filter(collection_views::workspace_id.eq(shape.workspace))
        .select(ViewRow::as_select())
        .get_result(read.connection())
        .optional()?
        .ok_or_else(|| Error::not_found("view"))
}

/// How a view looks at items, for whoever reads them by it.
///
/// # Errors
/// `not_found`, and `view_invalid` where it names what is gone.
pub fn load(read: &mut Read, shape: &Shape, id: ViewId) -> Result<SavedQuery> {
    let query = find(read, shape, id)?.settings()?.query;
    query.check(shape, read.now())?;
    Ok(query)
}

pub(super) fn insert(tx: &mut Tx, shape: &Shape, row: &ViewRow) -> Result<ViewRow> {
    let values = (
        collection_views::workspace_id.eq(row.workspace_id),
        collection_views::collection_id.eq(shape.collection),
        collection_views::name.eq(&row.name),
        collection_views::name_key.eq(&row.name_key),
        collection_views::kind.eq(row.kind),
        collection_views::settings.eq(&row.settings),
        collection_views::is_default.eq(row.is_default),
        collection_views::locked.eq(row.locked),
        collection_views::position.eq(row.position),
        collection_views::version.eq(row.version),
        collection_views::created_at.eq(row.created_at),
        collection_views::updated_at.eq(row.updated_at),
    );
    Ok(diesel::insert_into(collection_views::table)
        .values(values)
        .returning(collection_views::all_columns)
        .get_result(tx.connection())?)
}

pub(super) fn store(tx: &mut Tx, row: &ViewRow) -> Result<()> {
    diesel::update(collection_views::table.find(row.id)).set(row).execute(tx.connection())?;
    Ok(())
}

pub(super) fn delete(tx: &mut Tx, id: ViewId) -> Result<()> {
    diesel::delete(collection_views::table.find(id)).execute(tx.connection())?;
    Ok(())
}

/// Takes the mark off whichever view is the default.
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

/// # Errors
/// `duplicate_value` at `name`.
pub(super) fn refuse_taken_name(views: &[ViewRow], name: &str, except: Option<ViewId>) -> Result<()> {
    let key = fields::text::name_key(name);
    let holder = views.iter().find(|view| view.name_key == key && Some(view.id) != except);
    holder.map_or(Ok(()), |holder| {
        Err(Error::duplicate("name", "Another view of the collection has this name.", holder.id))
    })
}

/// Makes the indexes for orders of views those that the views ask for. `true` where indexes changed.
///
/// # Errors
/// `limit_reached`.
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

/// The views that would not be valid without a field.
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
        // One that is not valid could not be read back.
        let Ok(query) = SavedQuery::from_api(to, &text, now) else { continue };
        let copy = ViewRow {
            settings: JsonText::of(&Settings { query, ..settings }),
            version: 1,
            created_at: now,
            updated_at: now,
            ..view
        };
        insert(tx, to, &copy)?;
    }
    settle_indexes(tx, to).map(drop)
}
