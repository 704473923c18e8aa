//! Imports of items: their operations and events over the engine's imports.

mod events;
mod model;
mod operations;

pub(crate) use events::ImportEvent;
pub use events::ItemImports;
pub use model::Import;

use ::operation::Operations;

/// Operations of the area Collections.
pub(crate) fn of_collections() -> Operations {
    vec![Box::new(operations::ListImports), Box::new(operations::GetImport)]
}

/// Operations of the area Items.
pub(crate) fn of_items() -> Operations {
    vec![Box::new(operations::ImportItems)]
}
