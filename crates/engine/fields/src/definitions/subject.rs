//! What filters, sorts and indexes go by: fields, and the columns that every record has.

use crate::definitions::column::SystemColumn;
use crate::definitions::field::Field;
use crate::definitions::set::FieldSet;
use crate::values::kind::Family;
use model::{FieldId, Result};
use serde::{Deserialize, Serialize};

/// One thing that an index or a sort goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Part {
    /// What is compared.
    pub subject: Subject,
    /// Whether greater values come first. Items without a value come last in both directions.
    pub desc: bool,
}

/// What can be compared: a field, or something that every record has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A field of the collection.
    Field(FieldId),
    /// A column that all records have.
    System(SystemColumn),
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
        enum StoredSubject {
            Field(FieldId),
            System(String),
        }
        match StoredSubject::deserialize(deserializer)? {
            StoredSubject::Field(id) => Ok(Self::Field(id)),
            StoredSubject::System(name) => SystemColumn::parse(&name)
                .map(Self::System)
                .ok_or_else(|| serde::de::Error::custom("no such system column")),
        }
    }
}

impl Subject {
    /// What `name` means in queries over these fields: a field or a system column, by any name that records show.
    pub fn named(fields: &FieldSet, name: &str) -> Option<Self> {
        let field = fields.named(name).map(|field| Self::Field(field.id));
        field.or_else(|| fields.column(name).map(Self::System))
    }

    /// What queries call it; `None` for a field that is gone.
    pub fn name(self, fields: &FieldSet) -> Option<&str> {
        match self {
            Self::Field(id) => fields.field_by_id(id).map(|field| field.key.as_str()),
            Self::System(system) => Some(fields.name_of_column(system)),
        }
    }

    /// How values compare; `None` for a field that is gone.
    pub fn family(self, fields: &FieldSet) -> Option<Family> {
        match self {
            Self::Field(id) => fields.field_by_id(id).map(Field::family),
            Self::System(system) => Some(system.family()),
        }
    }
}
