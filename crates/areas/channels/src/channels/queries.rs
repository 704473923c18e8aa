//! Queries for channels.

use super::model::{ChannelSettings, ChannelStatus, ChannelType};
use super::row::ChannelRow;
use crate::schema::{channels as table, message_templates};
use diesel::prelude::*;
use model::{ChannelId, Code, Error, JsonText, Result, WorkspaceId};
use std::collections::HashMap;
use store::{Read, Tx, lock_row};

/// The `LIKE` pattern for settings with `auto_assign`. Settings are stored as compact JSON.
const AUTO_ASSIGN: &str = "%\"auto_assign\":true%";

/// Returns the ids of all channels of a workspace.
pub fn ids(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<ChannelId>> {
    let own = table::table.filter(table::workspace_id.eq(workspace)).select(table::id);
    Ok(own.load(read.connection())?)
}

/// Returns the network of each channel.
pub fn types(
    read: &mut Read,
    channels: impl IntoIterator<Item = ChannelId>,
) -> Result<HashMap<ChannelId, ChannelType>> {
    let mut ids: Vec<ChannelId> = channels.into_iter().collect();
    ids.sort_unstable();
    ids.dedup();
    let found: Vec<(ChannelId, ChannelType)> = table::table
        .filter(table::id.eq_any(&ids))
        .select((table::id, table::channel_type))
        .load(read.connection())?;
    Ok(found.into_iter().collect())
}

/// Returns whether a channel belongs to a workspace.
pub fn is_of(read: &mut Read, channel: ChannelId, workspace: WorkspaceId) -> Result<bool> {
    let found = table::table.find(channel).filter(table::workspace_id.eq(workspace));
    Ok(diesel::select(diesel::dsl::exists(found)).get_result(read.connection())?)
}

/// Returns the channels among `ids` that are not disabled.
pub fn enabled(read: &mut Read, ids: &[ChannelId]) -> Result<Vec<ChannelRow>> {
    Ok(table::table
        .filter(table::id.eq_any(ids))
        .filter(table::status.ne(ChannelStatus::Disabled))
        .select(ChannelRow::as_select())
        .load(read.connection())?)
}

/// Returns the workspace's first enabled channel. With `template`, prefers the first one that has a template with
/// this name and language.
///
/// # Errors
/// `no_channel`.
pub fn first(read: &mut Read, workspace: WorkspaceId, template: Option<(&str, &str)>) -> Result<ChannelRow> {
    let channels = table::table
        .filter(table::workspace_id.eq(workspace))
        .filter(table::status.ne(ChannelStatus::Disabled))
        .order(table::id)
        .select(ChannelRow::as_select());
    if let Some((name, language)) = template {
        let having = message_templates::table
            .filter(message_templates::workspace_id.eq(workspace))
            .filter(message_templates::name.eq(name))
            .filter(message_templates::language.eq(language))
            .select(message_templates::channel_id);
        let first = channels.filter(table::id.eq_any(having)).first(read.connection()).optional()?;
        if let Some(first) = first {
            return Ok(first);
        }
    }
    let first: Option<ChannelRow> = channels.first(read.connection()).optional()?;
    let message = "The workspace has no channel over which the contact can be reached.";
    first.ok_or_else(|| Error::new(Code::NoChannel, message))
}

/// Returns the workspaces with channels whose conversations are assigned to members of the team.
pub fn auto_assigning_workspaces(read: &mut Read) -> Result<Vec<WorkspaceId>> {
    Ok(table::table
        .filter(table::settings.like(AUTO_ASSIGN))
        .filter(table::status.ne(ChannelStatus::Disabled))
        .select(table::workspace_id)
        .distinct()
        .order(table::workspace_id)
        .load(read.connection())?)
}

/// Returns the channels of a workspace whose conversations are assigned to members of the team, with their settings.
pub fn auto_assigning(read: &mut Read, workspace: WorkspaceId) -> Result<Vec<(ChannelId, ChannelSettings)>> {
    let found: Vec<(ChannelId, JsonText)> = table::table
        .filter(table::workspace_id.eq(workspace))
        .filter(table::settings.like(AUTO_ASSIGN))
        .filter(table::status.ne(ChannelStatus::Disabled))
        .select((table::id, table::settings))
        .load(read.connection())?;
    found.into_iter().map(|(id, settings)| Ok((id, settings.parse()?))).collect()
}

/// Locks the row of a channel. A transaction that changes a channel and its messages locks the channel first.
pub fn lock(tx: &mut Tx, id: ChannelId) -> Result<()> {
    lock_row!(tx, table::table.find(id).select(table::id), for_no_key_update);
    Ok(())
}

/// Sets the status of a channel.
pub fn set_status(tx: &mut Tx, id: ChannelId, status: ChannelStatus, reason: Option<&str>) -> Result<()> {
    let now = tx.now();
    diesel::update(table::table.find(id).filter(table::status.ne(status)))
        .set((
            table::status.eq(status),
            table::status_reason.eq(reason),
            table::version.eq(table::version + 1),
            table::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Records that a contact sent a message to a channel.
pub fn note_inbound(tx: &mut Tx, id: ChannelId) -> Result<()> {
    let now = tx.now();
    diesel::update(table::table.find(id)).set(table::last_inbound_at.eq(now)).execute(tx.connection())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::AUTO_ASSIGN;
    use crate::channels::ChannelSettings;
    use model::JsonText;

    #[test]
    fn the_setting_is_stored_as_it_is_looked_for() {
        let stored = |auto_assign| {
            let settings = ChannelSettings { auto_assign, ..ChannelSettings::default() };
            JsonText::of(&settings).as_str().contains(AUTO_ASSIGN.trim_matches('%'))
        };
        assert_eq!([stored(true), stored(false)], [true, false]);
    }
}
