//! A message template: its row and its API object.

use crate::schema::message_templates;
use chatnet::template::variables;
use chatnet::{Quality, TemplateCategory, TemplateComponents, TemplateStatus};
use diesel::prelude::*;
use model::{ChannelId, JsonText, MessageTemplateId, Result, Timestamp, WorkspaceId, string_enum};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A message template: a message that the network has reviewed, so that it can be sent outside the 24-hour window.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "namespace": "business-1", "name": "order_shipped", "language": "en", "category": "utility", "status": "approved",
    "quality": "high", "version": 1,
}))]
pub struct MessageTemplate {
    /// The id of the template.
    pub id: MessageTemplateId,
    /// Always `message_template`.
    pub object: &'static str,
    /// The id of the channel.
    pub channel_id: ChannelId,
    /// The namespace: the network's id of the business.
    pub namespace: String,
    /// The name. The same template in another language has the same name.
    pub name: String,
    /// The language, such as `pt_BR`.
    pub language: String,
    /// What it is for. The network may change it.
    pub category: TemplateCategory,
    /// Whether it can be sent.
    pub status: TemplateStatus,
    /// Why the network refused it.
    pub rejection_reason: Option<String>,
    /// What recipients think of it.
    pub quality: Quality,
    /// The parts.
    pub components: TemplateComponents,
    /// Always `positional`.
    pub parameter_format: &'static str,
    /// The values that a send must have.
    pub parameters: Vec<TemplateParameter>,
    /// When the network last said how it is.
    pub last_synced_at: Option<Timestamp>,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

string_enum! {
    /// Where a value of a message template belongs.
    pub enum TemplateComponentType {
        /// Above the body: `header_params`, or `media` for a file.
        Header = "header",
        /// The text: `params`.
        Body = "body",
        /// A button: `button_params`.
        Button = "button",
    }
}

/// A value that a send of a template must have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "component": "body", "key": "1", "example": "Ana" }))]
pub struct TemplateParameter {
    /// Where it belongs.
    pub component: TemplateComponentType,
    /// The number of the variable, or the place of the button from 0.
    pub key: String,
    /// An example.
    pub example: Option<String>,
}

/// A template to submit for review.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "name": "order_arrived", "language": "en", "category": "utility" }))]
pub struct NewMessageTemplate {
    /// The name.
    #[schema(min_length = 1, max_length = 512, pattern = "^[a-z0-9_]+$")]
    pub name: String,
    /// The language, such as `en` or `pt_BR`.
    #[schema(min_length = 2, max_length = 10, pattern = "^[a-z]{2,3}(_[A-Z]{2})?$")]
    pub language: String,
    /// What it is for.
    pub category: TemplateCategory,
    /// The parts.
    pub components: TemplateComponents,
}

/// A template as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = message_templates)]
pub struct TemplateRow {
    /// The id.
    pub id: MessageTemplateId,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The channel.
    pub channel_id: ChannelId,
    /// The network's id, or `None` before the network knows the template.
    pub provider_id: Option<String>,
    /// The namespace, which the network assigns.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The language.
    pub language: String,
    /// The category.
    pub category: TemplateCategory,
    /// The status of the network's review.
    pub status: TemplateStatus,
    /// The reason of a rejection.
    pub rejection_reason: Option<String>,
    /// The network's quality rating.
    pub quality: Quality,
    /// The components, in the network's format.
    pub components: JsonText,
    /// When the network was last asked about the template.
    pub last_synced_at: Option<Timestamp>,
    /// The version, incremented with each change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The network's time of the status.
    pub status_at: Option<Timestamp>,
    /// The network's time of the category.
    pub category_at: Option<Timestamp>,
    /// The network's time of the quality.
    pub quality_at: Option<Timestamp>,
}

impl TemplateRow {
    /// Returns the components.
    ///
    /// # Errors
    /// `internal_error` if the stored row is corrupt.
    pub fn components(&self) -> Result<TemplateComponents> {
        Ok(TemplateComponents::from_network(&self.components.parse()?))
    }

    /// Returns the API object.
    ///
    /// # Errors
    /// `internal_error` if the stored row is corrupt.
    pub(crate) fn template(&self) -> Result<MessageTemplate> {
        let components = self.components()?;
        Ok(MessageTemplate {
            id: self.id,
            object: "message_template",
            channel_id: self.channel_id,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            language: self.language.clone(),
            category: self.category,
            status: self.status,
            rejection_reason: self.rejection_reason.clone(),
            quality: self.quality,
            parameter_format: "positional",
            parameters: parameters(&components),
            components,
            last_synced_at: self.last_synced_at,
            version: self.version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

fn parameters(components: &TemplateComponents) -> Vec<TemplateParameter> {
    let mut all = Vec::new();
    if let Some(header) = &components.header {
        let names = variables(header.text.as_deref().unwrap_or_default());
        all.extend(names.into_iter().map(|key| TemplateParameter {
            component: TemplateComponentType::Header,
            key,
            example: header.sample.clone(),
        }));
    }
    let names = variables(&components.body.text).into_iter().enumerate();
    all.extend(names.map(|(place, key)| TemplateParameter {
        component: TemplateComponentType::Body,
        key,
        example: components.body.samples.get(place).cloned(),
    }));
    let buttons = components.buttons.iter().enumerate().filter(|(_, button)| button.has_variable());
    all.extend(buttons.map(|(place, button)| TemplateParameter {
        component: TemplateComponentType::Button,
        key: place.to_string(),
        example: button.sample.clone(),
    }));
    all
}
