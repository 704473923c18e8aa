//! Request bodies and parameters of the operations on contacts.

use crate::record::contact::{Contact, ContactStatus};
use fields::Data;
use model::{Patch, string_enum};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A contact to create.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "data": { "$name": "Ana Souza", "$phone": "+55 11 98765-4321", "$stage": "new" }, "tags": ["vip"],
}))]
pub struct NewContact {
    /// The values by field key. One of `$name`, `$phone`, `$email` and `$chat_user_id` is required, unless the contact
    /// has an `external_id`.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub data: Data,
    /// The tags. Upper case becomes lower case.
    #[schema(max_items = 100)]
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Your own id, unique among contacts.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_id: Option<String>,
    /// Whether to convert text to the type of its field: `"12.5"` to a number, a label to its choice.
    #[serde(default)]
    pub typecast: bool,
}

/// A change of a contact. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "data": { "$stage": "qualified", "$company": "Souza & Filhos" } }))]
pub struct ContactPatch {
    /// The values to change, by field key. `null` clears a field.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub data: Data,
    /// All tags of the contact. To add or remove one, use `PUT` or `DELETE` on `/contacts/{contactId}/tags/{tag}`.
    #[schema(max_items = 100)]
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Your own id, unique among contacts. `null` removes it.
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_id: Patch<String>,
    /// `blocked` blocks the contact, `active` unblocks it.
    #[serde(default)]
    pub status: Option<ContactStatus>,
    /// `false` restores the contact from the trash. To move it there, delete it.
    #[serde(default)]
    pub trashed: Option<bool>,
    /// The expected version, like `If-Match`. If the contact has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
    /// Whether to convert text to the type of its field.
    #[serde(default)]
    pub typecast: bool,
}

/// A contact to create or change.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "data": { "$phone": "+55 11 98765-4321", "$name": "Ana Souza" } }))]
pub struct ContactUpsert {
    /// The values by field key. The contact is identified by `external_id`, `$phone`, `$email`, `$username` or
    /// `$chat_user_id`, of which one is required.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub data: Data,
    /// The tags of the contact. If not sent, they stay unchanged.
    #[schema(max_items = 100)]
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Your own id, unique among contacts.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_id: Option<String>,
    /// What to do with a contact that exists.
    #[serde(default)]
    pub on_match: OnContactMatch,
    /// Whether to convert text to the type of its field.
    #[serde(default)]
    pub typecast: bool,
}

string_enum! {
    /// What to do with a contact that exists.
    #[derive(Default)]
    pub enum OnContactMatch {
        /// The contact gets the values of the request; other fields stay unchanged.
        #[default]
        Update = "update",
        /// The contact stays unchanged.
        Skip = "skip",
        /// The request is rejected with 409 `duplicate_value`.
        Error = "error",
    }
}

/// How an upsert ended.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({ "status": "updated" }))]
pub struct UpsertedContact<'a> {
    /// Always `contact_upsert`.
    pub object: &'static str,
    /// What was done.
    pub status: records::bulk::BulkStatus,
    /// The contact as it is now.
    pub contact: Contact<'a>,
}

/// How to read one contact.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct ContactQuery {
    /// Whether to return the contact even if it is in the trash.
    #[serde(default)]
    #[param(required = false)]
    pub trashed: bool,
}

/// How to delete a contact.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct ContactDeletion {
    /// Whether to erase the contact permanently. Otherwise it stays in the trash for 30 days.
    #[serde(default)]
    #[param(required = false)]
    pub erase: bool,
}

/// A telephone number to convert.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "phone": "(11) 98765-4321", "country": "BR" }))]
pub struct PhoneQuestion {
    /// The number.
    #[schema(min_length = 1, max_length = 100)]
    pub phone: String,
    /// The country of a number without `+`, as a two-letter ISO 3166 code. The country of the business if not given.
    #[schema(pattern = "^[A-Z]{2}$")]
    #[serde(default)]
    pub country: Option<String>,
}

/// A telephone number in international form.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "valid": true, "phone": "+5511987654321", "country": "BR" }))]
pub struct NormalizedPhone {
    /// Always `normalized_phone`.
    pub object: &'static str,
    /// Whether it is a number that can be called.
    pub valid: bool,
    /// The number as `+` and digits (E.164). `null` if it is not valid.
    pub phone: Option<String>,
    /// The country of the number, as a two-letter ISO 3166 code.
    pub country: Option<String>,
    /// Why it is not valid.
    pub reason: Option<String>,
}

/// A tag that contacts have.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "name": "vip", "contact_count": 12 }))]
pub struct ContactTag {
    /// The tag.
    pub name: String,
    /// Always `contact_tag`.
    pub object: &'static str,
    /// The number of live contacts that have it.
    pub contact_count: i64,
}

/// Contacts to create or change.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "mode": "partial",
    "rows": [{ "data": { "$phone": "+55 11 98765-4321", "$name": "Ana Souza" } }, { "data": { "$email": "li@example.com" }, "tags": ["newsletter"] }],
}))]
pub struct ContactBulkUpsert {
    /// What happens if some rows fail.
    #[serde(default)]
    pub mode: records::bulk::BulkMode,
    /// What to do with contacts that exist.
    #[serde(default)]
    pub on_match: OnContactMatch,
    /// Whether to convert text to the type of its field.
    #[serde(default)]
    pub typecast: bool,
    /// The contacts.
    #[schema(min_items = 1, max_items = 1000)]
    pub rows: Vec<ContactRow>,
}

/// A contact in a bulk request.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "data": { "$phone": "+55 11 98765-4321", "$name": "Ana Souza" } }))]
pub struct ContactRow {
    /// The values by field key.
    #[schema(value_type = Object)]
    #[serde(default)]
    pub data: Data,
    /// The tags of the contact. If not sent, they stay unchanged.
    #[schema(max_items = 100)]
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Your own id, unique among contacts.
    #[schema(min_length = 1, max_length = 255, pattern = r"\S")]
    #[serde(default)]
    pub external_id: Option<String>,
}
