//! Groups, which order collections.

use crate::schema::collection_groups;
use diesel::prelude::*;
use fields::text;
use model::{Caller, Code, CollectionGroupId, Error, Result, Timestamp, WorkspaceId};
use operation::{Body, Created, Deleted, Json, Path, Rows, operation};
use records::schema::collections;
use serde::{Deserialize, Serialize};
use store::{Read, Tx};
use utoipa::ToSchema;

/// The most groups of a workspace.
const MOST: usize = 200;

/// A group of collections.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "name": "Shop", "position": 0, "version": 1 }))]
pub struct CollectionGroup {
    /// The id of the group.
    pub id: CollectionGroupId,
    /// Always `collection_group`.
    pub object: &'static str,
    /// The name, unique in the workspace regardless of case.
    pub name: String,
    /// The position among the groups.
    pub position: i64,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// A group as it is stored.
#[derive(Queryable)]
struct GroupRow {
    id: CollectionGroupId,
    name: String,
    name_key: String,
    position: i64,
    version: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

type Columns = (
    collection_groups::id,
    collection_groups::name,
    collection_groups::name_key,
    collection_groups::position,
    collection_groups::version,
    collection_groups::created_at,
    collection_groups::updated_at,
);

const COLUMNS: Columns = (
    collection_groups::id,
    collection_groups::name,
    collection_groups::name_key,
    collection_groups::position,
    collection_groups::version,
    collection_groups::created_at,
    collection_groups::updated_at,
);

impl From<GroupRow> for CollectionGroup {
    fn from(row: GroupRow) -> Self {
        Self {
            id: row.id,
            object: "collection_group",
            name: row.name,
            position: row.position,
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
        }
    }
}

/// A group to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Shop" }))]
pub struct NewCollectionGroup {
    /// The name, unique in the workspace regardless of case.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    name: String,
    /// The position among the groups; last if not given.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[serde(default)]
    position: Option<i64>,
}

/// A change of a group. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "Shop and warehouse" }))]
pub struct CollectionGroupPatch {
    /// The name.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    name: Option<String>,
    /// The position among the groups.
    #[schema(minimum = 0, maximum = 1_000_000_000)]
    #[serde(default)]
    position: Option<i64>,
}

fn all(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<GroupRow>> {
    Ok(collection_groups::table
        .filter(collection_groups::workspace_id.eq(workspace))
        .order((collection_groups::position, collection_groups::id))
        .select(COLUMNS)
        .load(read.connection())?)
}

/// A group of the workspace.
///
/// # Errors
/// `not_found`.
fn find(read: &mut Read, workspace: WorkspaceId, id: CollectionGroupId) -> Result<GroupRow> {
    collection_groups::table
        .filter(collection_groups::id.eq(id))
        .filter(collection_groups::workspace_id.eq(workspace))
        .select(COLUMNS)
        .get_result(read.connection())
        .optional()?
        .ok_or_else(|| Error::not_found("group"))
}

/// Lets nobody else change the groups of a workspace until the transaction ends.
fn lock(tx: &mut Tx, workspace: WorkspaceId) -> Result<()> {
    tx.lock(&format!("collection groups {workspace}"))
}

fn refuse_taken(groups: &[GroupRow], name: &str, except: Option<CollectionGroupId>) -> Result<()> {
    let key = text::name_key(name);
    let holder = groups.iter().find(|group| group.name_key == key && Some(group.id) != except);
    holder.map_or(Ok(()), |holder| Err(Error::duplicate("name", "Another group has this name.", holder.id)))
}

/// Groups that order collections
///
/// Lists all groups in their order.
#[operation(get "/collections/groups", scope = "collections:read")]
pub fn list_collection_groups(read: &mut Read, caller: &Caller) -> Result<Rows<CollectionGroup>> {
    let groups = all(read, caller.workspace_id())?;
    Ok(Rows(groups.into_iter().map(CollectionGroup::from).collect()))
}

/// Create a group
///
/// Creates an empty group. Put collections into it by their `group_id`. A name that another group has is a 409
/// `duplicate_value`.
#[operation(post "/collections/groups", scope = "collections:write")]
pub fn create_collection_group(
    tx: &mut Tx,
    caller: &Caller,
    Body(new): Body<NewCollectionGroup>,
) -> Result<Created<CollectionGroup>> {
    let workspace = caller.workspace_id();
    lock(tx, workspace)?;
    let groups = all(tx, workspace)?;
    if groups.len() >= MOST {
        return Err(Error::new(Code::LimitReached, format!("A workspace has at most {MOST} groups.")));
    }
    let name = new.name.trim();
    refuse_taken(&groups, name, None)?;
    let behind = groups.iter().map(|group| group.position + 1).max().unwrap_or(0);
    let now = tx.now();
    let row = (
        collection_groups::workspace_id.eq(workspace),
        collection_groups::name.eq(name),
        collection_groups::name_key.eq(text::name_key(name)),
        collection_groups::position.eq(new.position.unwrap_or(behind)),
        collection_groups::version.eq(1),
        collection_groups::created_at.eq(now),
        collection_groups::updated_at.eq(now),
    );
    let group: GroupRow = diesel::insert_into(collection_groups::table)
        .values(row)
        .returning(COLUMNS)
        .get_result(tx.connection())?;
    Ok(Created(group.into()))
}

/// Rename or reorder a group
///
/// Fields that are not sent stay unchanged. A name that another group has is a 409 `duplicate_value`.
#[operation(patch "/collections/groups/{groupId}", scope = "collections:write")]
pub fn update_collection_group(
    tx: &mut Tx,
    caller: &Caller,
    Path(group_id): Path<CollectionGroupId>,
    Body(patch): Body<CollectionGroupPatch>,
) -> Result<Json<CollectionGroup>> {
    let workspace = caller.workspace_id();
    lock(tx, workspace)?;
    let group = find(tx, workspace, group_id)?;
    let name = patch.name.as_deref().map_or(group.name.as_str(), str::trim);
    let position = patch.position.unwrap_or(group.position);
    if name == group.name && position == group.position {
        return Ok(Json(group.into()));
    }
    let groups = all(tx, workspace)?;
    refuse_taken(&groups, name, Some(group_id))?;
    let now = tx.now();
    let group: GroupRow = diesel::update(collection_groups::table.find(group_id))
        .set((
            collection_groups::name.eq(name),
            collection_groups::name_key.eq(text::name_key(name)),
            collection_groups::position.eq(position),
            collection_groups::version.eq(group.version + 1),
            collection_groups::updated_at.eq(now),
        ))
        .returning(COLUMNS)
        .get_result(tx.connection())?;
    Ok(Json(group.into()))
}

/// Delete a group, not its collections
///
/// The group's collections are kept and belong to no group afterwards.
#[operation(delete "/collections/groups/{groupId}", scope = "collections:write")]
pub fn delete_collection_group(
    tx: &mut Tx,
    caller: &Caller,
    Path(group_id): Path<CollectionGroupId>,
) -> Result<Deleted<CollectionGroup>> {
    let workspace = caller.workspace_id();
    // Nobody may put a collection into it meanwhile.
    lock(tx, workspace)?;
    find(tx, workspace, group_id)?;
    diesel::update(
        collections::table
            .filter(collections::workspace_id.eq(workspace))
            .filter(collections::group_id.eq(group_id)),
    )
    .set(collections::group_id.eq(None::<CollectionGroupId>))
    .execute(tx.connection())?;
    diesel::delete(collection_groups::table.find(group_id)).execute(tx.connection())?;
    Ok(Deleted::of("collection_group", group_id))
}

/// Checks that a collection can be put into a group, which stays until the transaction ends.
///
/// # Errors
/// `validation_error` at `group_id`.
pub(super) fn expect(tx: &mut Tx, workspace: WorkspaceId, id: CollectionGroupId) -> Result<()> {
    lock(tx, workspace)?;
    match find(tx, workspace, id) {
        Err(error) if error.code() == Code::NotFound => {
            Err(Error::invalid("group_id", "is not a group of this workspace"))
        }
        other => other.map(drop),
    }
}
