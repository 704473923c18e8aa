//! Rows of records: what is stored of each.

use crate::schema::items;
use diesel::prelude::*;
use fields::ComputedErrors;
use fields::{ColumnValue, Columns, Data, Record, SystemColumn};
use model::{CollectionId, ItemId, JsonText, Timestamp, WorkspaceId};
use std::borrow::Cow;

/// An item as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = items)]
#[expect(missing_docs, reason = "the columns are those that callers see of items")]
pub struct ItemRow {
    pub id: ItemId,
    pub workspace_id: WorkspaceId,
    pub collection_id: CollectionId,
    pub data: JsonText,
    pub title: String,
    pub more: Option<JsonText>,
    pub position: Option<String>,
    pub external_key: Option<String>,
    pub comment_count: i64,
    pub locked_by: Option<JsonText>,
    pub locked_at: Option<Timestamp>,
    pub version: i64,
    pub created_by: JsonText,
    pub updated_by: JsonText,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub trashed_at: Option<Timestamp>,
    pub computed_errors: Option<JsonText>,
}

impl ItemRow {
    /// Its values, parsed.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn values(&self) -> model::Result<Data> {
        self.data.parse()
    }

    /// The item as filters, sorts and keys see it; `data` are its values, parsed.
    pub fn record<'a>(&'a self, data: &'a Data) -> Record<'a> {
        Record { columns: self, data }
    }

    /// Why computed fields of it have no value.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn errors(&self) -> model::Result<ComputedErrors> {
        Ok(self.computed_errors.as_ref().map(JsonText::parse).transpose()?.unwrap_or_default())
    }

    /// Its place in the manual order: the one it was given, or the one of its birth.
    pub fn place(&self) -> String {
        self.position.clone().unwrap_or_else(|| natural_place(self.id))
    }
}

impl Columns for ItemRow {
    fn id(&self) -> i64 {
        self.id.0
    }

    fn column(&self, column: SystemColumn) -> ColumnValue<'_> {
        let values = SystemValues {
            id: self.id,
            position: self.position.as_deref(),
            external_key: self.external_key.as_deref(),
            version: self.version,
            created_by: &self.created_by,
            created_at: self.created_at,
            updated_at: self.updated_at,
        };
        values.of(column)
    }

    fn has_cut_relations(&self) -> bool {
        self.more.is_some()
    }
}

/// The columns that every item has, as its row says them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SystemValues<'a> {
    pub id: ItemId,
    pub position: Option<&'a str>,
    pub external_key: Option<&'a str>,
    pub version: i64,
    pub created_by: &'a JsonText,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl<'a> SystemValues<'a> {
    /// What stands in a column.
    pub fn of(self, column: SystemColumn) -> ColumnValue<'a> {
        let text = |text: Option<Cow<'a, str>>| text.map_or(ColumnValue::Empty, ColumnValue::Text);
        match column {
            SystemColumn::Id => ColumnValue::Integer(self.id.0),
            SystemColumn::Version => ColumnValue::Integer(self.version),
            SystemColumn::CreatedAt => ColumnValue::Integer(self.created_at.millis()),
            SystemColumn::UpdatedAt => ColumnValue::Integer(self.updated_at.millis()),
            SystemColumn::Position => {
                text(Some(self.position.map_or_else(|| natural_place(self.id).into(), Cow::Borrowed)))
            }
            SystemColumn::CreatedBy => text(creator(self.created_by).map(Cow::from)),
            SystemColumn::ExternalKey => text(self.external_key.map(Cow::Borrowed)),
        }
    }
}

/// Who created an item, as `type:id`; `created_by` is what its row says.
pub(crate) fn creator(created_by: &JsonText) -> Option<String> {
    let actor: model::Actor = created_by.parse().ok()?;
    Some(format!("{}:{}", actor.kind.as_str(), actor.id))
}

/// Where an item stands that was never given a place: items stand in the order of their birth.
pub(crate) fn natural_place(id: ItemId) -> String {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let bits = id.0.unsigned_abs();
    let digit = |place: u32| {
        let digit = usize::try_from(bits >> (place * 5) & 31).unwrap_or_default();
        char::from(DIGITS.get(digit).copied().unwrap_or(b'0'))
    };
    std::iter::once('i').chain((0..13).rev().map(digit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn natural_places_are_in_the_order_of_ids() {
        let places: Vec<_> =
            [1, 9, 31, 32, 33, 1_000_000, i64::MAX].map(|id| natural_place(ItemId(id))).into();
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(places[0], "i0000000000001");
    }
}
