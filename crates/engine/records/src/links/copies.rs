//! The copy of relation fields in an item's own values: the first 25 ids of each, in the order of links.

use super::table;
use crate::rows::ItemRow;
use crate::schema::item_links;
use crate::shape::Shape;
use diesel::prelude::*;
use fields::Data;
use fields::{Field, FieldType};
use model::{ItemId, JsonText, Result};
use serde_json::{Map, Value, json};
use store::{Read, Tx};

/// How many ids of a relation field an item's own values hold.
pub(crate) const INLINE: usize = 25;

/// Links of a field are counted up to here. Beyond, the number would be another with every write of somebody else, and
/// so would the item.
const COUNTED: usize = 1_000;

/// All that a relation field of an item points to, in order.
///
/// # Errors
/// When the database fails.
pub fn targets_of(read: &mut Read, row: &ItemRow, field: &Field) -> Result<Vec<i64>> {
    let ids: Vec<String> = item_links::table
        .filter(item_links::item_id.eq(row.id))
        .filter(item_links::field_id.eq(field.id))
        .filter(item_links::to_kind.eq(table::ITEM))
        .order((item_links::position, item_links::id))
        .select(item_links::to_id)
        .load(read.connection())?;
    Ok(ids.iter().filter_map(|id| id.parse().ok()).collect())
}

/// Puts the copy of relation fields into an item's values; gives what was cut.
pub fn inline(tx: &mut Tx, shape: &Shape, row: &ItemRow, data: &mut Data) -> Result<Option<JsonText>> {
    let mut more = Map::new();
    for field in shape.fields.iter().filter(|field| field.kind == FieldType::Relation) {
        let mut ids = table::pointed_to(tx, row.id, field.id, INLINE + 1)?;
        if ids.is_empty() {
            data.shift_remove(&field.key);
            continue;
        }
        if ids.len() > INLINE {
            ids.truncate(INLINE);
            more.insert(field.key.clone(), rest(tx, row, field)?);
        }
        let ids: Vec<i64> = ids.into_iter().map(|ItemId(id)| id).collect();
        data.insert(field.key.clone(), ids.into());
    }
    Ok((!more.is_empty()).then(|| JsonText::of(&more)))
}

/// How many links a field has in all, and where they can be read.
fn rest(tx: &mut Tx, row: &ItemRow, field: &fields::Field) -> Result<Value> {
    let total = table::pointed_to(tx, row.id, field.id, COUNTED + 1)?.len();
    let url = format!("/collections/{}/items/{}/links?field_key={}", row.collection_id, row.id, field.key);
    Ok(json!({ "total": total.min(COUNTED), "total_is_exact": total <= COUNTED, "url": url }))
}
