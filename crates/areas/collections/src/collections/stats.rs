//! Statistics of a collection.

use diesel::prelude::*;
use fields::Field;
use model::{CollectionId, Error, FieldId, ItemId, JsonText, Result, Timestamp};
use operation::{Cx, Json, Path, State, operation};
use records::count;
use records::schema::items;
use records::shape::{self, Shape, Shapes};
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Arc;
use store::Db;
use utoipa::ToSchema;

/// The most items to read for sizes and fill rates, the newest first.
const MOST_SEEN: usize = 100_000;

/// The number of items per read.
const BATCH: i64 = 2_000;

/// The number up to which items are counted exactly.
const MOST_COUNTED: i64 = 1_000_000;

/// Statistics of a collection.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "items_live": 200, "items_trashed": 3, "items_exact": true, "bytes": 28679, "items_seen": 200 }))]
pub struct CollectionStats {
    /// Always `collection_stats`.
    pub object: &'static str,
    /// The id of the collection.
    pub collection_id: CollectionId,
    /// The number of live items.
    pub items_live: i64,
    /// The number of items in the trash.
    pub items_trashed: i64,
    /// Whether the numbers of items are exact. Otherwise there are more items.
    pub items_exact: bool,
    /// The size of the values of live items, as bytes of JSON.
    pub bytes: i64,
    /// The statistics of each field, in order.
    pub fields: Vec<FieldStats>,
    /// The number of live items from which sizes and fill rates were computed.
    pub items_seen: i64,
    /// Whether only a part of the items was read. `bytes` is then an estimate.
    pub sampled: bool,
    /// When the statistics were computed.
    pub counted_at: Timestamp,
}

/// How many items have a value in a field.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "field_key": "price", "filled": 198, "fill_rate": 0.99 }))]
pub struct FieldStats {
    /// The id of the field.
    pub field_id: FieldId,
    /// The key of the field.
    pub field_key: String,
    /// How many of the items that were read have a value.
    pub filled: i64,
    /// The share of the items that were read with a value, from 0 to 1. 0 without items.
    pub fill_rate: f64,
}

/// The sums over the items that were read.
#[derive(Default)]
struct Seen {
    items: usize,
    bytes: usize,
    filled: HashMap<String, i64>,
}

/// Item counts, size and fill rate of each field
///
/// Returns the number of items, their size, and how many of them have a value in each field. With more than 100,000
/// items, sizes and fill rates are estimated from the newest 100,000, and `sampled` is `true`.
#[operation(get "/collections/{collectionId}/stats", scope = "collections:read")]
pub async fn get_collection_stats(
    cx: &Cx,
    Path(collection_id): Path<CollectionId>,
    State(shapes): State<Shapes>,
) -> Result<Json<CollectionStats>> {
    let workspace = cx.caller.workspace_id();
    let (shape, live, all) = cx
        .db
        .read(move |read| {
            let shape = shape::for_read(read, &shapes, workspace, collection_id)?;
            let live = count::live_up_to(read, collection_id, MOST_COUNTED)?;
            Ok((shape, live, count::all_up_to(read, collection_id, MOST_COUNTED)?))
        })
        .await?;
    let seen = look(&cx.db, &shape).await?;
    Ok(Json(stats(&shape, &seen, live, all, cx.db.now())))
}

async fn look(db: &Db, shape: &Arc<Shape>) -> Result<Seen> {
    let mut seen = Seen::default();
    let mut before = ItemId(i64::MAX);
    let collection = shape.collection;
    while seen.items < MOST_SEEN {
        let rows: Vec<(ItemId, JsonText)> = db
            .read(move |read| {
                Ok(items::table
                    .filter(items::collection_id.eq(collection))
                    .filter(items::trashed_at.is_null())
                    .filter(items::id.lt(before))
                    .order(items::id.desc())
                    .limit(BATCH)
                    .select((items::id, items::data))
                    .load(read.connection())?)
            })
            .await?;
        let Some((last, _)) = rows.last() else { break };
        before = *last;
        for (_, data) in &rows {
            seen.items += 1;
            seen.bytes += data.as_str().len();
            let values: HashMap<&str, &RawValue> =
                serde_json::from_str(data.as_str()).map_err(Error::internal)?;
            for key in values.into_keys() {
                match seen.filled.get_mut(key) {
                    Some(count) => *count += 1,
                    None => {
                        seen.filled.insert(key.to_owned(), 1);
                    }
                }
            }
        }
    }
    Ok(seen)
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "counts of items are small")]
fn stats(shape: &Shape, seen: &Seen, live: i64, all: i64, now: Timestamp) -> CollectionStats {
    let examined = i64::try_from(seen.items).unwrap_or(i64::MAX);
    let bytes = i64::try_from(seen.bytes).unwrap_or(i64::MAX);
    let sampled = examined < live;
    let estimate = if sampled { (bytes as f64 * live as f64 / examined.max(1) as f64) as i64 } else { bytes };
    let of = |field: &Field| {
        let filled = seen.filled.get(&field.key).copied().unwrap_or(0);
        FieldStats {
            field_id: field.id,
            field_key: field.key.clone(),
            filled,
            fill_rate: filled as f64 / examined.max(1) as f64,
        }
    };
    CollectionStats {
        object: "collection_stats",
        collection_id: shape.collection,
        items_live: live.min(MOST_COUNTED),
        items_trashed: (all - live).min(MOST_COUNTED),
        items_exact: live <= MOST_COUNTED && all - live <= MOST_COUNTED,
        bytes: estimate,
        fields: shape.fields.iter().map(of).collect(),
        items_seen: examined,
        sampled,
        counted_at: now,
    }
}
