//! Quick replies, as callers see them.

use chatnet::MessageButton;
use model::{FileId, Patch, QuickReplyId, Timestamp, text_enum};
use operation::Event;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

text_enum! {
    /// Who can use a quick reply.
    #[derive(Default)]
    pub enum QuickReplyScope {
        /// Everyone in the workspace.
        #[default]
        Workspace = "workspace",
        /// The API key that created it.
        Personal = "personal",
    }
}

/// A saved answer.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "shortcode": "hours", "title": "Opening hours", "body": "Hi {{contact.$name|there}}, we are open from 9 to 18.",
    "buttons": [], "attachments": [], "language": "en", "usage_count": 12, "version": 1,
}))]
pub struct QuickReply {
    /// The id of the quick reply.
    pub id: QuickReplyId,
    /// Always `quick_reply`.
    pub object: &'static str,
    /// The short name by which people find it, unique in the workspace.
    pub shortcode: String,
    /// The title.
    pub title: String,
    /// The text with its placeholders.
    pub body: String,
    /// The files that are sent with it.
    pub attachments: Vec<FileId>,
    /// The buttons below the text.
    pub buttons: Vec<MessageButton>,
    /// The language, as a BCP 47 tag.
    pub language: Option<String>,
    /// Who can use it.
    pub scope: QuickReplyScope,
    /// How often it was sent.
    pub usage_count: i64,
    /// When it was last sent.
    pub last_used_at: Option<Timestamp>,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

/// An answer to save.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "shortcode": "hours", "title": "Opening hours", "body": "Hi {{contact.$name|there}}, we are open from 9 to 18.",
}))]
pub struct NewQuickReply {
    /// The short name by which people find it. Stored in lower case.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,32}$")]
    pub shortcode: String,
    /// The title.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    pub title: String,
    /// The text. `{{contact.$name}}` stands for a field of the contact, `{{vars.key}}` for a variable that is not secret,
    /// and `{{ask.label}}` for a text that is given when the answer is sent. `{{contact.$name|there}}` has a fallback.
    #[schema(min_length = 1, max_length = 4_096, pattern = r"\S")]
    pub body: String,
    /// The ids of files that are sent with it.
    #[schema(max_items = 10)]
    #[serde(default)]
    pub attachments: Vec<FileId>,
    /// Up to 3 buttons with unique ids. More are a 400 `too_many_buttons`.
    #[serde(default)]
    pub buttons: Vec<MessageButton>,
    /// The language, as a BCP 47 tag.
    #[schema(pattern = "^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$")]
    #[serde(default)]
    pub language: Option<String>,
    /// Who can use it. Everyone if not given.
    #[serde(default)]
    pub scope: QuickReplyScope,
}

/// A change of a quick reply. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "title": "When we are open" }))]
pub struct QuickReplyPatch {
    /// The short name by which people find it. Stored in lower case.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,32}$")]
    #[serde(default)]
    pub shortcode: Option<String>,
    /// The title.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    pub title: Option<String>,
    /// The text with its placeholders.
    #[schema(min_length = 1, max_length = 4_096, pattern = r"\S")]
    #[serde(default)]
    pub body: Option<String>,
    /// The ids of files that are sent with it. They replace those that it has.
    #[schema(max_items = 10)]
    #[serde(default)]
    pub attachments: Option<Vec<FileId>>,
    /// Up to 3 buttons with unique ids. They replace those that it has.
    #[serde(default)]
    pub buttons: Option<Vec<MessageButton>>,
    /// The language, as a BCP 47 tag. `null` for none.
    #[schema(value_type = Option<String>, pattern = "^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$")]
    #[serde(default)]
    pub language: Patch<String>,
    /// Who can use it.
    #[serde(default)]
    pub scope: Option<QuickReplyScope>,
    /// The expected version, like `If-Match`. If the quick reply has another version, the request is rejected with 409
    /// `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub version: Option<i64>,
}

/// An event of a quick reply.
#[derive(Event)]
#[event(scope = "conversations:read", subject = "quick_reply", id = "quick_reply.id")]
pub(crate) enum QuickReplyEvent {
    /// An answer was saved.
    #[event(name = "quick_reply.created")]
    Created(QuickReplyChanged),
    /// A saved answer was changed.
    #[event(name = "quick_reply.updated")]
    Updated(QuickReplyChanged),
    /// A saved answer was deleted.
    #[event(name = "quick_reply.deleted")]
    Deleted(QuickReplyChanged),
}

/// A quick reply was created, changed or deleted.
#[derive(Serialize, ToSchema)]
pub(crate) struct QuickReplyChanged {
    /// The quick reply after the change.
    pub(super) quick_reply: QuickReply,
}
