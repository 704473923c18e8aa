//! Contacts as targets of links, and the rows of this crate that refer to contacts.

use crate::handoff::waiting;
use crate::record::kind::CONTACTS;
use crate::schema::{contact_consents, contact_merges, contact_notes};
use diesel::prelude::*;
use fields::FieldType;
use model::{ContactId, ItemId, Result, WorkspaceId, whole_number};
use ports::{ContactReferences, LinkTargets, LinkedTarget};
use records::rows;
use records::sets;
use records::shape::Shapes;
use std::sync::Arc;
use store::{Read, Tx};

/// The tables of this crate that refer to contacts: notes, consents, merges and the queue of waiting contacts.
pub(crate) struct ContactRecords;

impl ContactReferences for ContactRecords {
    fn tables(&self) -> &'static [&'static str] {
        &["contact_consents", "contact_notes", "contacts_without_assignee"]
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
        waiting::replace(tx, from, to)
    }

    fn delete(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<()> {
        diesel::delete(contact_notes::table)
            .filter(contact_notes::contact_id.eq(contact.0))
            .filter(contact_notes::workspace_id.eq(workspace))
            .execute(tx.connection())?;
        diesel::delete(contact_consents::table)
            .filter(contact_consents::contact_id.eq(contact.0))
            .filter(contact_consents::workspace_id.eq(workspace))
            .execute(tx.connection())?;
        diesel::delete(contact_merges::table)
            .filter(contact_merges::survivor_id.eq(contact.0))
            .filter(contact_merges::workspace_id.eq(workspace))
            .execute(tx.connection())?;
        waiting::remove(tx, ItemId(contact.0))
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
