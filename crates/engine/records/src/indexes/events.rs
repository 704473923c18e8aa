//! The events of indexes.

use crate::shape::{IndexKind, IndexOrigin, IndexRow, IndexStatus};
use model::{CollectionId, IndexId};
use operation::Event;
use serde::Serialize;
use utoipa::ToSchema;

/// An event of an index.
#[derive(Event)]
#[event(scope = "collections:read", subject = "collection", id = "index.collection_id")]
pub enum IndexEvent {
    /// An index is ready. Queries use it.
    #[event(name = "index.ready")]
    Ready(IndexReady),
}

impl IndexEvent {
    /// The end of the building of an index.
    pub(super) fn ready(row: &IndexRow) -> Self {
        Self::Ready(IndexReady {
            index: BuiltIndex {
                id: row.id,
                object: "index",
                collection_id: row.collection_id,
                kind: row.kind,
                origin: row.origin,
                status: IndexStatus::Ready,
            },
        })
    }
}

// A doc comment here would be published as the schema's description; the variant has the text that callers read.
#[derive(Serialize, ToSchema)]
pub struct IndexReady {
    #[schema(value_type = Object)]
    index: BuiltIndex,
}

#[derive(Serialize)]
struct BuiltIndex {
    id: IndexId,
    object: &'static str,
    collection_id: CollectionId,
    kind: IndexKind,
    origin: IndexOrigin,
    status: IndexStatus,
}
