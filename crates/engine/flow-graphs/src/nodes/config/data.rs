//! Settings of nodes that read and change the data of the workspace.

use model::string_enum;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Settings of `update_contact`: fields of the contact of the run.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowUpdateContact, example = json!({ "fields": { "$company": "{{ $flow.company }}" } }))]
pub struct UpdateContact {
    /// The values by key of field.
    #[schema(value_type = Object)]
    pub fields: Map<String, Value>,
    /// Whether a run without a contact gets one: the contact that has one of the identities among the fields, or a new one.
    #[serde(default)]
    pub create_if_missing: bool,
    /// Whether text is converted to the type of its field.
    #[serde(default)]
    pub typecast: bool,
}

/// Settings of `contact_tag`: tags of the contact of the run.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowContactTag, example = json!({ "add": ["interested"] }))]
pub struct ContactTag {
    /// Tags that it gets.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub add: Vec<String>,
    /// Tags that it loses.
    #[schema(max_items = 50)]
    #[serde(default)]
    pub remove: Vec<String>,
}

/// Settings of `note`: a note on the contact of the run.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowNote, example = json!({ "text": "Asked for a discount." }))]
pub struct Note {
    /// The text.
    #[schema(min_length = 1, max_length = 10_000)]
    pub text: String,
}

/// Settings of `task`: a task is created, or one is changed.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowTask, example = json!({ "fields": { "title": "Call {{ $contact.$name }}" } }))]
pub struct Task {
    /// The task to change. `null` creates one.
    #[serde(default)]
    pub task_id: Option<Value>,
    /// The fields, as in a request to create or change a task. A new task is about the contact of the run if `contact_id` is not
    /// given.
    #[schema(value_type = Object)]
    pub fields: Map<String, Value>,
}

/// Settings of `reminder`: a reminder is created.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowReminder, example = json!({ "fields": { "title": "Renewal is due", "due_at": "{{ $contact.renewal }}" } }))]
pub struct Reminder {
    /// The fields, as in a request to create a reminder. It is about the contact of the run if `contact_id` is not given.
    #[schema(value_type = Object)]
    pub fields: Map<String, Value>,
}

/// Settings of `find_items`: items of a collection.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowFindItems, example = json!({ "collection_id": 7, "filter": { "status": "open" }, "limit": 10 }))]
pub struct FindItems {
    /// The collection.
    pub collection_id: i64,
    /// The filter: values by key of field, as in `{ "status": "open", "price": { "gt": 5 } }`, or a tree as in `filter_tree` of
    /// the list of items.
    #[serde(default)]
    pub filter: Option<Value>,
    /// The order, as in a query.
    #[schema(max_length = 500)]
    #[serde(default)]
    pub sort: Option<String>,
    /// The most items.
    #[schema(minimum = 1, maximum = 100)]
    #[serde(default = "twenty")]
    pub limit: i64,
}

const fn twenty() -> i64 {
    20
}

string_enum! {
    /// What is done with an item.
    #[derive(Default)]
    pub enum FlowItemOperation {
        /// A new one is created.
        #[default]
        Create = "create",
        /// It is changed.
        Update = "update",
        /// It is changed, or created if there is none with the key.
        Upsert = "upsert",
        /// It is deleted.
        Delete = "delete",
    }
}

/// Settings of `write_item`.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowWriteItem, example = json!({ "collection_id": 7, "op": "create", "values": { "title": "{{ $flow.title }}" } }))]
pub struct WriteItem {
    /// The collection.
    pub collection_id: i64,
    /// What is done.
    #[serde(default)]
    pub op: FlowItemOperation,
    /// The item, for `update` and `delete`.
    #[serde(default)]
    pub item_id: Option<Value>,
    /// The field by which `upsert` finds the item, or `external_key`.
    #[schema(max_length = 100)]
    #[serde(default)]
    pub key: Option<String>,
    /// The values by key of field.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub values: Map<String, Value>,
    /// Your own key of the item, unique in the collection.
    #[schema(max_length = 255)]
    #[serde(default)]
    pub external_key: Option<String>,
    /// Whether text is converted to the type of its field. Missing choices are created.
    #[serde(default)]
    pub typecast: bool,
}

/// Settings of `search_collection`: passages that answer a question.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = FlowSearchCollection, example = json!({ "collection_id": 7, "text": "{{ $message.text }}", "top_k": 3 }))]
pub struct SearchCollection {
    /// The collection.
    pub collection_id: i64,
    /// The text to search for.
    #[schema(min_length = 1, max_length = 1000)]
    pub text: String,
    /// The most results.
    #[schema(minimum = 1, maximum = 50)]
    #[serde(default = "five")]
    pub top_k: i64,
    /// The lowest score of a result: the share of the words of the text that are in the item, from 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    #[serde(default)]
    pub min_score: f64,
}

const fn five() -> i64 {
    5
}
