//! What others need to know of contacts: links that lead to them, work that they are, and what is kept about them.

use super::kind::CONTACTS;
use super::waiting;
use crate::reminders;
use crate::schema::{contact_consents, contact_notes};
use diesel::prelude::*;
use fields::FieldType;
use model::{ContactId, ItemId, MemberId, Result, WorkspaceId, whole_number};
use ports::{ContactReferences, LinkTargets, LinkedTarget, OpenWork, WorkType};
use records::indexes::count_ids;
use records::rows;
use records::sets;
use records::shape::Shapes;
use std::collections::HashMap;
use std::sync::Arc;
use store::{Read, Tx};

/// The most members of a team whose contacts are counted.
pub(super) const MOST_MEMBERS: i64 = 1_000;

/// What is kept about contacts.
pub(crate) struct ContactRecords;

impl ContactReferences for ContactRecords {
    fn tables(&self) -> &'static [&'static str] {
        &["contact_consents", "contact_notes", "contacts_without_assignee", "reminders"]
    }

    fn replace(&self, tx: &mut Tx, workspace: WorkspaceId, from: ContactId, to: ContactId) -> Result<()> {
        diesel::update(contact_notes::table)
            .filter(contact_notes::contact_id.eq(from.0))
            .filter(contact_notes::workspace_id.eq(workspace))
            .set(contact_notes::contact_id.eq(to.0))
            .execute(tx.connection())?;
        diesel::update(contact_consents::table)
            .filter(contact_consents::contact_id.eq(from.0))
            .filter(contact_consents::workspace_id.eq(workspace))
            .set(contact_consents::contact_id.eq(to.0))
            .execute(tx.connection())?;
        waiting::replace(tx, from, to)?;
        reminders::move_to_contact(tx, workspace, from, to)?;
        Ok(())
    }
}

/// Contacts as targets of links.
pub(crate) struct ContactTargets {
    pub(crate) shapes: Arc<Shapes>,
}

impl LinkTargets for ContactTargets {
    fn target_type(&self) -> &'static str {
        "contact"
    }

    fn hold(&self, tx: &mut Tx, workspace: WorkspaceId, id: &str) -> Result<bool> {
        let Some(id) = whole_number(id) else { return Ok(false) };
        let set = CONTACTS.set_of(workspace);
        Ok(!rows::live_among(tx, set, &[id])?.is_empty())
    }

    fn survivor(&self, read: &mut Read, workspace: WorkspaceId, id: &str) -> Result<Option<String>> {
        let Some(id) = whole_number(id) else { return Ok(None) };
        let survivors = self.shapes.merged().survivors(read, FieldType::Contact, workspace, &[ItemId(id)])?;
        Ok(survivors.into_values().next().map(|survivor| survivor.to_string()))
    }

    fn show(&self, read: &mut Read, workspace: WorkspaceId, ids: &[&str]) -> Result<Vec<LinkedTarget>> {
        let shape = sets::for_read(read, &self.shapes, workspace, &CONTACTS)?;
        let ids: Vec<ItemId> = ids.iter().filter_map(|id| whole_number(id)).map(ItemId).collect();
        let shown = |(id, title): (ItemId, String)| LinkedTarget {
            id: id.to_string(),
            title: Some(title).filter(|title| !title.is_empty()),
            mime_type: None,
            status: None,
        };
        Ok(rows::titles(read, &shape, &ids)?.into_iter().map(shown).collect())
    }
}

/// The conversations that are assigned to members of the team.
pub(crate) struct AssignedContacts {
    pub(crate) shapes: Arc<Shapes>,
}

impl OpenWork for AssignedContacts {
    fn work_type(&self) -> WorkType {
        WorkType::Conversations
    }

    fn by_member(&self, read: &mut Read, workspace: WorkspaceId) -> Result<HashMap<MemberId, i64>> {
        let shape = sets::for_read(read, &self.shapes, workspace, &CONTACTS)?;
        let counted = count_ids(read, &shape, "$assignee", MOST_MEMBERS)?;
        Ok(counted.into_iter().map(|(id, count)| (MemberId(id), count)).collect())
    }
}
