//! The conversations that the service assigns to members of the team by itself.

use crate::channels::{ChannelSettings, ChannelStatus};
use crate::messages::ConversationStatus;
use crate::schema::{channels, conversations};
use diesel::prelude::*;
use model::{ChannelId, ContactId, JsonText, Result, WorkspaceId};
use ports::AssignedConversations;
use std::collections::HashSet;
use store::Read;

/// How the settings of a channel are stored whose conversations are assigned.
const SETTING: &str = "%\"auto_assign\":true%";

/// The conversations over channels with the setting `auto_assign`.
pub struct AutoAssigned;

impl AssignedConversations for AutoAssigned {
    fn workspaces(&self, read: &mut Read) -> Result<Vec<WorkspaceId>> {
        Ok(channels::table
            .filter(channels::settings.like(SETTING))
            .filter(channels::status.ne(ChannelStatus::Disabled))
            .select(channels::workspace_id)
            .distinct()
            .order(channels::workspace_id)
            .load(read.connection())?)
    }

    fn among(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        contacts: &[ContactId],
    ) -> Result<HashSet<ContactId>> {
        let found: Vec<ContactId> = conversations::table
            .inner_join(channels::table.on(channels::id.eq(conversations::channel_id)))
            .filter(conversations::contact_id.eq_any(contacts))
            .filter(conversations::workspace_id.eq(workspace))
            .filter(conversations::status.eq(ConversationStatus::Open))
            .filter(channels::settings.like(SETTING))
            .filter(channels::status.ne(ChannelStatus::Disabled))
            .select(conversations::contact_id)
            .load(read.connection())?;
        Ok(found.into_iter().collect())
    }

    fn left_waiting(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        contacts: &[ContactId],
        minutes: i64,
    ) -> Result<HashSet<ContactId>> {
        let assigned: Vec<(ChannelId, JsonText)> = channels::table
            .filter(channels::workspace_id.eq(workspace))
            .filter(channels::settings.like(SETTING))
            .filter(channels::status.ne(ChannelStatus::Disabled))
            .select((channels::id, channels::settings))
            .load(read.connection())?;
        let mut impatient = Vec::new();
        for (channel, settings) in assigned {
            let after = settings.parse::<ChannelSettings>()?.reassign_after_minutes;
            if after > 0 && after <= minutes {
                impatient.push(channel);
            }
        }
        let found: Vec<ContactId> = conversations::table
            .filter(conversations::contact_id.eq_any(contacts))
            .filter(conversations::channel_id.eq_any(impatient))
            .filter(conversations::status.eq(ConversationStatus::Open))
            .filter(conversations::unread_count.gt(0))
            .select(conversations::contact_id)
            .load(read.connection())?;
        Ok(found.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::SETTING;
    use crate::channels::ChannelSettings;
    use model::JsonText;

    #[test]
    fn the_setting_is_stored_as_it_is_looked_for() {
        let stored = |auto_assign| {
            let settings = ChannelSettings { auto_assign, ..ChannelSettings::default() };
            JsonText::of(&settings).as_str().contains(SETTING.trim_matches('%'))
        };
        assert_eq!([stored(true), stored(false)], [true, false]);
    }
}
