//! References of reminders to contacts and files.

use super::model::ReminderAction;
use super::queries;
use crate::schema::reminders;
use diesel::prelude::*;
use model::{ContactId, FileId, JsonText, ReminderId, Result, WorkspaceId};
use ports::{ContactReferences, FileReferences, FileUse};
use store::{Read, Tx};

/// Reminders as references to contacts.
pub(crate) struct ReminderReferences;

impl ContactReferences for ReminderReferences {
    fn tables(&self) -> &'static [&'static str] {
        &["reminders"]
    }

    fn replace(&self, tx: &mut Tx, workspace: WorkspaceId, from: ContactId, to: ContactId) -> Result<()> {
        queries::move_to_contact(tx, workspace, from, to)?;
        Ok(())
    }

    fn wrote(&self, tx: &mut Tx, workspace: WorkspaceId, contacts: &[ContactId]) -> Result<()> {
        queries::cancel_on_reply(tx, workspace, contacts)
    }

    fn delete(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<()> {
        queries::delete_of_contact(tx, workspace, contact)
    }
}

/// Reminders as users of files, by the templates that they will send.
pub(crate) struct ReminderFiles;

impl FileReferences for ReminderFiles {
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, file: FileId, most: i64) -> Result<Vec<FileUse>> {
        let named: Vec<(ReminderId, JsonText)> = reminders::table
            .filter(reminders::workspace_id.eq(workspace))
            .filter(reminders::wake_at.is_not_null())
            .filter(reminders::action.like(format!("%\"media\":{file}%")))
            .order(reminders::id)
            .select((reminders::id, reminders::action))
            .load(read.connection())?;
        let sends = |action: &JsonText| {
            let template = action.parse::<ReminderAction>().ok().and_then(|action| action.config.template);
            template.and_then(|template| template.media) == Some(file)
        };
        let using = named.iter().filter(|(_, action)| sends(action)).map(|(id, _)| id);
        let most = usize::try_from(most).unwrap_or_default();
        Ok(using.take(most).map(|id| FileUse { r#type: "reminder", id: id.to_string() }).collect())
    }
}
