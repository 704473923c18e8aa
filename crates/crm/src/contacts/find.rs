//! Finding contacts: by id, telephone number, e-mail address or external id.

use super::kind::CONTACTS;
use super::merges;
use fields::value::{self, Mode};
use model::{Caller, Error, ItemId, Result, WorkspaceId, whole_number};
use records::Author;
use records::count;
use records::rows::{self, Editor, ItemRow};
use records::sets;
use records::shape::{Shape, Shapes};
use serde_json::Value;
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use store::{Read, Tx};

/// How a path names a contact: `1042`, `phone:+5511987654321`, `email:ana@example.com` or `external:shop-4711`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContactRef {
    text: String,
    by: By,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum By {
    Id(ItemId),
    Field(&'static str, String),
    ExternalId(String),
    /// What can be the name of none.
    Nothing,
}

impl FromStr for ContactRef {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let by = match text.split_once(':') {
            None => whole_number(text).map_or(By::Nothing, |id| By::Id(ItemId(id))),
            Some(("phone", phone)) => By::Field("$phone", phone.to_owned()),
            Some(("email", email)) => By::Field("$email", email.to_owned()),
            Some(("external", id)) => By::ExternalId(id.to_owned()),
            Some(_) => By::Nothing,
        };
        Ok(Self { text: text.to_owned(), by })
    }
}

impl fmt::Display for ContactRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl utoipa::PartialSchema for ContactRef {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
        utoipa::openapi::ObjectBuilder::new()
            .schema_type(utoipa::openapi::schema::Type::String)
            .description(Some(
                "The id of the contact, or `phone:`, `email:` or `external:` followed by its telephone number, e-mail \
                 address or external id.",
            ))
            .examples(["1"])
            .into()
    }
}
impl utoipa::ToSchema for ContactRef {}

impl ContactRef {
    /// The id of the contact that it names, which need not be live where it is an id. An identity of a contact that was
    /// merged into another is that of the other.
    ///
    /// # Errors
    /// `not_found`.
    pub(super) fn id(&self, read: &mut Read, shape: &Shape) -> Result<ItemId> {
        let found = match &self.by {
            By::Id(id) => Some(*id),
            By::Field(key, text) => {
                let field = shape.field(key).ok_or_else(|| Error::internal("a system field is missing"))?;
                match value::check(field, &Value::from(text.as_str()), Mode::Strict) {
                    Ok(Some(value)) => rows::holder_of_value(read, shape, field, &value)?,
                    _ => None,
                }
            }
            By::ExternalId(key) => match rows::holder_of_key(read, shape, key)? {
                Some(holder) => Some(holder),
                None => merges::survivor_of_key(read, shape.workspace, key)?,
            },
            By::Nothing => None,
        };
        found.ok_or_else(|| Error::not_found(CONTACTS.noun))
    }

    /// The contact that it names, live or in the trash; the one into which that was merged, if it was.
    ///
    /// # Errors
    /// `not_found`.
    pub(super) fn any(&self, read: &mut Read, shape: &Shape) -> Result<ItemRow> {
        let id = self.id(read, shape)?;
        let row = rows::find(read, shape, id)?;
        if let Some(live) = row.as_ref().filter(|row| row.trashed_at.is_none()) {
            return Ok(live.clone());
        }
        let survivor = match merges::survivor_of(read, shape.workspace, id)? {
            Some(survivor) => rows::find(read, shape, survivor)?,
            None => row,
        };
        survivor.ok_or_else(|| Error::not_found(CONTACTS.noun))
    }

    /// The live contact that it names, or into which that was merged.
    ///
    /// # Errors
    /// `not_found`.
    pub(super) fn live(&self, read: &mut Read, shape: &Shape) -> Result<ItemRow> {
        let row = Some(self.any(read, shape)?).filter(|row| row.trashed_at.is_none());
        row.ok_or_else(|| Error::not_found(CONTACTS.noun))
    }

    /// The live contact that it names, or into which that was merged. Nobody else changes it until the transaction
    /// ends.
    ///
    /// # Errors
    /// `not_found`.
    pub(super) fn locked(&self, tx: &mut Tx, shape: &Shape) -> Result<ItemRow> {
        let id = self.live(tx, shape)?.id;
        rows::locked(tx, shape, id)
    }
}

/// The contacts of a caller's workspace, for reading.
///
/// # Errors
/// When the database fails.
pub(super) fn contacts(read: &mut Read, shapes: &Shapes, caller: &Caller) -> Result<Arc<Shape>> {
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
pub(super) fn editor<'a>(tx: &mut Tx, shapes: &'a Shapes, caller: &Caller) -> Result<Editor<'a>> {
    let shape = sets::for_write(tx, shapes, caller.workspace_id(), &CONTACTS)?;
    Ok(Editor::new(shapes, shape, Author::of(caller)))
}
