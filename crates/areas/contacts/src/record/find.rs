//! Lookup of contacts by id, telephone number, e-mail address or external id.

use super::kind::CONTACTS;
use super::merges;
use fields::invisible::bare;
use fields::value::{self, Mode};
use fields::{FieldType, phone};
use model::{Caller, Code, Error, ItemId, Result, WorkspaceId};
use ports::{ContactKey, ContactRef};
use records::Author;
use records::count;
use records::rows::{self, Editor, ItemRow};
use records::sets;
use records::shape::{Shape, Shapes};
use serde_json::Value;
use std::sync::Arc;
use store::{Read, Tx};

/// Attempts to find a contact that concurrent transactions change or merge.
pub(crate) const TRIES: usize = 5;

/// Finds the contact that a path names.
pub trait FindContact {
    /// Resolves to the id of the contact. A contact that is named by its id need not be live. The identity of a merged
    /// contact resolves to the survivor.
    ///
    /// # Errors
    /// `not_found`.
    fn id(&self, read: &mut Read, shape: &Shape) -> Result<ItemId>;

    /// Returns the contact, live or in the trash. A merged contact resolves to its survivor.
    ///
    /// # Errors
    /// `not_found`.
    fn any(&self, read: &mut Read, shape: &Shape) -> Result<ItemRow>;

    /// Returns the contact as [`Self::any`] does, with the shape of the workspace's contacts. One query reads both if the
    /// contact is live and named by its id.
    ///
    /// # Errors
    /// `not_found`.
    fn with_shape(
        &self,
        read: &mut Read,
        shapes: &Shapes,
        workspace: WorkspaceId,
    ) -> Result<(Arc<Shape>, ItemRow)>;

    /// Returns the live contact. A merged contact resolves to its survivor.
    ///
    /// # Errors
    /// `not_found`.
    fn live(&self, read: &mut Read, shape: &Shape) -> Result<ItemRow>;

    /// Returns the live contact, locked until the transaction ends. A merged contact resolves to its survivor.
    ///
    /// # Errors
    /// `not_found`.
    fn locked(&self, tx: &mut Tx, shape: &Shape) -> Result<ItemRow> {
        self.locked_by(tx, shape, |tx, id| rows::locked(tx, shape, id))
    }

    /// Returns the live contact as [`Self::locked`] does. `lock` locks it, together with other rows that the change needs.
    ///
    /// # Errors
    /// `not_found`, and those of `lock`.
    fn locked_by(
        &self,
        tx: &mut Tx,
        shape: &Shape,
        lock: impl FnMut(&mut Tx, ItemId) -> Result<ItemRow>,
    ) -> Result<ItemRow>;
}

impl FindContact for ContactRef {
    fn id(&self, read: &mut Read, shape: &Shape) -> Result<ItemId> {
        let found = match &self.by {
            ContactKey::Id(id) => Some(*id),
            ContactKey::Field(key, text) => holder_of(read, shape, key, text)?,
            ContactKey::ExternalId(key) => match rows::holder_of_key(read, shape, key)? {
                Some(holder) => Some(holder),
                None => merges::survivor_of_key(read, shape.workspace, &bare(key))?,
            },
            ContactKey::Nothing => None,
        };
        found.ok_or_else(|| Error::not_found(CONTACTS.noun))
    }

    fn any(&self, read: &mut Read, shape: &Shape) -> Result<ItemRow> {
        let id = self.id(read, shape)?;
        let row = match rows::find(read, shape, id)? {
            Some(live) if live.trashed_at.is_none() => return Ok(live),
            row => row,
        };
        let survivor = match merges::survivor_of(read, shape.workspace, id)? {
            Some(survivor) => rows::find(read, shape, survivor)?,
            None => row,
        };
        survivor.ok_or_else(|| Error::not_found(CONTACTS.noun))
    }

    fn with_shape(
        &self,
        read: &mut Read,
        shapes: &Shapes,
        workspace: WorkspaceId,
    ) -> Result<(Arc<Shape>, ItemRow)> {
        if let ContactKey::Id(id) = self.by {
            let set = CONTACTS.set_of(workspace);
            match rows::find_with_shape(read, shapes, workspace, set, id) {
                Ok((shape, Some(row))) if row.trashed_at.is_none() => return Ok((shape, row)),
                // `NotFound` means that the workspace has no stored contacts yet; `for_read` below handles that.
                Err(error) if error.code() != Code::NotFound => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
        let shape = sets::for_read(read, shapes, workspace, &CONTACTS)?;
        let row = self.any(read, &shape)?;
        Ok((shape, row))
    }

    fn live(&self, read: &mut Read, shape: &Shape) -> Result<ItemRow> {
        for _ in 0..TRIES {
            let row = self.any(read, shape)?;
            if row.trashed_at.is_none() {
                return Ok(row);
            }
            // Between two queries the contact may have been merged into another.
            if merges::survivor_of(read, shape.workspace, row.id)?.is_none() {
                break;
            }
        }
        Err(Error::not_found(CONTACTS.noun))
    }

    fn locked_by(
        &self,
        tx: &mut Tx,
        shape: &Shape,
        mut lock: impl FnMut(&mut Tx, ItemId) -> Result<ItemRow>,
    ) -> Result<ItemRow> {
        for _ in 0..TRIES {
            let id = self.live(tx, shape)?.id;
            match lock(tx, id) {
                // The transaction that held the lock merged this contact, so the next attempt finds the survivor.
                Err(error) if error.code() == Code::NotFound => {}
                locked => return locked,
            }
        }
        Err(Error::not_found(CONTACTS.noun))
    }
}

/// Finds the live contact with an identity, such as `$phone`, in any spelling. Returns `None` for a text that cannot
/// be an identity. Telephone numbers are also accepted without `+`, as chat networks write them.
pub(crate) fn holder_of(read: &mut Read, shape: &Shape, key: &str, text: &str) -> Result<Option<ItemId>> {
    let field = shape.field(key).ok_or_else(|| Error::internal("a system field is missing"))?;
    // Look up the text as it is first: most numbers are spelled as they are stored, and parsing is slower than a
    // lookup.
    if field.kind == FieldType::Phone
        && let Some(holder) = rows::holder_of_value(read, shape, field, &Value::from(text))?
    {
        return Ok(Some(holder));
    }
    let value = value::check(field, &Value::from(text), Mode::Strict).unwrap_or_default();
    let of_network = Some(text).filter(|_| field.kind == FieldType::Phone).and_then(phone::of_network);
    for value in value.into_iter().chain(of_network.map(Value::from)) {
        if let Some(holder) = rows::holder_of_value(read, shape, field, &value)? {
            return Ok(Some(holder));
        }
    }
    Ok(None)
}

/// Returns the shape of the caller's contacts, for reading.
pub(crate) fn contacts(read: &mut Read, shapes: &Shapes, caller: &Caller) -> Result<Arc<Shape>> {
    sets::for_read(read, shapes, caller.workspace_id(), &CONTACTS)
}

/// Counts the live contacts of a workspace, but stops at `most + 1`.
///
/// # Errors
/// `internal_error`.
pub fn count_up_to(read: &mut Read, workspace: WorkspaceId, most: i64) -> Result<i64> {
    count::live_up_to(read, CONTACTS.set_of(workspace), most)
}

/// Returns the editor for the caller's contacts, and locks their shape against changes.
pub(crate) fn editor<'a>(tx: &mut Tx, shapes: &'a Shapes, caller: &Caller) -> Result<Editor<'a>> {
    let shape = sets::for_write(tx, shapes, caller.workspace_id(), &CONTACTS)?;
    Ok(Editor::new(shapes, shape, Author::of(caller)))
}
