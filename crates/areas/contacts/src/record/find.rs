//! Finding contacts: by id, telephone number, e-mail address or external id.

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

/// How often a contact is looked for again that others change or merge meanwhile.
pub(crate) const TRIES: usize = 5;

/// Finding the contact that a path names.
pub trait FindContact {
    /// The id of the contact that it names, which need not be live where it is an id. An identity of a contact that was
    /// merged into another is that of the other.
    ///
    /// # Errors
    /// `not_found`.
    fn id(&self, read: &mut Read, shape: &Shape) -> Result<ItemId>;

    /// The contact that it names, live or in the trash; the one into which that was merged, if it was.
    ///
    /// # Errors
    /// `not_found`.
    fn any(&self, read: &mut Read, shape: &Shape) -> Result<ItemRow>;

    /// The same, of a caller's workspace, with the shape of its contacts. A live contact that is named by its id is read
    /// with the shape, by one query.
    ///
    /// # Errors
    /// `not_found`.
    fn with_shape(
        &self,
        read: &mut Read,
        shapes: &Shapes,
        workspace: WorkspaceId,
    ) -> Result<(Arc<Shape>, ItemRow)>;

    /// The live contact that it names, or into which that was merged.
    ///
    /// # Errors
    /// `not_found`.
    fn live(&self, read: &mut Read, shape: &Shape) -> Result<ItemRow>;

    /// The live contact that it names, or into which that was merged. Nobody else changes it until the transaction
    /// ends.
    ///
    /// # Errors
    /// `not_found`.
    fn locked(&self, tx: &mut Tx, shape: &Shape) -> Result<ItemRow> {
        self.locked_by(tx, shape, |tx, id| rows::locked(tx, shape, id))
    }

    /// The same, where `lock` locks the contact with what else the change needs.
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
                // There is no set before the first contact.
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
                // Whoever had it locked has merged it into another, whose it is to be found by now.
                Err(error) if error.code() == Code::NotFound => {}
                locked => return locked,
            }
        }
        Err(Error::not_found(CONTACTS.noun))
    }
}

/// The live contact with an identity, such as `$phone`, in whatever spelling. Texts that cannot be one are that of none.
/// Networks write telephone numbers without `+`.
///
/// # Errors
/// When the database fails.
pub(crate) fn holder_of(read: &mut Read, shape: &Shape, key: &str, text: &str) -> Result<Option<ItemId>> {
    let field = shape.field(key).ok_or_else(|| Error::internal("a system field is missing"))?;
    // Reading a number takes longer than looking it up, and most are spelled as they are stored.
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

/// The contacts of a caller's workspace, for reading.
///
/// # Errors
/// When the database fails.
pub(crate) fn contacts(read: &mut Read, shapes: &Shapes, caller: &Caller) -> Result<Arc<Shape>> {
    sets::for_read(read, shapes, caller.workspace_id(), &CONTACTS)
}

/// How many live contacts a workspace has, counted up to `most` and one more.
///
/// # Errors
/// When the database fails.
pub fn count_up_to(read: &mut Read, workspace: WorkspaceId, most: i64) -> Result<i64> {
    count::live_up_to(read, CONTACTS.set_of(workspace), most)
}

/// The contacts of a caller's workspace, for changing them.
///
/// # Errors
/// When the database fails.
pub(crate) fn editor<'a>(tx: &mut Tx, shapes: &'a Shapes, caller: &Caller) -> Result<Editor<'a>> {
    let shape = sets::for_write(tx, shapes, caller.workspace_id(), &CONTACTS)?;
    Ok(Editor::new(shapes, shape, Author::of(caller)))
}
