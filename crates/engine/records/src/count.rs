//! How many items there are, without reading all of them.

use crate::schema::collections;
use crate::shape::CollectionRow;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use model::{CollectionId, Result, Timestamp};
use store::{Db, Read};

/// Up to so many items are counted whenever somebody asks for a collection.
pub const EXACT: i64 = 100_000;

/// Up to so many in lists of collections.
pub const EXACT_IN_LISTS: i64 = 10_000;

/// How many items a collection has, and when that was so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemCount {
    /// The number of live items.
    pub items: i64,
    /// When there were exactly so many.
    pub exact_at: Option<Timestamp>,
}

#[derive(QueryableByName)]
struct Number {
    #[diesel(sql_type = BigInt)]
    n: i64,
}

/// How many live items a collection has, however long it takes to count them.
pub fn live(read: &mut Read, collection: CollectionId) -> Result<i64> {
    live_up_to(read, collection, i64::MAX - 1)
}

/// How many live items a collection has, counted up to `most` and one more.
pub fn live_up_to(read: &mut Read, collection: CollectionId, most: i64) -> Result<i64> {
    bounded(read, "trashed_at IS NULL", collection, most)
}

/// How many items a collection has, in use and in the trash, each counted up to `most` and one more.
pub fn all_up_to(read: &mut Read, collection: CollectionId, most: i64) -> Result<i64> {
    let live = live_up_to(read, collection, most)?;
    Ok(live + bounded(read, "trashed_at IS NOT NULL", collection, most)?)
}

/// Ids are given to both databases as literals of digits, which each of them takes.
fn bounded(read: &mut Read, condition: &str, collection: CollectionId, most: i64) -> Result<i64> {
    let sql = format!(
        "SELECT COUNT(*) AS n FROM (SELECT id FROM items WHERE collection_id = {collection} AND {condition} LIMIT {}) AS counted",
        most + 1
    );
    Ok(diesel::sql_query(sql).get_result::<Number>(read.connection())?.n)
}

/// How many live items a collection has: exact up to `most`, above that what was counted last.
pub fn known(read: &mut Read, row: &CollectionRow, most: i64) -> Result<ItemCount> {
    let counted = live_up_to(read, row.id, most)?;
    if counted <= most {
        return Ok(ItemCount { items: counted, exact_at: Some(read.now()) });
    }
    Ok(ItemCount { items: row.item_count.max(counted), exact_at: row.item_count_at })
}

/// So many collections are looked up at a time.
const MOST_AT_ONCE: i64 = 100;

/// Counts the items of all collections, for when there are too many to count them while somebody waits.
///
/// # Errors
/// When the database fails.
pub async fn recount(db: &Db) -> Result<()> {
    let mut after = CollectionId(i64::MIN);
    loop {
        let ids: Vec<CollectionId> = db
            .read(move |read| {
                Ok(collections::table
                    .filter(collections::id.gt(after))
                    .filter(collections::trashed_at.is_null())
                    .order(collections::id)
                    .limit(MOST_AT_ONCE)
                    .select(collections::id)
                    .load(read.connection())?)
            })
            .await?;
        let Some(last) = ids.last() else { return Ok(()) };
        after = *last;
        for id in ids {
            recount_one(db, id).await?;
        }
    }
}

async fn recount_one(db: &Db, id: CollectionId) -> Result<()> {
    let counted = db.read(move |read| live(read, id)).await?;
    // Small collections are counted whenever somebody asks.
    if counted <= EXACT_IN_LISTS {
        return Ok(());
    }
    db.write(move |tx| {
        let now = tx.now();
        diesel::update(collections::table.find(id))
            .set((collections::item_count.eq(counted), collections::item_count_at.eq(now)))
            .execute(tx.connection())?;
        Ok(())
    })
    .await
}
