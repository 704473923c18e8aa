//! Groups of collections.

use crate::schema::collection_groups;
use diesel::prelude::*;
use fields::text;
use model::{Caller, Code, CollectionGroupId, Error, Result, Timestamp, WorkspaceId};
use operation::{Body, Created, Deleted, ExpectedVersion, Json, Path, Resource, Rows, Update, operation};
use records::schema::collections;
use serde::{Deserialize, Serialize};
use store::{Read, Tx};
use utoipa::ToSchema;

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

/// A row of `collection_groups`.
#[derive(Debug, Clone, PartialEq, Queryable, Selectable, Insertable, AsChangeset)]
#[diesel(table_name = collection_groups)]
struct GroupRow {
    #[diesel(skip_insertion)]
    id: CollectionGroupId,
    workspace_id: WorkspaceId,
    name: String,
    name_key: String,
    position: i64,
    version: i64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

operation::resource! {
    GroupRow, collection_groups, CollectionGroupId, "group";
    unique "name": name_key;
    at most 200 "groups per workspace";
}

impl GroupRow {
    fn rename(&mut self, name: &str) {
        name.trim().clone_into(&mut self.name);
        self.name_key = text::name_key(&self.name);
    }
}

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
        .select(GroupRow::as_select())
        .load(read.connection())?)
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
    GroupRow::lock_set(tx, workspace)?;
    let last = all(tx, workspace)?.into_iter().map(|group| group.position).max();
    let now = tx.now();
    let mut group = GroupRow {
        id: CollectionGroupId(0),
        workspace_id: workspace,
        name: String::new(),
        name_key: String::new(),
        position: new.position.unwrap_or_else(|| last.map_or(0, |last| last + 1)),
        version: 1,
        created_at: now,
        updated_at: now,
    };
    group.rename(&new.name);
    let group = group.create(tx)?;
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
    let mut update = Update::<GroupRow>::begin(tx, workspace, &group_id, ExpectedVersion::default())?;
    if let Some(name) = &patch.name {
        update.row.rename(name);
    }
    update.row.position = patch.position.unwrap_or(update.row.position);
    let group = if update.is_change() { update.store(tx)? } else { update.row };
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
    // This lock keeps concurrent requests from adding collections to the group.
    GroupRow::lock_set(tx, workspace)?;
    let group = GroupRow::find(tx, workspace, &group_id)?;
    diesel::update(
        collections::table
            .filter(collections::workspace_id.eq(workspace))
            .filter(collections::group_id.eq(group_id)),
    )
    .set(collections::group_id.eq(None::<CollectionGroupId>))
    .execute(tx.connection())?;
    group.delete(tx)?;
    Ok(Deleted::of("collection_group", group_id))
}

/// Checks that a group exists, and locks it until the transaction ends.
pub(super) fn expect(tx: &mut Tx, workspace: WorkspaceId, id: CollectionGroupId) -> Result<()> {
    GroupRow::lock_set(tx, workspace)?;
    match GroupRow::find(tx, workspace, &id) {
        Err(error) if error.code() == Code::NotFound => {
            Err(Error::invalid("group_id", "is not a group of this workspace"))
        }
        other => other.map(drop),
    }
}
