//! Indexes of a collection's items.

use crate::schema::collection_indexes;
use diesel::prelude::*;
use fields::{Part, Subject};
use model::{CollectionId, FieldId, IndexId, JsonText, Result, Timestamp, WorkspaceId, text_enum};

/// An index as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = collection_indexes)]
#[expect(missing_docs, reason = "the columns are those of `Index`")]
pub struct IndexRow {
    pub id: IndexId,
    pub workspace_id: WorkspaceId,
    pub collection_id: CollectionId,
    pub kind: IndexKind,
    pub parts: JsonText,
    pub origin: IndexOrigin,
    pub status: IndexStatus,
    pub built_to: i64,
    pub rows_done: i64,
    pub rows_total: i64,
    pub error: Option<String>,
    pub last_used_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// An index, as reads and writes of items need it.
#[derive(Debug, Clone)]
pub struct Index {
    /// The index.
    pub id: IndexId,
    /// What it holds.
    pub kind: IndexKind,
    /// What it orders by.
    pub parts: Vec<Part>,
    /// How far it is. One that is being built is written to, and not read.
    pub status: IndexStatus,
}

text_enum! {
    /// What an index holds of an item.
    pub enum IndexKind {
        /// The value of one field.
        Single = "single",
        /// The values of several fields, one after the other, each in its direction; equal ones by id in the direction of
        /// the last.
        Composite = "composite",
        /// Each element of a value that is a set.
        Set = "set",
        /// The digest of the values of one or more fields, which no two live items share.
        Unique = "unique",
    }
}

text_enum! {
    /// Who asked for an index.
    pub enum IndexOrigin {
        /// Somebody, by `createIndex`: it stays until they delete it.
        User = "user",
        /// The service, because queries were slow without: it goes when nobody needs it for 60 days.
        Auto = "auto",
        /// A unique field or a unique key of the collection.
        Unique = "unique",
        /// A view with `materialized_sort`.
        View = "view",
    }
}

text_enum! {
    /// How far an index is.
    pub enum IndexStatus {
        /// Writes keep it up, and a job fills in what was there before.
        Building = "building",
        /// Queries use it.
        Ready = "ready",
        /// It could not be built: values that should be unique are not.
        Failed = "failed",
        /// It was deleted, and a job takes its rows away.
        Dropping = "dropping",
    }
}

impl Index {
    /// Reads a stored index.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn of(row: &IndexRow) -> Result<Self> {
        Ok(Self { id: row.id, kind: row.kind, parts: row.parts.parse()?, status: row.status })
    }

    /// Whether writes keep it up.
    pub(crate) fn is_maintained(&self) -> bool {
        matches!(self.status, IndexStatus::Building | IndexStatus::Ready)
    }

    /// Whether it holds values of this field.
    pub(crate) fn has_field(&self, id: FieldId) -> bool {
        self.parts.iter().any(|part| part.subject == Subject::Field(id))
    }
}
