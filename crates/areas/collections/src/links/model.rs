//! Request bodies and responses of the operations on links.

use model::{Actor, CollectionId, ItemId, LinkId, Result, Timestamp, string_enum};
use records::links::table::LinkRow;
pub use records::links::table::LinkTargetType;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The id of an object: an integer, or a string for runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum TargetId {
    /// The id of an item, contact, task, conversation or file.
    Number(i64),
    /// The id of a run.
    Text(String),
}

/// The object that a link points to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "id": 2 }))]
pub struct LinkTarget {
    /// The type of the object.
    #[serde(rename = "type")]
    pub kind: LinkTargetType,
    /// The id.
    pub id: TargetId,
}

impl LinkTarget {
    /// Returns the id of the item, or `None` for other objects.
    pub(crate) fn item(&self) -> Option<ItemId> {
        match (self.kind, &self.id) {
            (LinkTargetType::Item, TargetId::Number(id)) => Some(ItemId(*id)),
            _ => None,
        }
    }
}

/// The item that a link starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct LinkSource {
    /// The id of the item's collection.
    pub collection_id: CollectionId,
    /// The id of the item.
    pub item_id: ItemId,
}

string_enum! {
    /// The direction of a link, seen from the item whose links are listed.
    pub enum LinkDirection {
        /// From this item.
        Out = "out",
        /// To this item.
        In = "in",
    }
}

string_enum! {
    /// Which links to list.
    #[derive(Default)]
    pub enum LinkDirections {
        /// Links from the item.
        #[default]
        Out = "out",
        /// Links to the item.
        In = "in",
        /// Both. A link between two fields that refer to each other is listed once, as `out`.
        Both = "both",
    }
}

/// A summary of the object at the other end of a link.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LinkedObject {
    /// The type of the object.
    #[serde(rename = "type")]
    pub kind: LinkTargetType,
    /// The id.
    pub id: TargetId,
    /// The title of an item or the name of a file. `null` for a run.
    pub title: Option<String>,
    /// The id of the item's collection.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<CollectionId>,
    /// The media type of a file.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The status of a run.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// A link from an item to another object.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(example = json!({ "role": "accessory", "position": 0, "version": 1 }))]
pub struct ItemLink {
    /// The id of the link.
    pub id: LinkId,
    /// Always `item_link`.
    pub object: &'static str,
    /// The direction, seen from the item in the path.
    pub direction: LinkDirection,
    /// The item that the link starts from.
    pub from: LinkSource,
    /// The object that the link points to.
    pub to: LinkTarget,
    /// The key of the relation field. `null` for a free link.
    pub field_key: Option<String>,
    /// Your own name for the meaning of the link.
    pub role: Option<String>,
    /// A note.
    pub note: Option<String>,
    /// The position. Links of a field are sorted by it, and by age if it is equal.
    pub position: i64,
    /// A summary of the object at the other end. `null` if it no longer exists.
    pub linked: Option<LinkedObject>,
    /// The version, incremented with every change.
    pub version: i64,
    /// Who created the link.
    pub created_by: Actor,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

impl LinkTarget {
    /// Returns the target of a stored link, or `None` if the row is damaged.
    pub(crate) fn of(row: &LinkRow) -> Option<Self> {
        let kind = row.to_kind;
        let id = if kind.has_numbers() {
            TargetId::Number(row.to_id.parse().ok()?)
        } else {
            TargetId::Text(row.to_id.clone())
        };
        Some(Self { kind, id })
    }
}

impl ItemLink {
    /// Builds the response from a stored link.
    pub(crate) fn of(
        row: LinkRow,
        direction: LinkDirection,
        field_key: Option<String>,
        linked: Option<LinkedObject>,
    ) -> Result<Self> {
        let to = LinkTarget::of(&row)
            .ok_or_else(|| model::Error::internal(format!("link {} has an unknown target", row.id)))?;
        Ok(Self {
            id: row.id,
            object: "item_link",
            direction,
            from: LinkSource { collection_id: row.collection_id, item_id: row.item_id },
            to,
            field_key,
            role: row.role,
            note: row.note,
            position: row.position,
            linked,
            version: row.version,
            created_by: row.created_by.parse()?,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// Which links of an item to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct LinkQuery {
    /// Only links to objects of this type. With the direction `in`, all links come from items.
    #[serde(default, rename = "type")]
    #[param(inline)]
    pub kind: Option<LinkTargetType>,
    /// Only links of this relation field: a field of this collection for outgoing links, of the other item's collection
    /// for incoming ones.
    #[serde(default)]
    #[param(max_length = 63)]
    pub field_key: Option<String>,
    /// Only links with this role.
    #[serde(default)]
    #[param(max_length = 100)]
    pub role: Option<String>,
    /// `out` for outgoing links, `in` for incoming ones, or `both`.
    #[serde(default)]
    #[param(inline)]
    pub direction: Option<LinkDirections>,
}

/// A link to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "to": { "type": "item", "id": 2 }, "role": "accessory" }))]
pub struct NewItemLink {
    /// The object to link to.
    pub to: LinkTarget,
    /// The key of the relation field. Without it, the link is a free link, which appears in no field.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 63)]
    pub field_key: Option<String>,
    /// Your own name for the meaning of the link, such as `invoice`.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    pub role: Option<String>,
    /// A note.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 1000, pattern = r"\S")]
    pub note: Option<String>,
    /// The position; last if not given.
    #[serde(default)]
    #[schema(minimum = -1_000_000_000, maximum = 1_000_000_000)]
    pub position: Option<i64>,
    /// Whether to replace an existing link if the field, or its reverse field, allows only one.
    #[serde(default)]
    pub replace: bool,
}

/// The complete set of an item's links of one type.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "type": "item", "role": "accessory", "links": [{ "to": { "type": "item", "id": 2 } }] }))]
pub struct ItemLinkReplacement {
    /// Replaces the links of this relation field.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 63)]
    pub field_key: Option<String>,
    /// Replaces the free links to objects of this type. Instead of `field_key`.
    #[serde(default, rename = "type")]
    pub kind: Option<LinkTargetType>,
    /// With `type`: replaces only links with this role. New links get it.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    pub role: Option<String>,
    /// The links, in order.
    #[schema(max_items = 1000)]
    pub links: Vec<ReplacingLink>,
}

/// A link of the new set.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplacingLink {
    /// The object that the link points to.
    pub to: LinkTarget,
    /// Your own name for the meaning of the link.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    pub role: Option<String>,
    /// A note.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 1000, pattern = r"\S")]
    pub note: Option<String>,
}

/// The result of replacing links.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReplacedLinks {
    /// How many links had each result.
    pub summary: ReplacedLinksSummary,
    /// One result for each link of the request, in order.
    pub results: Vec<ReplacedLink>,
}

/// How many links had each result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "created": 1, "updated": 0, "unchanged": 0, "deleted": 0 }))]
pub struct ReplacedLinksSummary {
    /// Created.
    pub created: i64,
    /// Changed in role, note or position.
    pub updated: i64,
    /// Not changed.
    pub unchanged: i64,
    /// Deleted, because they were not in the request.
    pub deleted: i64,
}

/// The result for one link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "index": 0 }))]
pub struct ReplacedLink {
    /// The index in the request, from 0.
    pub index: i64,
    /// The result.
    pub status: ReplacedLinkStatus,
    /// The id of the link.
    pub id: LinkId,
}

string_enum! {
    /// The result for one link.
    pub enum ReplacedLinkStatus {
        /// The link was created.
        Created = "created",
        /// The role, note or position of the link was changed.
        Updated = "updated",
        /// The link already existed.
        Unchanged = "unchanged",
    }
}

/// A type of object that links can point to.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "label": "Item", "id_type": "integer", "available": true, "relation": true }))]
pub struct ItemLinkKind {
    /// The type.
    #[serde(rename = "type")]
    pub kind: LinkTargetType,
    /// Always `item_link_kind`.
    pub object: &'static str,
    /// The name for people.
    pub label: &'static str,
    /// `integer` or `string`.
    pub id_type: &'static str,
    /// Whether links to this type are supported in this version of the service.
    pub available: bool,
    /// Whether relation fields can point to this type. Free links can point to all available types.
    pub relation: bool,
}
