//! The events of imports.

use super::model::Import;
use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// How an import ended.
#[derive(Event)]
#[event(scope = "items:read", subject = "collection", id = "import.collection_id")]
pub(crate) enum ImportEvent {
    /// An import has read all its rows, some of which may have failed.
    #[event(name = "import.completed")]
    Completed(ImportEnded),
    /// An import ended before it had read all its rows.
    #[event(name = "import.failed")]
    Failed(ImportEnded),
}

/// An import ended.
#[derive(Serialize, ToSchema)]
pub(crate) struct ImportEnded {
    /// The import, as it ended.
    pub(super) import: Import,
}
