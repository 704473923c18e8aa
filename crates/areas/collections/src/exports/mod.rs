//! Exports of items: the operation that makes a link.

mod operations;

use ::operation::Operations;

/// Operations of the area Items.
pub(crate) fn of_items() -> Operations {
    vec![Box::new(operations::ExportItems)]
}
