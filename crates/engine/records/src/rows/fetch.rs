//! Rows by their ids: what testing an item needs of it, and whole items for the page.
//!
//! Most items that a query looks at are not shown, so only the columns are read that its conditions and its order go by.
//! Many ids are one statement on both databases.

use super::row::{ItemRow, SystemValues};
use crate::schema::items;
use crate::shape::Shape;
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Bool, Text};
use fields::{ColumnValue, Columns, Data, Record, SystemColumn};
use model::{ItemId, JsonText, Result, Timestamp};
use std::collections::HashMap;
use store::{AnyConnection, Cached, Read};

/// What testing needs of an item.
#[derive(Debug)]
pub struct TestedRow {
    /// Its id.
    pub id: ItemId,
    /// Its values.
    pub data: JsonText,
    /// Whether `data` lacks some of the ids that a relation field points to.
    is_cut: bool,
    /// Its system columns, where they were asked for.
    system: Option<SystemRow>,
}

/// The system columns of an item, beside its id.
#[derive(Debug, Queryable, Selectable)]
#[diesel(table_name = items)]
struct SystemRow {
    position: Option<String>,
    external_key: Option<String>,
    version: i64,
    created_by: JsonText,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl TestedRow {
    /// The item as filters, sorts and keys see it; `data` are its values, parsed.
    pub fn record<'a>(&'a self, data: &'a Data) -> Record<'a> {
        Record { columns: self, data }
    }
}

impl Columns for TestedRow {
    fn id(&self) -> i64 {
        self.id.0
    }

    fn column(&self, column: SystemColumn) -> ColumnValue<'_> {
        let Some(row) = &self.system else {
            debug_assert!(column == SystemColumn::Id, "{column:?} was not read");
            return ColumnValue::Integer(self.id.0);
        };
        let values = SystemValues {
            id: self.id,
            position: row.position.as_deref(),
            external_key: row.external_key.as_deref(),
            version: row.version,
            created_by: &row.created_by,
            created_at: row.created_at,
            updated_at: row.updated_at,
        };
        values.of(column)
    }

    fn has_cut_relations(&self) -> bool {
        self.is_cut
    }
}

/// Columns of the items of a collection, live or in the trash, that have one of some ids. Other conditions than that on the id are hidden
/// from the planners, which would otherwise go through the collection.
macro_rules! load_by_ids {
    ($read:expr, $shape:expr, $ids:expr, $trashed:expr, $columns:expr) => {{
        let (shape, ids, trashed): (&Shape, &[i64], bool) = ($shape, $ids, $trashed);
        match $read.connection() {
            AnyConnection::Sqlite(connection) => {
                let list = serde_json::to_string(ids).unwrap_or_default();
                let among = sql::<Bool>("items.id IN (SELECT value FROM json_each(")
                    .bind::<Text, _>(list)
                    .sql(")) AND items.collection_id + 0 = ");
                let wanted = among
                    .bind::<BigInt, _>(shape.collection.0)
                    .sql(" AND items.workspace_id + 0 = ")
                    .bind::<BigInt, _>(shape.workspace.0)
                    .sql(" AND CASE WHEN items.trashed_at IS NULL THEN 0 ELSE 1 END = ")
                    .bind::<BigInt, _>(i64::from(trashed));
                Cached(items::table.filter(wanted).select($columns)).load(connection)?
            }
            AnyConnection::Postgres(connection) => {
                let among = sql::<Bool>("items.id = ANY(")
                    .bind::<Array<BigInt>, _>(ids)
                    .sql(") AND items.collection_id + 0 = ");
                let wanted = among
                    .bind::<BigInt, _>(shape.collection.0)
                    .sql(" AND items.workspace_id + 0 = ")
                    .bind::<BigInt, _>(shape.workspace.0)
                    .sql(" AND CASE WHEN items.trashed_at IS NULL THEN 0 ELSE 1 END = ")
                    .bind::<BigInt, _>(i64::from(trashed));
                Cached(items::table.filter(wanted).select($columns)).load(connection)?
            }
        }
    }};
}

/// What testing needs of the collection's items, live or in the trash, in the order of `ids`; others are left out.
///
/// # Errors
/// When the database fails.
pub fn tested_rows(
    read: &mut Read,
    shape: &Shape,
    ids: &[i64],
    trashed: bool,
    with_system_columns: bool,
) -> Result<Vec<TestedRow>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let found: Vec<TestedRow> = if with_system_columns {
        let rows: Vec<(ItemId, JsonText, bool, SystemRow)> = load_by_ids!(
            read,
            shape,
            ids,
            trashed,
            (items::id, items::data, items::more.is_not_null(), SystemRow::as_select())
        );
        let row = |(id, data, is_cut, system)| TestedRow { id, data, is_cut, system: Some(system) };
        rows.into_iter().map(row).collect()
    } else {
        let rows: Vec<(ItemId, JsonText, bool)> =
            load_by_ids!(read, shape, ids, trashed, (items::id, items::data, items::more.is_not_null()));
        let row = |(id, data, is_cut)| TestedRow { id, data, is_cut, system: None };
        rows.into_iter().map(row).collect()
    };
    Ok(in_order(found, ids, |row| row.id.0))
}

/// Live items of the collection, by id, in the order of `ids`; others are left out.
///
/// # Errors
/// When the database fails.
pub fn live_by_ids(read: &mut Read, shape: &Shape, ids: &[i64]) -> Result<Vec<ItemRow>> {
    by_ids(read, shape, ids, false)
}

/// The collection's items, live or in the trash, in the order of `ids`; others are left out.
///
/// # Errors
/// When the database fails.
pub fn by_ids(read: &mut Read, shape: &Shape, ids: &[i64], trashed: bool) -> Result<Vec<ItemRow>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let found: Vec<ItemRow> = load_by_ids!(read, shape, ids, trashed, ItemRow::as_select());
    Ok(in_order(found, ids, |row| row.id.0))
}

/// Brings rows into the order of some ids.
fn in_order<T>(found: Vec<T>, ids: &[i64], id_of: impl Fn(&T) -> i64) -> Vec<T> {
    if found.iter().map(&id_of).eq(ids.iter().copied()) {
        return found;
    }
    let mut found: HashMap<i64, T> = found.into_iter().map(|row| (id_of(&row), row)).collect();
    ids.iter().filter_map(|id| found.remove(id)).collect()
}
