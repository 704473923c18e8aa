//! Request bodies, responses and events of segments.

use model::{Actor, ContactId, Patch, SegmentId, Timestamp, text_enum};
use operation::Event;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

text_enum! {
    /// How the contacts of a segment are determined.
    pub enum SegmentKind {
        /// By a filter: contacts enter and leave the segment as they change.
        Dynamic = "dynamic",
        /// By hand.
        Static = "static",
    }
}

/// A saved segment of contacts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "name": "Qualified in Brazil", "kind": "dynamic",
    "filter_tree": { "and": [{ "field": "$country", "op": "eq", "value": "BR" }, { "field": "$stage", "op": "eq", "value": "qualified" }] },
    "version": 1,
}))]
pub struct Segment {
    /// The id of the segment.
    pub id: SegmentId,
    /// Always `segment`.
    pub object: &'static str,
    /// The name, unique in the workspace whatever its case.
    pub name: String,
    /// How the contacts are determined.
    pub kind: SegmentKind,
    /// A description for people.
    pub description: Option<String>,
    /// The filter of a dynamic segment.
    #[schema(value_type = Option<Object>)]
    pub filter_tree: Option<Value>,
    /// The version, incremented with every change of the segment itself.
    pub version: i64,
    /// Who created the object.
    pub created_by: Actor,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// A segment with the number of its contacts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "contact_count": 12 }))]
pub struct SegmentDetail {
    #[serde(flatten)]
    pub(super) segment: Segment,
    /// The number of live contacts in the segment.
    pub(super) contact_count: i64,
}

/// A segment to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "Qualified in Brazil",
    "filter_tree": { "and": [{ "field": "$country", "op": "eq", "value": "BR" }, { "field": "$stage", "op": "eq", "value": "qualified" }] },
}))]
pub struct NewSegment {
    /// The name, unique in the workspace whatever its case.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    pub name: String,
    /// A description for people.
    #[schema(max_length = 1000)]
    #[serde(default)]
    pub description: Option<String>,
    /// The filter, which makes the segment dynamic: a tree of conditions, as in `GET /contacts`.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub filter_tree: Option<Value>,
    /// The ids of the contacts, which make the segment static.
    #[schema(max_items = 1000)]
    #[serde(default)]
    pub contact_ids: Option<Vec<ContactId>>,
}

/// A change of a segment. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "description": "For the spring campaign." }))]
pub struct SegmentPatch {
    /// The name, unique in the workspace whatever its case.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub name: Option<String>,
    /// A description for people. `null` removes it.
    #[schema(value_type = Option<String>, max_length = 1000)]
    #[serde(default)]
    pub description: Patch<String>,
    /// The new filter of a dynamic segment.
    #[schema(value_type = Option<Object>)]
    #[serde(default)]
    pub filter_tree: Option<Value>,
    /// The ids of contacts to add to a static segment.
    #[schema(max_items = 1000)]
    #[serde(default)]
    pub add_contact_ids: Vec<ContactId>,
    /// The ids of contacts to remove from a static segment.
    #[schema(max_items = 1000)]
    #[serde(default)]
    pub remove_contact_ids: Vec<ContactId>,
    /// The expected version, like `If-Match`. If the segment has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// An event of a segment.
#[derive(Event)]
#[event(scope = "contacts:read", subject = "segment", id = "segment.id")]
pub(crate) enum SegmentEvent {
    /// A segment was created.
    #[event(name = "contact.segment.created")]
    Created(SegmentChanged),
    /// A segment was changed.
    #[event(name = "contact.segment.updated")]
    Updated(SegmentChanged),
    /// A segment was deleted.
    #[event(name = "contact.segment.deleted")]
    Deleted(SegmentChanged),
}

/// A segment was created, changed or deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct SegmentChanged {
    /// The segment after the change.
    pub(super) segment: Segment,
}
