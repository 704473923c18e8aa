//! Changes of values, as callers ask for them.

use super::editor::Editor;
use super::find;
use super::row::ItemRow;
use super::values::{self, Missing};
use super::write::{self, Draft};
use crate::links::{self, LockSet};
use fields::Data;
use fields::value::Mode;
use model::{ItemId, Patch, Result};
use operation::ExpectedVersion;
use store::LockMode;
use store::Tx;

/// A change of an item's values, as a caller asks for it.
#[derive(Debug, Clone)]
pub struct ItemChange<'a> {
    /// The values that the request names.
    pub data: &'a Data,
    /// What becomes of fields that it does not name.
    pub missing: Missing,
    /// How willing to be with values of another type.
    pub mode: Mode,
    /// The caller's own key.
    pub external_key: Patch<String>,
    /// The version that the change was made for.
    pub expected: ExpectedVersion,
    /// What stands before the names of fields in errors, such as `rows[3].`.
    pub path: &'a str,
}

impl ItemChange<'_> {
    /// Locks the live item that is to be changed, with the items at the other ends of links that the change makes or
    /// removes.
    ///
    /// # Errors
    /// `not_found`.
    pub fn locked(&self, tx: &mut Tx, editor: &Editor<'_>, id: ItemId) -> Result<ItemRow> {
        if editor.relates(self.data, self.missing) {
            links::hold(tx, editor.shape.workspace, |tx| {
                let mut locks = LockSet::default();
                self.plan_locks(tx, editor, id, &mut locks)?;
                Ok(locks)
            })?;
        }
        find::locked(tx, &editor.shape, id)
    }

    /// Adds to `locks` the item, and the items at the other ends of links that the change would make or remove now.
    ///
    /// # Errors
    /// The database's.
    pub fn plan_locks(
        &self,
        tx: &mut Tx,
        editor: &Editor<'_>,
        id: ItemId,
        locks: &mut LockSet,
    ) -> Result<()> {
        locks.add([id], LockMode::Exclusive);
        let row = find::find(tx, &editor.shape, id)?.filter(|row| row.trashed_at.is_none());
        let Some(row) = row else { return Ok(()) };
        let before = row.values()?;
        // What is wrong is told when the change is made.
        match values::merge(&editor.shape, Some(&before), self.data, self.missing, self.mode, self.path) {
            Ok(data) => links::plan_locks(tx, &editor.writer(), Some(&row), &data, locks),
            Err(_) => Ok(()),
        }
    }

    /// Makes it to a live item that this transaction has locked.
    ///
    /// # Errors
    /// `version_conflict`, `item_locked`, `validation_error`, `duplicate_value`.
    pub fn make(self, tx: &mut Tx, editor: &Editor<'_>, row: ItemRow) -> Result<write::Written> {
        find::refuse_locked(&row)?;
        find::expect_version(&editor.shape, &row, self.expected)?;
        let draft = self.draft(editor, &row)?;
        editor.writer().update(tx, row, draft)
    }

    /// What a record becomes by it.
    ///
    /// # Errors
    /// `validation_error`.
    pub fn draft(self, editor: &Editor<'_>, row: &ItemRow) -> Result<Draft> {
        let before = row.values()?;
        let data =
            values::merge(&editor.shape, Some(&before), self.data, self.missing, self.mode, self.path)?;
        let mut external_key = row.external_key.clone();
        self.external_key.apply(&mut external_key);
        Ok(Draft { data, external_key, position: row.position.clone() })
    }
}
