//! Queries for message templates.

use super::events::TemplateUpdated;
use super::model::TemplateRow;
use crate::channels::ChannelRow;
use crate::schema::message_templates as table;
use chatnet::{Quality, TemplateComponents, TemplateStatus, TemplateUpdate};
use diesel::prelude::*;
use model::{Cause, ChannelId, Code, Error, JsonText, MessageTemplateId, Result, Timestamp, WorkspaceId};
use serde_json::json;
use std::collections::HashSet;
use store::{OneRow as _, Read, Tx};

/// Returns a template of a channel.
///
/// # Errors
/// `not_found`.
pub(crate) fn live(read: &mut Read, channel: ChannelId, id: MessageTemplateId) -> Result<TemplateRow> {
    table::table
        .find(id)
        .filter(table::channel_id.eq(channel))
        .select(TemplateRow::as_select())
        .get_result(read.connection())
        .or_not_found("message template")
}

/// Returns the template with a name and a language. If `namespace` is given, it must be the template's.
///
/// # Errors
/// `template_not_found`, with the available languages of the name.
pub fn named(
    read: &mut Read,
    channel: ChannelId,
    namespace: Option<&str>,
    name: &str,
    language: &str,
) -> Result<TemplateRow> {
    let of_name = table::table.filter(table::channel_id.eq(channel)).filter(table::name.eq(name));
    let row: Option<TemplateRow> = of_name
        .filter(table::language.eq(language))
        .select(TemplateRow::as_select())
        .first(read.connection())
        .optional()?;
    if let Some(row) = row.filter(|row| namespace.is_none_or(|namespace| row.namespace == namespace)) {
        return Ok(row);
    }
    let languages: Vec<String> =
        of_name.order(table::language).limit(100).select(table::language).load(read.connection())?;
    let message = "The channel has no message template with this name, language and namespace.";
    let details = json!({ "languages": languages });
    Err(Error::new(Code::TemplateNotFound, message).with("details", details))
}

/// Returns the namespace, name and language of at most five approved templates, as a hint for errors.
pub fn approved(read: &mut Read, channel: ChannelId) -> Result<Vec<(String, String, String)>> {
    Ok(table::table
        .filter(table::channel_id.eq(channel))
        .filter(table::status.eq(TemplateStatus::Approved))
        .order(table::id)
        .limit(5)
        .select((table::namespace, table::name, table::language))
        .load(read.connection())?)
}

/// Returns the components of a channel's templates with these names, each with its name and language.
///
/// # Errors
/// `internal_error` if a stored row is corrupt.
pub fn components_named(
    read: &mut Read,
    channel: ChannelId,
    names: &HashSet<String>,
) -> Result<Vec<(String, String, TemplateComponents)>> {
    let found: Vec<(String, String, JsonText)> = table::table
        .filter(table::channel_id.eq(channel))
        .filter(table::name.eq_any(names))
        .select((table::name, table::language, table::components))
        .load(read.connection())?;
    let parsed = found.into_iter().map(|(name, language, components)| {
        Ok((name, language, TemplateComponents::from_network(&components.parse()?)))
    });
    parsed.collect()
}

/// Stores the network's state of a template, adding it if it is new. A field is skipped if a later state of it is
/// stored. Returns the row and whether it has changed.
pub(crate) fn apply(
    tx: &mut Tx,
    (workspace, channel): (WorkspaceId, ChannelId),
    namespace: &str,
    update: &TemplateUpdate,
) -> Result<Option<(TemplateRow, bool)>> {
    let now = tx.now();
    let found: Option<TemplateRow> = table::table
        .filter(table::channel_id.eq(channel))
        .filter(table::name.eq(&update.name))
        .filter(table::language.eq(&update.language))
        .select(TemplateRow::as_select())
        .first(tx.connection())
        .optional()?;
    let Some(before) = found else {
        let new = introduce(tx, (workspace, channel), namespace, update)?;
        return Ok(new.map(|row| (row, true)));
    };
    let at = update.at.map_or(now, |at| at.min(now));
    // The network's times have a resolution of a second. Among states of the same second the last one to arrive
    // applies.
    let is_latest = |known: Option<Timestamp>| known.is_none_or(|known| known.seconds() <= at.seconds());
    let said_status = update.status.filter(|_| is_latest(before.status_at));
    let said_category = update.category.filter(|_| is_latest(before.category_at));
    let said_quality = update.quality.filter(|_| is_latest(before.quality_at));
    let status = said_status.unwrap_or(before.status);
    let category = said_category.unwrap_or(before.category);
    let quality = said_quality.unwrap_or(before.quality);
    let components = update.components.as_ref().map_or_else(|| before.components.clone(), JsonText::of);
    let reason = match said_status {
        Some(_) => update.rejection_reason.clone(),
        None => before.rejection_reason.clone(),
    };
    let is_changed = (status, category, quality) != (before.status, before.category, before.quality)
        || components != before.components
        || reason != before.rejection_reason;
    let row = diesel::update(table::table.find(before.id))
        .set((
            table::provider_id.eq(&update.provider_id),
            table::status.eq(status),
            table::category.eq(category),
            table::quality.eq(quality),
            table::rejection_reason.eq(reason),
            table::components.eq(components),
            table::last_synced_at.eq(now),
            table::status_at.eq(said_status.map(|_| at).or(before.status_at)),
            table::category_at.eq(said_category.map(|_| at).or(before.category_at)),
            table::quality_at.eq(said_quality.map(|_| at).or(before.quality_at)),
            table::version.eq(table::version + i64::from(is_changed)),
            table::updated_at.eq(if is_changed { now } else { before.updated_at }),
        ))
        .returning(table::all_columns)
        .get_result(tx.connection())?;
    Ok(Some((row, is_changed)))
}

/// Adds a template from the network. Returns `None` for a notification without components, which does not describe a
/// template completely.
fn introduce(
    tx: &mut Tx,
    (workspace, channel): (WorkspaceId, ChannelId),
    namespace: &str,
    update: &TemplateUpdate,
) -> Result<Option<TemplateRow>> {
    let (Some(status), Some(category), Some(components)) =
        (update.status, update.category, &update.components)
    else {
        return Ok(None);
    };
    let now = tx.now();
    let at = update.at.map_or(now, |at| at.min(now));
    let row = diesel::insert_into(table::table)
        .values((
            table::workspace_id.eq(workspace),
            table::channel_id.eq(channel),
            table::provider_id.eq(&update.provider_id),
            table::namespace.eq(namespace),
            table::name.eq(&update.name),
            table::language.eq(&update.language),
            table::category.eq(category),
            table::status.eq(status),
            table::rejection_reason.eq(&update.rejection_reason),
            table::quality.eq(update.quality.unwrap_or(Quality::Unknown)),
            table::components.eq(JsonText::of(components)),
            table::last_synced_at.eq(now),
            table::status_at.eq(at),
            table::category_at.eq(at),
            table::quality_at.eq(update.quality.map(|_| at)),
            table::version.eq(1),
            table::created_at.eq(now),
            table::updated_at.eq(now),
        ))
        .returning(table::all_columns)
        .get_result(tx.connection())?;
    Ok(Some(row))
}

/// Stores the network's state of a template, and publishes an event if the template has changed.
pub fn updated(tx: &mut Tx, channel: &ChannelRow, update: &TemplateUpdate) -> Result<()> {
    let of = (channel.workspace_id, channel.id);
    let Some((row, true)) = apply(tx, of, &channel.business_id, update)? else { return Ok(()) };
    let event = TemplateUpdated { template_id: row.id, template: row.template()? };
    tx.emit(channel.workspace_id, &Cause::system("network"), true, &event)?;
    Ok(())
}
