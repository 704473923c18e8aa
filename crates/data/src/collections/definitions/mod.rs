//! Fields: what items have values of.

mod change;
mod choices;
mod convert;
mod create;
mod define;
pub(super) mod keys;
mod model;
mod operations;
mod options;
mod remove;
mod resolve;
pub(crate) mod rewrite;
mod survey;
pub(super) mod users;

pub use model::{CollectionField, NewField};

pub(crate) use choices::add_choices;
pub(crate) use create::create;
pub(super) use define::{Definition, can_be_primary, define, insert};
pub(crate) use keys::free_key;
pub(crate) use resolve::{has_key, refuse_many};
pub(super) use resolve::{mirror, resolve};

use crate::shape::Shape;
use ::model::{Error, FieldId, Result};
use operation::Operations;

pub(super) fn operations() -> Operations {
    vec![
        Box::new(operations::ListFields),
        Box::new(operations::CreateField),
        Box::new(operations::ReorderFields),
        Box::new(operations::GetField),
        Box::new(change::UpdateField),
        Box::new(remove::DeleteField),
        Box::new(choices::CreateFieldOption),
        Box::new(choices::UpdateFieldOption),
        Box::new(choices::DeleteFieldOption),
    ]
}

/// The field with this key, which must be able to be the title of items.
///
/// # Errors
/// `validation_error` at `primary_field`.
pub(super) fn expect_primary(shape: &Shape, key: &str) -> Result<FieldId> {
    match shape.field(key) {
        None => Err(Error::invalid("primary_field", "is not a field of this collection")),
        Some(field) if !can_be_primary(field.kind) => {
            let rule = format!("has the type `{}`, which cannot be a title", field.kind.as_str());
            Err(Error::invalid("primary_field", rule))
        }
        Some(field) => Ok(field.id),
    }
}
