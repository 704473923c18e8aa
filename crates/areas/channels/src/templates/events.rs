//! The event for message templates.

use super::model::MessageTemplate;
use model::MessageTemplateId;
use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// The network reviewed, paused or recategorised a message template.
#[derive(Serialize, ToSchema, Event)]
#[event(
    name = "channel.template.updated",
    scope = "channels:read",
    subject = "message_template",
    id = "template_id"
)]
pub(crate) struct TemplateUpdated {
    /// The id of the template.
    pub(crate) template_id: MessageTemplateId,
    /// The template as it is now.
    pub(crate) template: MessageTemplate,
}
