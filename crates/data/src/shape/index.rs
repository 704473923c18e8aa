//! Indexes of a collection's items.

use super::{Family, Field, Shape};
use diesel::prelude::*;
use model::{CollectionId, FieldId, IndexId, JsonText, Result, Timestamp, WorkspaceId};
use serde::{Deserialize, Serialize};
use store::schema::collection_indexes;
use utoipa::ToSchema;

/// An index as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = collection_indexes)]
#[expect(missing_docs, reason = "the columns are those of `Index`")]
pub struct IndexRow {
    pub id: IndexId,
    pub workspace_id: WorkspaceId,
    pub collection_id: CollectionId,
    pub kind: String,
    pub parts: JsonText,
    pub origin: String,
    pub status: String,
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

/// What an index holds of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexKind {
    /// The value of one field.
    Single,
    /// The values of several fields, one after the other, each in its direction; equal ones by id in the direction of
    /// the last.
    Composite,
    /// Each element of a value that is a set.
    Set,
    /// The digest of the values of one or more fields, which no two live items share.
    Unique,
}

/// Who asked for an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexOrigin {
    /// Somebody, by `createIndex`: it stays until they delete it.
    User,
    /// The service, because queries were slow without: it goes when nobody needs it for 60 days.
    Auto,
    /// A unique field or a unique key of the collection.
    Unique,
    /// A view with `materialized_sort`.
    View,
}

/// How far an index is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexStatus {
    /// Writes keep it up, and a job fills in what was there before.
    Building,
    /// Queries use it.
    Ready,
    /// It could not be built: values that should be unique are not.
    Failed,
    /// It was deleted, and a job takes its rows away.
    Dropping,
}

macro_rules! words {
    ($name:ident { $($variant:ident = $text:literal),+ $(,)? }) => {
        impl $name {
            /// The word of the wire format and the database.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// Reads the word.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

words!(IndexKind { Single = "single", Composite = "composite", Set = "set", Unique = "unique" });
words!(IndexOrigin { User = "user", Auto = "auto", Unique = "unique", View = "view" });
words!(IndexStatus { Building = "building", Ready = "ready", Failed = "failed", Dropping = "dropping" });

/// One thing that an index or a sort goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// What is compared.
    pub subject: Subject,
    /// Whether greater values come first. Items without a value come last in both directions.
    pub desc: bool,
}

/// What can be compared: a field, or something that every item has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A field of the collection.
    Field(FieldId),
    /// A column that all items have.
    System(System),
}

/// The columns that all items have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum System {
    /// The item's id.
    Id,
    /// When it was created.
    CreatedAt,
    /// When it was last changed.
    UpdatedAt,
    /// Who created it, as `type:id`.
    CreatedBy,
    /// Its place in the manual order.
    Position,
    /// Raised with every change.
    Version,
    /// The caller's own key.
    ExternalKey,
}

impl System {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Id,
        Self::CreatedAt,
        Self::UpdatedAt,
        Self::CreatedBy,
        Self::Position,
        Self::Version,
        Self::ExternalKey,
    ];

    /// What queries call it. No field may have this key.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Id => "id",
            Self::CreatedAt => "created_at",
            Self::UpdatedAt => "updated_at",
            Self::CreatedBy => "created_by",
            Self::Position => "position",
            Self::Version => "version",
            Self::ExternalKey => "external_key",
        }
    }

    /// Reads the name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|system| system.as_str() == text)
    }

    /// How values compare.
    pub const fn family(self) -> Family {
        match self {
            Self::Id | Self::Version => Family::Number,
            Self::CreatedAt | Self::UpdatedAt => Family::Datetime,
            Self::CreatedBy | Self::Position | Self::ExternalKey => Family::Text,
        }
    }
}

/// `12` for a field, its name for a system column: ids, because labels and keys may be given anew.
impl Serialize for Subject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Field(id) => id.serialize(serializer),
            Self::System(system) => serializer.serialize_str(system.as_str()),
        }
    }
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Stored {
            Field(FieldId),
            System(String),
        }
        match Stored::deserialize(deserializer)? {
            Stored::Field(id) => Ok(Self::Field(id)),
            Stored::System(name) => System::parse(&name)
                .map(Self::System)
                .ok_or_else(|| serde::de::Error::custom("no such system column")),
        }
    }
}

impl Subject {
    /// What `name` means in queries of this shape: a field's key or a system column.
    pub fn named(shape: &Shape, name: &str) -> Option<Self> {
        shape.field(name).map(|field| Self::Field(field.id)).or_else(|| System::parse(name).map(Self::System))
    }

    /// What queries call it; `None` for a field that is gone.
    pub fn name(self, shape: &Shape) -> Option<&str> {
        match self {
            Self::Field(id) => shape.field_by_id(id).map(|field| field.key.as_str()),
            Self::System(system) => Some(system.as_str()),
        }
    }

    /// How values compare; `None` for a field that is gone.
    pub fn family(self, shape: &Shape) -> Option<Family> {
        match self {
            Self::Field(id) => shape.field_by_id(id).map(Field::family),
            Self::System(system) => Some(system.family()),
        }
    }
}

impl Index {
    /// Reads a stored index.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn of(row: &IndexRow) -> Result<Self> {
        let damaged = || model::Error::internal(format!("index {} is damaged", row.id));
        Ok(Self {
            id: row.id,
            kind: IndexKind::parse(&row.kind).ok_or_else(damaged)?,
            parts: row.parts.parse()?,
            status: IndexStatus::parse(&row.status).ok_or_else(damaged)?,
        })
    }

    /// Whether writes keep it up.
    pub fn is_maintained(&self) -> bool {
        matches!(self.status, IndexStatus::Building | IndexStatus::Ready)
    }

    /// Whether it holds values of this field.
    pub fn has_field(&self, id: FieldId) -> bool {
        self.parts.iter().any(|part| part.subject == Subject::Field(id))
    }
}
