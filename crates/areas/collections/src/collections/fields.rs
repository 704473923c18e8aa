//! Operations on the fields of collections.

use super::events::{CollectionChanged, CollectionEvent};
use super::field_options::ForceQuery;
use super::queries;
use super::rank::Rank;
use super::views;
use diesel::prelude::*;
use fields::Field;
use model::{Caller, CollectionId, Error, FieldId, Result};
use operation::{
    Body, Created, Cx, Deleted, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, Query, Rows, State,
    operation,
};
use records::Author;
use records::activity::{Changes, change};
use records::definitions::change::{FieldTarget, run};
use records::definitions::remove::delete;
use records::definitions::{CollectionField, FieldPatch, NewField, create, read_field, rewrite};
use records::publish::publish;
use records::schema::collection_fields;
use records::shape::{self, Shape, Shapes};
use serde::Deserialize;
use serde_json::json;
use store::{Read, Tx};
use utoipa::ToSchema;

/// Field definitions in order
///
/// Lists the collection's fields in their order.
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
/// Adds a field at the end. Existing items get the default value if the field is required. A key that another field has
/// is a 409 `duplicate_value`.
#[operation(post "/collections/{collectionId}/fields", scope = "collections:write")]
pub async fn create_field(
    cx: &Cx,
    Path(collection_id): Path<CollectionId>,
    Body(new): Body<NewField>,
    State(shapes): State<Shapes>,
) -> Result<Created<CollectionField>> {
    let author = Author::of(&cx.caller);
    let known = shapes.clone();
    let change = cx.change(move |tx| create(tx, &known, &author, collection_id, new.clone()));
    let (field, begun) = change.await?;
    rewrite::finish_all_soon(&cx.db, &shapes, begun).await?;
    let workspace = cx.caller.workspace_id();
    let field = cx.db.read(move |read| read_field(read, &shapes, workspace, collection_id, field)).await?;
    Ok(Created(field))
}

/// One field
///
/// Returns the field with its options. `converting` shows the progress of a type change.
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

/// Change a field; a type change converts or refuses
///
/// A change of type converts the values of all items: at once for up to 5,000 items, in the background for more, with
/// the progress in `converting`. A conversion that loses values is rejected with 409, unless `force` is `true`. With
/// `dry_run`, nothing is changed, and `conversion` reports what would happen.
#[operation(patch "/collections/{collectionId}/fields/{fieldId}", scope = "collections:write")]
pub async fn update_field(
    cx: &Cx,
    Path(collection_id): Path<CollectionId>,
    Path(field_id): Path<FieldId>,
    Body(patch): Body<FieldPatch>,
    if_match: IfMatch,
    State(shapes): State<Shapes>,
) -> Result<Json<CollectionField>> {
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let change = FieldTarget { collection: collection_id, field: field_id, expected };
    Ok(Json(run(cx, &shapes, change, move |_| Ok(patch.clone())).await?))
}

/// Delete a field and its values
///
/// A field that a view, a computed field, a unique key or a reverse relation uses is a 409 `field_in_use`. With
/// `force=true` it is deleted anyway: its views become invalid, its unique keys and its reverse field are deleted. The
/// key can be used again when the values are removed from all items.
#[operation(delete "/collections/{collectionId}/fields/{fieldId}", scope = "collections:write")]
pub async fn delete_field(
    cx: &Cx,
    Path(collection_id): Path<CollectionId>,
    Path(field_id): Path<FieldId>,
    Query(query): Query<ForceQuery>,
    State(shapes): State<Shapes>,
) -> Result<Deleted<CollectionField>> {
    let author = Author::of(&cx.caller);
    let force = query.force == Some(true);
    let known = shapes.clone();
    let begun = cx
        .change(move |tx| {
            delete(tx, &known, &author, collection_id, field_id, force, |tx, shape| {
                views::users_of(tx, shape, field_id)
            })
        })
        .await?;
    rewrite::finish_all_soon(&cx.db, &shapes, begun).await?;
    Ok(Deleted::of("field", field_id))
}

/// The order of a collection's fields.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "field_ids": [1, 2, 4, 3, 5, 6, 7, 8] }))]
pub struct FieldOrder {
    /// The ids of all fields of the collection, each once.
    #[schema(min_items = 1, max_items = 500)]
    field_ids: Vec<FieldId>,
}

/// Set the order of the fields
///
/// `field_ids` must contain every field of the collection exactly once. Returns the fields in their new order.
#[operation(put "/collections/{collectionId}/fields/order", scope = "collections:write")]
pub fn reorder_fields(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Body(order): Body<FieldOrder>,
    shapes: State<Shapes>,
) -> Result<Rows<CollectionField>> {
    let author = Author::of(caller);
    let row = shape::for_change(tx, author.workspace, collection_id)?;
    row.refuse_archived()?;
    let before = shape::within_change(tx, &shapes.0, author.workspace, collection_id)?;
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
    let after = shape::within_change(tx, &shapes.0, author.workspace, collection_id)?;
    let (old, new) = (json!(keys(&before)), json!(keys(&after)));
    if old != new {
        let collection = queries::after_change(tx, &shapes.0, author.workspace, collection_id)?;
        let changed = Changes::from_iter([("fields".to_owned(), change(Some(&old), Some(&new)))]);
        let data = CollectionChanged { collection: &collection, changed: &changed };
        publish(tx, &author, collection_id, &changed, &CollectionEvent::Updated(data))?;
    }
    let progress = rewrite::progress(tx, collection_id)?;
    let of = |field: &Field| CollectionField::of(&after, field, progress.get(&field.id).copied());
    Ok(Rows(after.fields.iter().map(of).collect()))
}

/// Checks that a new order has each field of the collection exactly once.
///
/// # Errors
/// `validation_error` at `field_ids`.
fn check_order(shape: &Shape, ids: &[FieldId]) -> Result<()> {
    for (place, id) in ids.iter().enumerate() {
        if shape.field_by_id(*id).is_none() {
            return Err(Error::invalid(format!("field_ids[{place}]"), "is not a field of this collection"));
        }
        if ids.iter().take(place).any(|other| other == id) {
            return Err(Error::invalid(format!("field_ids[{place}]"), "must not repeat an earlier entry"));
        }
    }
    let left = shape.fields.iter().find(|field| !ids.contains(&field.id));
    left.map_or(Ok(()), |left| {
        Err(Error::invalid("field_ids", format!("must contain all fields: {} is missing", left.id)))
    })
}
