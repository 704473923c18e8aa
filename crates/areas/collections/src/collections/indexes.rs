//! Operations on the indexes of a collection.
//!
//! Writes maintain an index from its creation. A job ([`records::indexes::build`]) adds the existing items, and
//! queries use the index once the job is done.

use fields::filter::subject;
use fields::{Family, FieldType, Part, Subject};
use model::{Caller, Code, CollectionId, Error, IndexId, Result, Timestamp, string_enum};
use operation::{Body, Created, Deleted, Path, Rows, State, operation};
use records::indexes;
use records::indexes::table;
use records::shape::{self, IndexKind, IndexOrigin, IndexRow, IndexStatus, Shape, Shapes};
use serde::{Deserialize, Serialize};
use store::{Read, Tx};
use utoipa::ToSchema;

/// An index on fields of a collection.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = CollectionIndex)]
#[schema(example = json!({
    "kind": "composite",
    "fields": [{ "field": "category", "direction": "asc" }, { "field": "price", "direction": "desc" }],
    "status": "ready",
}))]
pub struct CollectionIndex {
    /// The id of the index.
    pub id: IndexId,
    /// Always `index`.
    pub object: &'static str,
    /// The id of the collection.
    pub collection_id: CollectionId,
    /// The type of index.
    pub kind: IndexKind,
    /// The indexed fields, most significant first.
    pub fields: Vec<IndexPart>,
    /// Whether the combined values must be unique among live items.
    pub unique: bool,
    /// What created the index.
    pub origin: IndexOrigin,
    /// The status of the index.
    pub status: IndexStatus,
    /// How many existing items have been indexed.
    pub progress: IndexProgress,
    /// Why the index could not be built.
    pub error: Option<String>,
    /// When a query last used the index, accurate to an hour.
    pub last_used_at: Option<Timestamp>,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the status last changed.
    pub updated_at: Timestamp,
}

/// A field of an index.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IndexPart {
    /// The key of a field, or `created_at`, `updated_at`, `created_by`, `position`, `version` or `external_key`.
    #[schema(min_length = 1, max_length = 63)]
    pub field: String,
    /// The sort direction of the field. An index of a single field supports both directions.
    #[serde(default)]
    pub direction: Direction,
}

string_enum! {
    /// A sort direction.
    #[derive(Default)]
    pub enum Direction {
        /// Ascending: the lowest values first.
        #[default]
        Asc = "asc",
        /// Descending: the highest values first.
        Desc = "desc",
    }
}

/// The progress of a background job.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(example = json!({ "done": 200, "total": 200 }))]
pub struct IndexProgress {
    /// The number of items processed.
    pub done: i64,
    /// The number of items when the job started.
    pub total: i64,
}

/// An index to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "fields": [{ "field": "category" }, { "field": "price", "direction": "desc" }] }))]
pub struct NewIndex {
    /// The fields to index, most significant first. An index of several fields supports filters on the first field
    /// combined with an order by the others, in exactly these directions.
    #[schema(min_items = 1, max_items = 4)]
    pub fields: Vec<IndexPart>,
    /// Whether the combined values must be unique among live items.
    #[serde(default)]
    pub unique: bool,
}

/// Indexes that speed up filters and sorts
///
/// Lists the collection's indexes: those created by `POST`, those of unique fields and views, and those that the
/// service created for frequent queries.
#[operation(get "/collections/{collectionId}/indexes", scope = "collections:read")]
pub fn list_indexes(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    shapes: State<Shapes>,
) -> Result<Rows<CollectionIndex>> {
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    let rows = table::rows(read, collection_id)?;
    Ok(Rows(rows.into_iter().map(|row| shown(&shape, row)).collect::<Result<_>>()?))
}

/// Index a field, optionally unique
///
/// Builds the index in the background; queries use it when its `status` is `ready`. A unique index becomes `failed`,
/// with examples, if items have the same values.
#[operation(post "/collections/{collectionId}/indexes", scope = "collections:write")]
pub fn create_index(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Body(new): Body<NewIndex>,
    shapes: State<Shapes>,
) -> Result<Created<CollectionIndex>> {
    shape::for_change(tx, caller.workspace_id(), collection_id)?;
    let shape = shape::for_write(tx, &shapes.0, caller.workspace_id(), collection_id)?;
    let (kind, parts) = read_index(&shape, &new)?;
    let row = indexes::create(tx, &shape, kind, &parts, IndexOrigin::User)?;
    Ok(Created(shown(&shape, row)?))
}

/// Drop an index
///
/// Queries no longer use the index. The index of a unique field or of a view is a 409 `resource_in_use`: change the
/// field or the view instead.
#[operation(delete "/collections/{collectionId}/indexes/{indexId}", scope = "collections:write")]
pub fn delete_index(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(index_id): Path<IndexId>,
) -> Result<Deleted<CollectionIndex>> {
    shape::for_change(tx, caller.workspace_id(), collection_id)?;
    let row = table::rows(tx, collection_id)?
        .into_iter()
        .find(|row| row.id == index_id)
        .ok_or_else(|| Error::not_found("index"))?;
    let holder = match row.origin {
        IndexOrigin::Unique => {
            Some("A unique field or unique key stands on this index; change that instead.")
        }
        IndexOrigin::View => {
            Some("A view with `materialized_sort` stands on this index; change that instead.")
        }
        _ => None,
    };
    if let Some(message) = holder {
        return Err(Error::new(Code::ResourceInUse, message));
    }
    indexes::drop_index(tx, &row)?;
    Ok(Deleted::of("index", index_id))
}

/// Parses the definition of an index: its kind and its parts.
fn read_index(shape: &Shape, new: &NewIndex) -> Result<(IndexKind, Vec<Part>)> {
    let mut parts: Vec<Part> = Vec::with_capacity(new.fields.len());
    for (place, part) in new.fields.iter().enumerate() {
        let param = format!("fields[{place}].field");
        let subject = subject(shape, &part.field, &param)?;
        if parts.iter().any(|other| other.subject == subject) {
            return Err(Error::invalid(param, "must not repeat an earlier entry"));
        }
        let rule = refusal(shape, subject, new.unique, new.fields.len() > 1);
        if let Some(rule) = rule {
            return Err(Error::invalid(param, rule));
        }
        parts.push(Part { subject, desc: part.direction == Direction::Desc });
    }
    let kind = if new.unique { IndexKind::Unique } else { indexes::kind_for(shape, &mut parts) };
    if kind == IndexKind::Unique {
        parts.iter_mut().for_each(|part| part.desc = false);
    }
    Ok((kind, parts))
}

/// Returns the reason why a field cannot be part of an index, as the rest of a sentence.
fn refusal(shape: &Shape, subject: Subject, unique: bool, several: bool) -> Option<&'static str> {
    let field = match subject {
        Subject::Field(id) => shape.field_by_id(id),
        Subject::System(fields::SystemColumn::Id) => return Some("needs no index: items are kept by id"),
        Subject::System(_) if unique => return Some("cannot be unique: it is no field of the collection"),
        Subject::System(_) => None,
    };
    if field.is_some_and(|field| field.kind == FieldType::Relation) {
        return Some("needs no index: items are found by their links");
    }
    let family = subject.family(shape)?;
    match family {
        Family::Json => Some("cannot be indexed: its values have no order"),
        _ if unique && (family.is_set() || field.is_some_and(|field| field.kind.is_computed())) => {
            Some("cannot be unique: its type does not allow it")
        }
        _ if several && family.is_set() => Some("can be indexed by itself only: its values are lists"),
        _ => None,
    }
}

fn shown(shape: &Shape, row: IndexRow) -> Result<CollectionIndex> {
    let parts: Vec<Part> = row.parts.parse()?;
    let part = |part: &Part| IndexPart {
        field: fields::filter::name_of(part.subject, shape),
        direction: if part.desc { Direction::Desc } else { Direction::Asc },
    };
    Ok(CollectionIndex {
        id: row.id,
        object: "index",
        collection_id: row.collection_id,
        kind: row.kind,
        fields: parts.iter().map(part).collect(),
        unique: row.kind == IndexKind::Unique,
        origin: row.origin,
        status: row.status,
        progress: IndexProgress { done: row.rows_done, total: row.rows_total.max(row.rows_done) },
        error: row.error,
        last_used_at: row.last_used_at,
        created_at: row.created_at,
        updated_at: row.updated_at,
    })
}
