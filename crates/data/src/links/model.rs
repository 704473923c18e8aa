//! Links as callers see them and send them.

use model::{Actor, CollectionId, ItemId, LinkId, Result, Timestamp, text_enum};
use records::links::table::LinkRow;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

text_enum! {
    /// What a link can point to.
    #[derive(Hash)]
    pub enum LinkTargetType {
        /// An item of any collection.
        Item = "item",
        /// A contact.
        Contact = "contact",
        /// A task.
        Task = "task",
        /// A conversation.
        Conversation = "conversation",
        /// A file.
        File = "file",
        /// A run of an agent.
        Run = "run",
    }
}

impl LinkTargetType {
    /// Whether their ids are numbers.
    pub fn has_numbers(self) -> bool {
        self != Self::Run
    }
}

/// The id of an object: a number, or for runs a text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum TargetId {
    /// Of an item, contact, task, conversation or file.
    Number(i64),
    /// Of a run.
    Text(String),
}

/// What a link points to.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LinkTarget {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: LinkTargetType,
    /// Its id.
    pub id: TargetId,
}

impl LinkTarget {
    /// The item that it is; `None` for other objects.
    pub(crate) fn item(&self) -> Option<ItemId> {
        match (self.kind, &self.id) {
            (LinkTargetType::Item, TargetId::Number(id)) => Some(ItemId(*id)),
            _ => None,
        }
    }
}

/// The end of a link that it leaves from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct LinkSource {
    /// The item's collection.
    pub collection_id: CollectionId,
    /// The item.
    pub item_id: ItemId,
}

/// Which way a link leads, seen from the item whose links are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkDirection {
    /// From this item.
    Out,
    /// To this item.
    In,
}

/// Which links are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LinkDirections {
    /// Those that leave from the item.
    #[default]
    Out,
    /// Those that lead to it.
    In,
    /// Both. A link of two fields that point to each other is shown once, as leaving.
    Both,
}

/// Enough of the object at the other end to show it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LinkedObject {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: LinkTargetType,
    /// Its id.
    pub id: TargetId,
    /// The title of an item, the name of a file; `null` for a run.
    pub title: Option<String>,
    /// The collection of an item.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collection_id: Option<CollectionId>,
    /// What a file contains.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The state of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
}

/// A link from an item to another object.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct ItemLink {
    /// The link.
    pub id: LinkId,
    /// Always `item_link`.
    pub object: &'static str,
    /// Which way it leads, seen from the item in the path.
    pub direction: LinkDirection,
    /// Where it leaves from.
    pub from: LinkSource,
    /// What it points to.
    pub to: LinkTarget,
    /// The relation field that it belongs to; `null` for a free link.
    pub field_key: Option<String>,
    /// A word of yours for what it means.
    pub role: Option<String>,
    /// A remark.
    pub note: Option<String>,
    /// Its place: links of a field are in ascending order, equal ones by age.
    pub position: i64,
    /// The object at the other end; `null` where it is gone.
    pub linked: Option<LinkedObject>,
    /// Raised with every change.
    pub version: i64,
    /// Who made it.
    pub created_by: Actor,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl LinkTarget {
    /// What a link points to; `None` where what is stored is damaged.
    pub(crate) fn of(row: &LinkRow) -> Option<Self> {
        let kind = LinkTargetType::parse(&row.to_kind)?;
        let id = if kind.has_numbers() {
            TargetId::Number(row.to_id.parse().ok()?)
        } else {
            TargetId::Text(row.to_id.clone())
        };
        Some(Self { kind, id })
    }
}

impl ItemLink {
    /// A link as callers see it.
    ///
    /// # Errors
    /// When what is stored is damaged.
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
    /// Only links to objects of this type; in the direction `in`, all come from items.
    #[serde(default, rename = "type")]
    #[param(inline)]
    pub kind: Option<LinkTargetType>,
    /// Only links of the relation field with this key: a field of this collection for links that leave, of the other
    /// item's collection for links that lead here.
    #[serde(default)]
    #[param(max_length = 63)]
    pub field_key: Option<String>,
    /// Only links with this role.
    #[serde(default)]
    #[param(max_length = 100)]
    pub role: Option<String>,
    /// `out` (links that leave from the item), `in` or `both`.
    #[serde(default)]
    #[param(inline)]
    pub direction: Option<LinkDirections>,
}

/// A link to be made.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewItemLink {
    /// What it is to point to.
    pub to: LinkTarget,
    /// The relation field that it belongs to. Without, it is a free link, which no field shows.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 63)]
    pub field_key: Option<String>,
    /// A word of yours for what it means, such as `invoice`.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    pub role: Option<String>,
    /// A remark.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 1000, pattern = r"\S")]
    pub note: Option<String>,
    /// Its place; behind the last if not given.
    #[serde(default)]
    #[schema(minimum = -1_000_000_000, maximum = 1_000_000_000)]
    pub position: Option<i64>,
    /// Whether it takes the place of a link where a field, or the one that points back, can have one only.
    #[serde(default)]
    pub replace: bool,
}

/// All links of one kind.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ItemLinkReplacement {
    /// The kind: links of this relation field.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 63)]
    pub field_key: Option<String>,
    /// The kind, without `field_key`: free links to objects of this type.
    #[serde(default, rename = "type")]
    pub kind: Option<LinkTargetType>,
    /// With `type`: only links with this role, which new ones get.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    pub role: Option<String>,
    /// The links that there are to be, in order.
    #[schema(max_items = 1000)]
    pub links: Vec<ReplacingLink>,
}

/// A link that there is to be.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplacingLink {
    /// What it points to.
    pub to: LinkTarget,
    /// A word of yours for what it means.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 100, pattern = r"\S")]
    pub role: Option<String>,
    /// A remark.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 1000, pattern = r"\S")]
    pub note: Option<String>,
}

/// What became of all links of one kind.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ReplacedLinks {
    /// How many of each.
    pub summary: ReplacedLinksSummary,
    /// One for each of the links that there were to be, in their order.
    pub results: Vec<ReplacedLink>,
}

/// How many links met which end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReplacedLinksSummary {
    /// Made.
    pub created: i64,
    /// Given another role, note or place.
    pub updated: i64,
    /// Left as they were.
    pub unchanged: i64,
    /// Removed, because they were not named.
    pub deleted: i64,
}

/// What became of a link that there was to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ReplacedLink {
    /// Its place in the request, from 0.
    pub index: i64,
    /// What became of it.
    pub status: ReplacedLinkStatus,
    /// The link.
    pub id: LinkId,
}

/// What became of a link that there was to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplacedLinkStatus {
    /// It was made.
    Created,
    /// Its role, note or place is another.
    Updated,
    /// It is as it was.
    Unchanged,
}

/// A kind of object that links can point to.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ItemLinkKind {
    /// The kind.
    #[serde(rename = "type")]
    pub kind: LinkTargetType,
    /// Always `item_link_kind`.
    pub object: &'static str,
    /// What people call it.
    pub label: &'static str,
    /// `integer` or `string`.
    pub id_type: &'static str,
    /// Whether links to it can be made; the others come with their areas.
    pub available: bool,
    /// Whether relation fields can point to it; free links can to all.
    pub relation: bool,
}
