//! What refers to objects of other groups: to files, which are in use then, and to contacts, with which it goes.

use model::{ContactId, Error, FileId, Result, WorkspaceId};
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};
use store::{Read, Tx};
use utoipa::ToSchema;

/// An object that refers to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "type": "item", "id": "4711" }))]
pub struct FileUse {
    /// The type of the object, such as `item`.
    pub r#type: &'static str,
    /// Its id, as text.
    pub id: String,
}

/// What refers to files. Each group that keeps such references implements it.
pub trait FileReferences: Send + Sync {
    /// Objects of the workspace that refer to a file, at most `most` of them.
    ///
    /// # Errors
    /// When the database fails.
    fn uses(&self, read: &mut Read, workspace: WorkspaceId, file: FileId, most: i64) -> Result<Vec<FileUse>>;
}

/// How much is left of what was kept about a contact that was deleted permanently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// Only what others are working with at this moment, such as a message that is being sent.
    Busy,
    /// More than one transaction deletes.
    More,
}

/// What refers to contacts. Each group that keeps such references implements it, so that they follow a contact that is
/// merged into another, and are deleted with one that is deleted permanently.
pub trait ContactReferences: Send + Sync {
    /// The tables with the references. Every table that has a column `contact_id` is one of a group's.
    fn tables(&self) -> &'static [&'static str];

    /// Makes what refers to a contact refer to another one of its workspace.
    ///
    /// # Errors
    /// When the database fails.
    fn replace(&self, tx: &mut Tx, workspace: WorkspaceId, from: ContactId, to: ContactId) -> Result<()>;

    /// Records that locked contacts wrote, which cancels what waits for their silence.
    ///
    /// # Errors
    /// When the database fails.
    fn wrote(&self, _tx: &mut Tx, _workspace: WorkspaceId, _contacts: &[ContactId]) -> Result<()> {
        Ok(())
    }

    /// Deletes what must not outlive a contact, in the transaction that deletes the contact permanently. The rest is
    /// [forgotten](Self::forget) in the background.
    ///
    /// # Errors
    /// When the database fails.
    fn delete(&self, _tx: &mut Tx, _workspace: WorkspaceId, _contact: ContactId) -> Result<()> {
        Ok(())
    }

    /// Files that a contact sent or was sent, behind the file `after`: the `most` with the least ids, in their order. Deleted
    /// ones may be among them.
    ///
    /// # Errors
    /// When the database fails.
    fn files(
        &self,
        _read: &mut Read,
        _workspace: WorkspaceId,
        _contact: ContactId,
        _after: FileId,
        _most: i64,
    ) -> Result<Vec<FileId>> {
        Ok(Vec::new())
    }

    /// Deletes what is kept about a contact that was deleted permanently, such as its address: as much as a short
    /// transaction does.
    ///
    /// # Errors
    /// When the database fails.
    fn forget(&self, _tx: &mut Tx, _workspace: WorkspaceId, _contact: ContactId) -> Result<Left> {
        Ok(Left::Nothing)
    }
}

/// Everything that refers to contacts. A service that operations ask for, and that groups can be given before it is known
/// what refers to contacts. Cheap to clone.
#[derive(Clone, Default)]
pub struct ContactUses(Arc<OnceLock<Vec<Arc<dyn ContactReferences>>>>);

impl fmt::Debug for ContactUses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContactUses")
    }
}

impl ContactUses {
    /// Says what the references of all groups are. Only the first counts.
    pub fn connect(&self, references: impl IntoIterator<Item = Arc<dyn ContactReferences>>) {
        let _ = self.0.set(references.into_iter().collect());
    }

    fn all(&self) -> Result<&[Arc<dyn ContactReferences>]> {
        // Without them nothing would follow a contact.
        let all =
            self.0.get().ok_or_else(|| Error::internal("the references to contacts are not connected"))?;
        Ok(all)
    }

    /// The tables with the references.
    pub fn tables(&self) -> impl Iterator<Item = &'static str> {
        self.0.get().into_iter().flatten().flat_map(|references| references.tables().iter().copied())
    }

    /// Makes what refers to a contact refer to another one of its workspace.
    ///
    /// # Errors
    /// When the database fails.
    pub fn replace(&self, tx: &mut Tx, workspace: WorkspaceId, from: ContactId, to: ContactId) -> Result<()> {
        self.all()?.iter().try_for_each(|references| references.replace(tx, workspace, from, to))
    }

    /// Records that locked contacts wrote, which cancels what waits for their silence.
    ///
    /// # Errors
    /// When the database fails.
    pub fn wrote(&self, tx: &mut Tx, workspace: WorkspaceId, contacts: &[ContactId]) -> Result<()> {
        self.all()?.iter().try_for_each(|references| references.wrote(tx, workspace, contacts))
    }

    /// Deletes what must not outlive a contact, in the transaction that deletes the contact permanently.
    ///
    /// # Errors
    /// When the database fails.
    pub fn delete(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<()> {
        self.all()?.iter().try_for_each(|references| references.delete(tx, workspace, contact))
    }

    /// Files that a contact sent or was sent, behind the file `after`: the `most` with the least ids, in their order. Deleted
    /// ones may be among them.
    ///
    /// # Errors
    /// When the database fails.
    pub fn files(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        contact: ContactId,
        after: FileId,
        most: i64,
    ) -> Result<Vec<FileId>> {
        let mut files = BTreeSet::new();
        for references in self.all()? {
            files.extend(references.files(read, workspace, contact, after, most)?);
        }
        Ok(files.into_iter().take(usize::try_from(most).unwrap_or_default()).collect())
    }

    /// Deletes some of what is kept about a contact that was deleted permanently, and says how much is left.
    ///
    /// # Errors
    /// When the database fails.
    pub fn forget(&self, tx: &mut Tx, workspace: WorkspaceId, contact: ContactId) -> Result<Left> {
        let mut left = Left::Nothing;
        for references in self.all()? {
            left = left.max(references.forget(tx, workspace, contact)?);
        }
        Ok(left)
    }
}

/// Everything that refers to files. A service that operations ask for, and that groups can be given before it is known what
/// refers to files. Cheap to clone.
#[derive(Clone, Default)]
pub struct FileUses(Arc<OnceLock<Vec<Arc<dyn FileReferences>>>>);

impl FileUses {
    /// Says what the references of all groups are. Only the first counts.
    pub fn connect(&self, references: impl IntoIterator<Item = Arc<dyn FileReferences>>) {
        let _ = self.0.set(references.into_iter().collect());
    }

    /// Objects of the workspace that refer to a file, at most `most` of them.
    ///
    /// # Errors
    /// When the database fails.
    pub fn of(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        file: FileId,
        most: i64,
    ) -> Result<Vec<FileUse>> {
        let mut found = Vec::new();
        // Without them every file would seem to be of no use.
        let all = self.0.get().ok_or_else(|| Error::internal("the references to files are not connected"))?;
        for references in all {
            let rest = most - i64::try_from(found.len()).unwrap_or(most);
            if rest > 0 {
                found.extend(references.uses(read, workspace, file, rest)?);
            }
        }
        Ok(found)
    }
}
