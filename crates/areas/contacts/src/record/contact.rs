//! The JSON object of a contact.

use super::system_fields::{ALIASES, AUTOPILOT_CONFIG, PAUSED_UNTIL, ROUTING_CONFIG, SEGMENTS};
use model::{Actor, ContactId, JsonText, RawMembers, Timestamp, text_enum};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// A contact: a person whom the business knows.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "external_id": "shop-4711", "name": "Ana Souza",
    "data": { "$name": "Ana Souza", "$phone": "+5511987654321", "$email": "ana@example.com", "$country": "BR", "$stage": "qualified", "$created_via": "api" },
    "tags": ["vip"], "status": "active", "version": 2,
}))]
pub struct Contact<'a> {
    /// The id of the contact.
    pub id: ContactId,
    /// Always `contact`.
    pub object: &'static str,
    /// Your own id, unique among contacts.
    pub external_id: Option<&'a str>,
    /// The value of `$name`, empty if there is none.
    pub name: &'a str,
    /// The values by field key. The keys of system fields begin with `$`. Fields without a value are left out.
    #[schema(value_type = Object)]
    pub data: ContactData<'a>,
    /// The tags, in lower case.
    #[schema(value_type = Vec<String>)]
    pub tags: Vec<&'a RawValue>,
    /// What identifies the contact.
    pub identities: Vec<ContactIdentity<'a>>,
    /// Whether the contact is blocked.
    pub status: ContactStatus,
    /// Whether the agent answers the contact's messages.
    pub autopilot: Autopilot<'a>,
    /// The team member to whom the conversation is assigned.
    pub assignee: Option<ContactAssignee>,
    /// Whether the contact wants no broadcasts.
    pub opted_out: bool,
    /// Where the dashboard shows the contact. `null` as long as there is no dashboard.
    pub app_url: Option<String>,
    /// The version, incremented with every change.
    pub version: i64,
    /// Who created the object.
    #[schema(value_type = Actor)]
    pub created_by: &'a JsonText,
    /// Who last changed the contact.
    #[schema(value_type = Actor)]
    pub updated_by: &'a JsonText,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
    /// When the contact was moved to the trash. `null` for a live contact.
    pub trashed_at: Option<Timestamp>,
}

/// Something that identifies a contact. No two contacts share one.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "value": "+5511987654321", "primary": true }))]
pub struct ContactIdentity<'a> {
    /// The kind of identity.
    pub kind: IdentityKind,
    /// The value.
    #[schema(value_type = String)]
    pub value: &'a RawValue,
    /// Whether it is the value of the contact's field. Others were taken over from contacts that were merged into it.
    pub primary: bool,
}

text_enum! {
    /// The kind of an identity.
    pub enum IdentityKind {
        /// A telephone number.
        Phone = "phone",
        /// An e-mail address.
        Email = "email",
        /// A user name on the chat network.
        Username = "username",
        /// The id of a user of the chat network.
        ChatUserId = "chat_user_id",
    }
}

impl IdentityKind {
    /// All kinds, each with the system field that has the value.
    pub(crate) const FIELDS: [(Self, &'static str); 4] = [
        (Self::Phone, "$phone"),
        (Self::Email, "$email"),
        (Self::Username, "$username"),
        (Self::ChatUserId, "$chat_user_id"),
    ];
}

text_enum! {
    /// The status of a contact.
    pub enum ContactStatus {
        /// Messages go to and from the contact.
        Active = "active",
        /// Messages of the contact are stored and not answered, and none are sent.
        Blocked = "blocked",
    }
}

/// Whether the agent answers a contact's messages.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(example = json!({ "enabled": true }))]
pub struct Autopilot<'a> {
    /// Whether it does.
    pub enabled: bool,
    /// When the agent will answer again. `null` if no time was set.
    #[schema(value_type = Option<Timestamp>)]
    pub paused_until: Option<&'a RawValue>,
}

/// To whom a contact's conversation is assigned.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "id": 1 }))]
pub struct ContactAssignee {
    /// Always `user`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The id of the team member.
    pub id: i64,
}

/// System fields that are not printed in `data`: they are printed as members of the contact, or not at all.
const NOT_IN_DATA: [&str; 10] = [
    "$tags",
    "$status",
    "$assignee",
    "$autopilot",
    "$opted_out",
    PAUSED_UNTIL,
    SEGMENTS,
    ALIASES,
    AUTOPILOT_CONFIG,
    ROUTING_CONFIG,
];

/// The values that a contact shows in `data`.
#[derive(Debug)]
pub struct ContactData<'a>(pub(super) RawMembers<'a>);

impl Serialize for ContactData<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_shown = |key: &str| !(key.starts_with('$') && NOT_IN_DATA.contains(&key));
        serializer.collect_map(self.0.iter().filter(|(key, _)| is_shown(key)))
    }
}
