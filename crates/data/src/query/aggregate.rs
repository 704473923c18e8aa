//! Counting and summing items, in groups.

use super::tree::name_of;
use crate::shape::{Family, Shape, Subject};
use model::{Error, Result};

/// Refuses to group by something whose values are not one each.
///
/// # Errors
/// 400 `validation_error` about `param`.
pub fn refuse_ungroupable(shape: &Shape, subject: Subject, param: &str) -> Result<()> {
    match subject.family(shape) {
        Some(Family::Json | Family::Ids | Family::Choices) => Err(Error::invalid(
            param,
            format_args!("cannot be grouped by: `{}` has no single value", name_of(subject, shape)),
        )),
        Some(_) => Ok(()),
        None => Err(Error::invalid(param, "is about a field that is gone")),
    }
}
