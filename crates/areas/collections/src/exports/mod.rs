//! Exports of items: the operation that creates a link.

mod operations;

use ::operation::Operations;

/// Returns the operations for the area Items.
pub(crate) fn of_items() -> Operations {
    vec![Box::new(operations::ExportItems)]
}
