//! Operations that list, create, read and change collections.

use super::create;
use super::events::{CollectionChanged, CollectionEvent};
use super::groups;
use super::model::{Collection, CollectionPatch, CollectionStatus, NewCollection};
use super::queries::{self, Filter};
use super::rank::Rank;
use fields::text;
use model::{Caller, CollectionGroupId, CollectionId, Error, JsonText, Result};
use operation::{
    Body, Created, Cx, ExpectedVersion, IfMatch, Json, OptIn, OptInList, Path, Query, State, operation,
};
use records::Author;
use records::definitions;
use records::definitions::rewrite::{self, Begun, RewritePlan};
use records::indexes::uniques;
use records::publish::{differences, publish};
use records::shape::{self, CollectionSettings, Shapes};
use serde::Deserialize;
use store::{Read, Tx};
use utoipa::IntoParams;

/// Which collections to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct CollectionQuery {
    /// Only collections of this group.
    #[serde(default)]
    #[param(value_type = Option<i64>)]
    group_id: Option<CollectionGroupId>,
    /// Only collections in this state; active ones if not given.
    #[serde(default)]
    status: Option<CollectionStatus>,
    /// Only collections whose name contains this text, regardless of case.
    #[serde(default)]
    #[param(max_length = 120)]
    q: Option<String>,
}

/// List collections
///
/// Lists collections in their order, without their fields. Archived collections are left out unless `status=archived`.
#[operation(get "/collections", scope = "collections:read")]
pub fn list_collections(
    read: &mut Read,
    caller: &Caller,
    Query(query): Query<CollectionQuery>,
    page: OptIn,
) -> Result<OptInList<Collection>> {
    let filter = Filter {
        group: query.group_id,
        status: query.status.unwrap_or(CollectionStatus::Active),
        words: query.q,
    };
    let rows = queries::list(read, caller.workspace_id(), filter, page.page())?;
    let collections = queries::briefly(read, rows)?;
    let rank = |row: &Collection| Rank { position: row.position, id: row.id };
    Ok(page.answer(collections, |row| rank(row).to_string()))
}

/// Create a collection with its fields
///
/// Without `fields`, the collection gets one text field called `name`. The value of the primary field is the title of
/// an item. A slug that another collection has is a 409 `duplicate_value`.
#[operation(post "/collections", scope = "collections:write")]
pub fn create_collection(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewCollection>,
    shapes: State<Shapes>,
) -> Result<Created<Collection>> {
    Ok(Created(create::create(tx, &shapes.0, &Author::of(caller), new)?))
}

/// Collection with its fields
///
/// Returns the collection with its fields and settings. Archived collections can be read too; deleted ones are a 404.
#[operation(get "/collections/{collectionId}", scope = "collections:read")]
pub fn get_collection(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    shapes: State<Shapes>,
) -> Result<Json<Collection>> {
    Ok(Json(queries::whole(read, &shapes.0, caller.workspace_id(), collection_id)?))
}

/// Change a collection's name and settings
///
/// Fields that are not sent stay unchanged. With `version` or `If-Match`, the request is rejected with 409
/// `version_conflict` if the collection was changed in the meantime. Fields and views have their own operations.
#[operation(patch "/collections/{collectionId}", scope = "collections:write")]
pub async fn update_collection(
    cx: &Cx,
    Path(collection_id): Path<CollectionId>,
    Body(patch): Body<CollectionPatch>,
    if_match: IfMatch,
    State(shapes): State<Shapes>,
) -> Result<Json<Collection>> {
    let author = Author::of(&cx.caller);
    let expected = ExpectedVersion::new(if_match, patch.version)?;
    let known = shapes.clone();
    let change = cx.change(move |tx| update(tx, &known, &author, collection_id, patch.clone(), expected));
    let begun = change.await?;
    rewrite::finish_soon(&cx.db, &shapes, begun).await?;
    let workspace = cx.caller.workspace_id();
    let collection = cx.db.read(move |read| queries::whole(read, &shapes, workspace, collection_id));
    Ok(Json(collection.await?))
}

fn update(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    id: CollectionId,
    patch: CollectionPatch,
    expected: ExpectedVersion,
) -> Result<Option<Begun>> {
    let workspace = author.workspace;
    if patch.name.is_some() || patch.slug.is_some() {
        queries::lock_names(tx, workspace)?;
    }
    if let model::Patch::Set(group) = patch.group_id {
        groups::expect(tx, workspace, group)?;
    }
    let old = shape::for_change(tx, workspace, id)?;
    let before = queries::after_change(tx, shapes, workspace, id)?;
    expected.check_showing(old.version, || serde_json::to_value(&before).map_err(Error::internal))?;
    old.refuse_archived()?;
    let shape = shape::within_change(tx, shapes, workspace, id)?;
    let mut row = old.clone();
    if let Some(name) = patch.name {
        name.trim().clone_into(&mut row.name);
        row.name_key = text::name_key(&row.name);
        queries::refuse_taken_name(tx, workspace, &row.name, Some(id))?;
    }
    if let Some(slug) = patch.slug {
        queries::refuse_taken_slug(tx, workspace, &slug, Some(id))?;
        row.slug = slug;
    }
    patch.description.apply(&mut row.description);
    patch.icon.apply(&mut row.icon);
    patch.color.apply(&mut row.color);
    patch.group_id.apply(&mut row.group_id);
    row.position = patch.position.unwrap_or(row.position);
    if let Some(key) = &patch.primary_field {
        row.primary_field_id = Some(definitions::expect_primary(&shape, key)?);
    }
    if let Some(patch) = patch.settings {
        let mut settings: CollectionSettings = row.settings.parse()?;
        patch.apply(&mut settings);
        uniques::keys(&shape, &settings.unique_keys)
            .map_err(|mistake| Error::invalid(mistake.param, mistake.message))?;
        row.settings = JsonText::of(&settings);
    }
    let after = {
        let primary =
            row.primary_field_id.and_then(|id| shape.field_by_id(id)).map(|field| field.key.clone());
        let counted = records::count::ItemCount { items: 0, exact_at: None };
        Collection::of(row.clone(), primary, counted, None)?
    };
    let changed = differences(&before, &after)?;
    if changed.is_empty() {
        return Ok(None);
    }
    queries::store(tx, &row)?;
    let begun = follow(tx, shapes, author, &old, &row)?;
    let collection = queries::after_change(tx, shapes, workspace, id)?;
    let event = CollectionEvent::Updated(CollectionChanged { collection: &collection, changed: &changed });
    publish(tx, author, id, &changed, &event)?;
    Ok(begun)
}

/// Adapts indexes and titles to changed unique keys and a changed primary field. Returns the rewrite of titles, if
/// one is needed.
fn follow(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    old: &shape::CollectionRow,
    row: &shape::CollectionRow,
) -> Result<Option<Begun>> {
    let retitled = old.primary_field_id != row.primary_field_id;
    if !retitled && old.settings == row.settings {
        return Ok(None);
    }
    shape::bump(tx, row.id)?;
    let shape = shape::within_change(tx, shapes, author.workspace, row.id)?;
    if uniques::settle(tx, &shape, &[])? {
        shape::bump(tx, row.id)?;
    }
    if !retitled {
        return Ok(None);
    }
    rewrite::begin(tx, &shape, None, &RewritePlan { titles: true, ..RewritePlan::default() })
}
