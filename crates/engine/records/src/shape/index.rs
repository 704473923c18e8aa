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
    pub columns_revision: i64,
    pub key_format: KeyFormat,
}

impl IndexRow {
    /// Whether it is to take the place of another, because it knows items of the same values by the form of key that
    /// indexes now have.
    pub(crate) fn takes_place_of(&self, other: &Self) -> bool {
        let is_unique = self.kind == IndexKind::Unique && other.kind == IndexKind::Unique;
        let (new, old) = (KeyFormat::Prefixed, KeyFormat::Hashed);
        is_unique && self.key_format == new && other.key_format == old && self.parts == other.parts
    }
}

/// An index, as reads and writes of items need it.
#[derive(Debug, Clone)]
pub struct Index {
    /// The id of the index.
    pub id: IndexId,
    /// The type of index.
    pub kind: IndexKind,
    /// What it orders by.
    pub parts: Vec<Part>,
    /// How far it is. One that is being built is written to, and not read.
    pub status: IndexStatus,
    /// What a unique index knows items by.
    pub key_format: KeyFormat,
}

text_enum! {
    /// The type of an index.
    pub enum IndexKind {
        /// The values of one field.
        Single = "single",
        /// The combined values of several fields, each in its direction.
        Composite = "composite",
        /// Each element of values with several elements.
        Set = "set",
        /// The values of one or more fields, which must be unique among live items.
        Unique = "unique",
        /// The values of all fields by column, except long text and JSON. The service creates it for large collections, so that
        /// conditions without an index of their own can be tested quickly.
        Columnar = "columnar",
    }
}

text_enum! {
    /// What created an index.
    pub enum IndexOrigin {
        /// A request. The index stays until it is deleted.
        User = "user",
        /// The service, because queries were slow without it. It is deleted when it has not been used for 60 days.
        Auto = "auto",
        /// A unique field or a unique key of the collection.
        Unique = "unique",
        /// A view with `materialized_sort`.
        View = "view",
    }
}

text_enum! {
    /// The status of an index.
    pub enum IndexStatus {
        /// Existing items are being indexed.
        Building = "building",
        /// Queries use it.
        Ready = "ready",
        /// It could not be built, because values are not unique.
        Failed = "failed",
        /// It was deleted, and its entries are being removed.
        Dropping = "dropping",
    }
}

text_enum! {
    /// What a unique index knows items by.
    pub enum KeyFormat {
        /// A hash of their values, as all indexes did before v0.19.0: whatever is stored next changes another page.
        Hashed = "hashed",
        /// What their values begin with, and a hash. Values that are alike, such as those of an import or numbers that follow
        /// each other, are on few pages.
        Prefixed = "prefixed",
    }
}

impl Index {
    /// Reads a stored index.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn of(row: &IndexRow) -> Result<Self> {
        Ok(Self {
            id: row.id,
            kind: row.kind,
            parts: row.parts.parse()?,
            status: row.status,
            key_format: row.key_format,
        })
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
