//! The columns that every record has beside its fields.

use crate::values::kind::Family;

/// The columns that all records have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SystemColumn {
    /// The record's id.
    Id,
    /// When the object was created.
    CreatedAt,
    /// When the object was last changed.
    UpdatedAt,
    /// Who created it, as `type:id`.
    CreatedBy,
    /// Its place in the manual order.
    Position,
    /// The version, incremented with every change.
    Version,
    /// The caller's own key.
    ExternalKey,
}

impl SystemColumn {
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
