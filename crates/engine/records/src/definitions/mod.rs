//! Fields: what items have values of.

pub mod change;
mod choices;
mod create;
mod define;
mod dependents;
mod events;
mod model;
pub mod remove;
mod resolve;
pub mod rewrite;
mod survey;
pub mod users;

pub(crate) use choices::add_choices;
pub use create::create;
pub(crate) use define::can_be_primary;
pub use define::{Definition, define, first_primary, insert};
pub use events::FieldEvent;
pub use model::{CollectionField, FieldPatch, NewField, read_field};
pub use resolve::{has_key, mirror, refuse_many, resolve};
pub use survey::ConversionReport;

use crate::shape::Shape;
use ::model::{Error, FieldId, Result};

/// The field with this key, which must be able to be the title of items.
///
/// # Errors
/// `validation_error` at `primary_field`.
pub fn expect_primary(shape: &Shape, key: &str) -> Result<FieldId> {
    match shape.field(key) {
        None => Err(Error::invalid("primary_field", "is not a field of this collection")),
        Some(field) if !can_be_primary(field.kind) => {
            let rule = format!("has the type `{}`, which cannot be the primary field", field.kind.as_str());
            Err(Error::invalid("primary_field", rule))
        }
        Some(field) => Ok(field.id),
    }
}
