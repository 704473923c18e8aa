//! Imports of items: operations and events. The engine runs the imports.

mod events;
mod model;
mod operations;

pub(crate) use events::ImportEvent;
pub use events::ItemImports;
pub use model::Import;

use ::operation::Operations;

/// Returns the operations for the area Collections.
pub(crate) fn of_collections() -> Operations {
    vec![Box::new(operations::ListImports), Box::new(operations::GetImport)]
}

/// Returns the operations for the area Items.
pub(crate) fn of_items() -> Operations {
    vec![Box::new(operations::ImportItems)]
}
