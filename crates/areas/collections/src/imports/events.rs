//! The events of imports.

use super::model::Import;
use crate::items::ITEMS;
use model::Result;
use operation::Event;
use records::Author;
use records::shape::Kind;
use serde::Serialize;
use store::Tx;
use transfer::imports::{ImportRow, ImportStatus, Target};
use utoipa::ToSchema;

/// Items as a target of imports.
pub struct ItemImports;

impl Target for ItemImports {
    fn kind(&self) -> &'static Kind {
        &ITEMS
    }

    fn publish_end(&self, tx: &mut Tx, author: &Author, import: ImportRow) -> Result<()> {
        let status = import.status;
        let data = ImportEnded { import: Import::of(import, None, None)? };
        let event = match status {
            ImportStatus::Completed | ImportStatus::CompletedWithErrors => ImportEvent::Completed(data),
            _ => ImportEvent::Failed(data),
        };
        tx.emit(author.workspace, &author.cause, author.livemode, &event)?;
        Ok(())
    }
}

/// An event of an import.
#[derive(Event)]
#[event(scope = "items:read", subject = "collection", id = "import.collection_id")]
pub(crate) enum ImportEvent {
    /// An import processed all rows. Some of them may have failed.
    #[event(name = "import.completed")]
    Completed(ImportEnded),
    /// An import ended before all rows were processed.
    #[event(name = "import.failed")]
    Failed(ImportEnded),
}

/// An import ended.
#[derive(Serialize, ToSchema)]
pub(crate) struct ImportEnded {
    /// The import at its end.
    import: Import,
}
