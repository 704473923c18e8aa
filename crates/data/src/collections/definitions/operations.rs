//! Listing, creating, reading and ordering fields.

use super::create::create;
use super::model::{CollectionField, NewField};
use super::rewrite;
use crate::author::Author;
use crate::collections::queries;
use crate::collections::rank::Rank;
use crate::collections::tell::{News, tell};
use crate::items::activity::{Changes, change};
use crate::shape::{self, Shape, Shapes};
use diesel::prelude::*;
use fields::Field;
use model::{Caller, CollectionId, Error, FieldId, Result};
use operation::{Body, Created, Cx, Json, OptIn, OptInList, Path, Rows, State, operation};
use serde::Deserialize;
use serde_json::json;
use store::schema::collection_fields;
use store::{Read, Tx};
use utoipa::ToSchema;

/// Field definitions in order
#[operation(get "/collections/{collectionId}/fields", scope = "collections:read", ceiling = 500)]
pub fn list_fields(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    page: OptIn,
    shapes: State<Shapes>,
) -> Result<OptInList<CollectionField>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let after = page.page().after::<Rank<FieldId>>()?;
    let progress = rewrite::progress(read, collection_id)?;
    let limit = usize::try_from(page.page().fetch()).unwrap_or(usize::MAX);
    let fields = shape
        .fields
        .iter()
        .filter(|field| after.is_none_or(|after| Rank { position: field.position, id: field.id } > after))
        .take(limit)
        .map(|field| CollectionField::of(&shape, field, progress.get(&field.id).copied()))
        .collect();
    let rank = |field: &CollectionField| Rank { position: field.position, id: field.id };
    Ok(page.answer(fields, |field| rank(field).to_string()))
}

/// Add a field
///
/// Items that are there already get the default where the field is required.
#[operation(post "/collections/{collectionId}/fields", scope = "collections:write")]
pub async fn create_field(
    cx: &Cx,
    Path(collection_id): Path<CollectionId>,
    Body(new): Body<NewField>,
) -> Result<Created<CollectionField>> {
    let shapes = cx.services.get::<Shapes>()?;
    let author = Author::of(&cx.caller);
    let (field, begun) = cx.change(move |tx| create(tx, &author, collection_id, new.clone())).await?;
    rewrite::finish_soon(&cx.db, &shapes, begun).await?;
    let workspace = cx.caller.workspace_id();
    let field = cx.db.read(move |read| read_field(read, &shapes, workspace, collection_id, field)).await?;
    Ok(Created(field))
}

/// One field
#[operation(get "/collections/{collectionId}/fields/{fieldId}", scope = "collections:read")]
pub fn get_field(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(field_id): Path<FieldId>,
    shapes: State<Shapes>,
) -> Result<Json<CollectionField>> {
    Ok(Json(read_field(read, &shapes.0, caller.workspace_id(), collection_id, field_id)?))
}

/// A field as it is now.
///
/// # Errors
/// `not_found`.
pub(super) fn read_field(
    read: &mut Read,
    shapes: &Shapes,
    workspace: model::WorkspaceId,
    collection: CollectionId,
    id: FieldId,
) -> Result<CollectionField> {
    let shape = shape::for_read(read, shapes, workspace, collection)?;
    let field = shape.field_by_id(id).ok_or_else(|| Error::not_found("field"))?;
    let progress = rewrite::progress(read, collection)?;
    Ok(CollectionField::of(&shape, field, progress.get(&id).copied()))
}

/// An order of fields.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldOrder {
    /// The ids of all fields, each once.
    #[schema(min_items = 1, max_items = 500)]
    field_ids: Vec<FieldId>,
}

/// Set the order of the fields
#[operation(put "/collections/{collectionId}/fields/order", scope = "collections:write")]
pub fn reorder_fields(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Body(order): Body<FieldOrder>,
) -> Result<Rows<CollectionField>> {
    let author = Author::of(caller);
    let row = shape::for_change(tx, author.workspace, collection_id)?;
    queries::refuse_archived(&row)?;
    let before = shape::within_change(tx, author.workspace, collection_id)?;
    check_order(&before, &order.field_ids)?;
    let keys = |shape: &Shape| shape.fields.iter().map(|field| field.key.clone()).collect::<Vec<_>>();
    let now = tx.now();
    for (place, id) in order.field_ids.iter().enumerate() {
        let position = i64::try_from(place).unwrap_or(i64::MAX);
        diesel::update(collection_fields::table.find(*id).filter(collection_fields::position.ne(position)))
            .set((
                collection_fields::position.eq(position),
                collection_fields::version.eq(collection_fields::version + 1),
                collection_fields::updated_at.eq(now),
            ))
            .execute(tx.connection())?;
    }
    shape::bump(tx, collection_id)?;
    let after = shape::within_change(tx, author.workspace, collection_id)?;
    let (old, new) = (json!(keys(&before)), json!(keys(&after)));
    if old != new {
        let collection = queries::after_change(tx, author.workspace, collection_id)?;
        let changed = Changes::from_iter([("fields".to_owned(), change(Some(&old), Some(&new)))]);
        let news =
            News { collection: collection_id, event: "collection.updated", object: "collection", path: "" };
        tell(tx, &author, news, &collection, Some(&changed))?;
    }
    let progress = rewrite::progress(tx, collection_id)?;
    let of = |field: &Field| CollectionField::of(&after, field, progress.get(&field.id).copied());
    Ok(Rows(after.fields.iter().map(of).collect()))
}

/// # Errors
/// `validation_error` at `field_ids`.
fn check_order(shape: &Shape, ids: &[FieldId]) -> Result<()> {
    for (place, id) in ids.iter().enumerate() {
        if shape.field_by_id(*id).is_none() {
            return Err(Error::invalid(format!("field_ids[{place}]"), "is not a field of this collection"));
        }
        if ids.iter().take(place).any(|other| other == id) {
            return Err(Error::invalid(format!("field_ids[{place}]"), "is there twice"));
        }
    }
    let left = shape.fields.iter().find(|field| !ids.contains(&field.id));
    left.map_or(Ok(()), |left| {
        Err(Error::invalid("field_ids", format!("must name all fields: {} is missing", left.id)))
    })
}
