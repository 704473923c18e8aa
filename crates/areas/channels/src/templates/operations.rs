//! The operations of message templates.

use super::model::{MessageTemplate, NewMessageTemplate, TemplateRow};
use super::queries;
use crate::channels::{self, ChannelRow};
use crate::network::{Network, refused};
use crate::schema::message_templates as table;
use auth::Seal;
use chatnet::{NewNetworkTemplate, TemplateCategory, TemplateStatus, TemplateUpdate};
use diesel::prelude::*;
use model::{ChannelId, Code, Error, MessageTemplateId, Result};
use operation::{Body, Created, Cx, Deleted, Json, OptIn, OptInList, Path, Query, State, operation};
use serde::Deserialize;
use std::sync::Arc;
use store::Read;
use utoipa::IntoParams;

/// Which templates are listed.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
pub struct TemplatesQuery {
    /// Only templates with this status.
    #[serde(default)]
    status: Option<TemplateStatus>,
    /// Only templates of this category.
    #[serde(default)]
    category: Option<TemplateCategory>,
    /// Only templates with this name.
    #[serde(default)]
    name: Option<String>,
}

/// Message templates and their approval status
///
/// Lists the templates that the network has for the channel's business, newest first.
#[operation(get "/channels/{channelId}/chatnet/templates", scope = "channels:read", ceiling = 100)]
pub fn list_message_templates(
    read: &mut Read,
    caller: &model::Caller,
    Path(channel_id): Path<ChannelId>,
    Query(wanted): Query<TemplatesQuery>,
    page: OptIn,
) -> Result<OptInList<MessageTemplate>> {
    let channel = channels::live(read, caller.workspace_id(), channel_id)?;
    let mut query = table::table
        .filter(table::channel_id.eq(channel.id))
        .order(table::id.desc())
        .limit(page.page().fetch())
        .select(TemplateRow::as_select())
        .into_boxed();
    if let Some(status) = wanted.status {
        query = query.filter(table::status.eq(status));
    }
    if let Some(category) = wanted.category {
        query = query.filter(table::category.eq(category));
    }
    if let Some(name) = wanted.name {
        query = query.filter(table::name.eq(name));
    }
    if let Some(after) = page.page().after::<MessageTemplateId>()? {
        query = query.filter(table::id.lt(after));
    }
    let rows = query.load(read.connection())?;
    let templates = rows.iter().map(TemplateRow::template).collect::<Result<Vec<_>>>()?;
    Ok(page.answer(templates, |template| template.id.to_string()))
}

/// One message template
///
/// Returns the template with its parts, the values that a send must have, and its approval status.
#[operation(get "/channels/{channelId}/chatnet/templates/{templateId}", scope = "channels:read")]
pub fn get_message_template(
    read: &mut Read,
    caller: &model::Caller,
    Path(channel_id): Path<ChannelId>,
    Path(template_id): Path<MessageTemplateId>,
) -> Result<Json<MessageTemplate>> {
    let channel = channels::live(read, caller.workspace_id(), channel_id)?;
    queries::live(read, channel.id, template_id)?.template().map(Json)
}

/// Submit a message template for approval
///
/// The template is checked for what the network would refuse, and submitted. The network reviews it within minutes to a
/// day; the event `channel.template.updated` says how it decided.
#[operation(post "/channels/{channelId}/chatnet/templates", scope = "channels:manage")]
pub async fn create_message_template(
    cx: &Cx,
    Path(channel_id): Path<ChannelId>,
    Body(new): Body<NewMessageTemplate>,
    State(network): State<Network>,
    State(seal): State<Seal>,
) -> Result<Created<MessageTemplate>> {
    let (workspace, wanted) = (cx.caller.workspace_id(), new.clone());
    let channel = cx.db.read(move |read| ready(read, workspace, channel_id, &wanted)).await?;
    // Report errors that the network would find only in its review.
    new.components.check()?;
    let template = NewNetworkTemplate {
        name: new.name,
        language: new.language,
        category: new.category,
        components: new.components.to_network(),
    };
    let account = channel.account(&seal)?;
    let created = network.0.create_template(&account, &template).await;
    let mut update = created.map_err(|error| refused(&error, "components"))?;
    update.components = Some(template.components.clone());
    update.category = update.category.or(Some(template.category));
    update.status = update.status.or(Some(TemplateStatus::Pending));
    let (channel, update) = (Arc::new(channel), Arc::new(update));
    let of = channel.clone();
    let stored = cx.db.write(move |tx| {
        let applied = queries::apply(tx, (of.workspace_id, of.id), &of.business_id, &update)?;
        applied.map(|(row, _)| row).ok_or_else(|| Error::internal("a template that was made is none"))
    });
    let row = stored.await?;
    // The network may have reviewed the template before it was stored here, and that callback was ignored. So ask for
    // the current status.
    let asked_at = cx.db.now();
    let listed = network.0.list_templates(&account).await.unwrap_or_default();
    let same = |one: &TemplateUpdate| one.name == template.name && one.language == template.language;
    if let Some(mut verdict) = listed.into_iter().find(same) {
        verdict.at = Some(asked_at);
        let verdict = Arc::new(verdict);
        cx.db.write(move |tx| queries::updated(tx, &channel, &verdict)).await?;
    }
    row.template().map(Created)
}

/// Checks that a template can be submitted.
fn ready(
    read: &mut Read,
    workspace: model::WorkspaceId,
    channel: ChannelId,
    new: &NewMessageTemplate,
) -> Result<ChannelRow> {
    let channel = channels::live(read, workspace, channel)?;
    let existing: Option<MessageTemplateId> = table::table
        .filter(table::channel_id.eq(channel.id))
        .filter(table::name.eq(&new.name))
        .filter(table::language.eq(&new.language))
        .select(table::id)
        .first(read.connection())
        .optional()?;
    if let Some(existing) = existing {
        let message = "The channel has a template with this name and language.";
        return Err(Error::duplicate("name", message, existing));
    }
    channel.expect_connected()?;
    Ok(channel)
}

/// Delete a message template
///
/// The network deletes the template in this language. Messages that were sent with it stay.
#[operation(delete "/channels/{channelId}/chatnet/templates/{templateId}", scope = "channels:manage")]
pub async fn delete_message_template(
    cx: &Cx,
    Path(channel_id): Path<ChannelId>,
    Path(template_id): Path<MessageTemplateId>,
    State(network): State<Network>,
    State(seal): State<Seal>,
) -> Result<Deleted<MessageTemplate>> {
    let workspace = cx.caller.workspace_id();
    let found = cx.db.read(move |read| {
        let channel = channels::live(read, workspace, channel_id)?;
        let template = queries::live(read, channel.id, template_id)?;
        Ok((channel, template))
    });
    let (channel, template) = found.await?;
    if let Some(provider_id) = &template.provider_id {
        let account = channel.account(&seal)?;
        match network.0.delete_template(&account, &template.name, provider_id).await {
            Err(error) if !error.is_gone => return Err(refused(&error, "template_id")),
            _ => {}
        }
    }
    cx.db
        .write(move |tx| {
            diesel::delete(table::table.find(template_id)).execute(tx.connection())?;
            Ok(())
        })
        .await?;
    Ok(Deleted::of("message_template", template_id))
}

/// Checks that a template can be sent.
///
/// # Errors
/// `template_not_approved`.
pub fn expect_approved(template: &TemplateRow) -> Result<()> {
    if template.status.is_sendable() {
        return Ok(());
    }
    let message = format!("The message template is {}.", template.status.as_str());
    let details = serde_json::json!({ "status": template.status });
    Err(Error::new(Code::TemplateNotApproved, message).with("details", details))
}
