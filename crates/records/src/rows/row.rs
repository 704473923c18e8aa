//! An item as it is stored, and as it goes out.

use crate::schema::items;
use diesel::prelude::*;
use fields::ComputedError;
use fields::ComputedErrors;
use fields::{ColumnValue, Columns, Data, Record, SystemColumn};
use model::{Actor, CollectionId, ItemId, JsonText, Timestamp, WorkspaceId};
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;
use utoipa::ToSchema;

/// An item as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = items)]
#[expect(missing_docs, reason = "the columns are those of `Item`")]
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

/// An item of a collection.
///
/// This type is the contract's; items are printed by [`ItemRow::print`], which sends stored JSON out as it is.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Item {
    /// The item.
    pub id: ItemId,
    /// Always `item`.
    pub object: &'static str,
    /// The collection it belongs to.
    pub collection_id: CollectionId,
    /// Its values, by the key of their field. Fields without a value are absent.
    #[schema(value_type = Object)]
    pub data: Data,
    /// The value of the collection's primary field, as text.
    pub title: String,
    /// For relation fields that point to more than 25 items, which are cut to 25 in `data`: how many there are, and
    /// where all of them can be read.
    #[schema(value_type = Option<Object>)]
    pub has_more: Option<Value>,
    /// Why formulas and rollups have no value although they have something to compute it from, by the key of their field.
    #[schema(value_type = Option<BTreeMap<String, ComputedError>>)]
    pub computed_errors: Option<ComputedErrors>,
    /// Its place in the manual order: items sort by it as text.
    pub position: String,
    /// The caller's own key, unique in the collection.
    pub external_key: Option<String>,
    /// How many comments it has.
    pub comment_count: i64,
    /// Who locked it; `null` when it is not locked.
    pub locked_by: Option<Actor>,
    /// When it was locked.
    pub locked_at: Option<Timestamp>,
    /// Raised with every change.
    pub version: i64,
    /// Who created it.
    pub created_by: Actor,
    /// Who changed it last.
    pub updated_by: Actor,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was moved to the trash; `null` for a live item.
    pub trashed_at: Option<Timestamp>,
    /// With `expand` only: the items that relation fields point to, by field key, at most 25 each.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub expanded: Option<Value>,
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

    /// Prints it as JSON, with its values as they are stored.
    pub fn print(&self, out: &mut String) {
        self.print_with(out, self.data.as_str());
    }

    /// Prints it as JSON, with `data` for its values.
    pub fn print_with(&self, out: &mut String, data: &str) {
        let null = |text: Option<&JsonText>| text.map_or("null", JsonText::as_str).to_owned();
        let moment = |moment: Option<Timestamp>| {
            moment.map_or_else(|| "null".to_owned(), |moment| format!("\"{}\"", moment.rfc3339()))
        };
        let _ = write!(
            out,
            concat!(
                r#"{{"id":{},"object":"item","collection_id":{},"data":{},"title":{},"has_more":{},"computed_errors":{},"position":{},"#,
                r#""external_key":{},"comment_count":{},"locked_by":{},"locked_at":{},"version":{},"created_by":{},"#,
                r#""updated_by":{},"created_at":{},"updated_at":{},"trashed_at":{}}}"#
            ),
            self.id,
            self.collection_id,
            data,
            quoted(&self.title),
            null(self.more.as_ref()),
            null(self.computed_errors.as_ref()),
            quoted(&self.place()),
            self.external_key.as_deref().map_or_else(|| "null".to_owned(), quoted),
            self.comment_count,
            null(self.locked_by.as_ref()),
            moment(self.locked_at),
            self.version,
            self.created_by.as_str(),
            self.updated_by.as_str(),
            moment(Some(self.created_at)),
            moment(Some(self.updated_at)),
            moment(self.trashed_at),
        );
    }
}

impl Columns for ItemRow {
    fn id(&self) -> i64 {
        self.id.0
    }

    fn column(&self, column: SystemColumn) -> ColumnValue<'_> {
        let text = |text: Option<Cow<'static, str>>| text.map_or(ColumnValue::Empty, ColumnValue::Text);
        match column {
            SystemColumn::Id => ColumnValue::Integer(self.id.0),
            SystemColumn::Version => ColumnValue::Integer(self.version),
            SystemColumn::CreatedAt => ColumnValue::Integer(self.created_at.millis()),
            SystemColumn::UpdatedAt => ColumnValue::Integer(self.updated_at.millis()),
            SystemColumn::Position => text(Some(self.place().into())),
            SystemColumn::CreatedBy => text(creator(&self.created_by).map(Cow::from)),
            SystemColumn::ExternalKey => {
                let key = self.external_key.as_deref();
                key.map_or(ColumnValue::Empty, |key| ColumnValue::Text(key.into()))
            }
        }
    }

    fn has_cut_relations(&self) -> bool {
        self.more.is_some()
    }
}

/// Who created an item, as `type:id`; `created_by` is what its row says.
pub fn creator(created_by: &JsonText) -> Option<String> {
    let actor: model::Actor = created_by.parse().ok()?;
    Some(format!("{}:{}", actor.kind.as_str(), actor.id))
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

/// Where an item stands that was never given a place: items stand in the order of their birth.
pub fn natural_place(id: ItemId) -> String {
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
