//! Storing new items on PostgreSQL: rows, keys, unique values, terms and activity entries by one statement, whose text is
//! the same for any number of items, so that it is prepared once.

use super::find::holder_of_key;
use super::keys;
use super::row::ItemRow;
use super::write::{Writer, taken_key};
use crate::activity::{Action, Changes, created, short_actor, short_changes, short_source};
use crate::columnar;
use crate::search;
use crate::shape::IndexKind;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Text, Timestamp};
use fields::Data;
use model::{Error, IndexId, ItemId, JsonText, Result};
use store::{AnyConnection, Cached, PgConnection, Tx, column};

/// What is stored. Whoever loses a race for an external key or for a unique value finds fewer rows stored than it gave.
const STORE: &str = "\
    WITH stored AS ( \
        INSERT INTO items (id, data, title, computed_errors, position, external_key, workspace_id, collection_id, \
            comment_count, version, created_by, updated_by, created_at, updated_at) \
        SELECT new.*, $7, $8, 0, 1, $9, $9, $10, $10 FROM unnest($1, $2, $3, $4, $5, $6) AS new \
        ON CONFLICT DO NOTHING RETURNING 1 \
    ), digests AS ( \
        INSERT INTO item_unique (index_id, h, item_id) SELECT * FROM unnest($11, $12, $13) \
        ON CONFLICT DO NOTHING RETURNING 1 \
    ), keys AS ( \
        INSERT INTO item_keys (index_id, k, item_id) SELECT * FROM unnest($14, $15, $16) \
    ), terms AS ( \
        INSERT INTO item_search (item_id, terms) \
        SELECT item_id, terms::tsvector FROM unnest($17, $18) AS new (item_id, terms) \
    ), entries AS ( \
        INSERT INTO item_activity (item_id, changed, workspace_id, collection_id, action, actor, source, operation_id, \
            created_at) \
        SELECT new.*, $7, $8, $20, $21, $22, $23, $10 FROM unnest($1, $19) AS new \
    ), changes AS ( \
        INSERT INTO item_changes (index_id, item_id) SELECT $24, id FROM unnest($1) AS new (id) \
        WHERE $24 IS NOT NULL \
    ) \
    SELECT (SELECT count(*) FROM stored) AS items, (SELECT count(*) FROM digests) AS digests";

/// How many rows were stored.
#[derive(QueryableByName, PartialEq, Eq)]
struct Stored {
    #[diesel(sql_type = BigInt)]
    items: i64,
    #[diesel(sql_type = BigInt)]
    digests: i64,
}

/// A value that no other item may have.
struct UniqueValue {
    index: IndexId,
    digest: Vec<u8>,
    item: ItemId,
}

/// A key of an item in an index.
struct Key {
    index: IndexId,
    k: Vec<u8>,
    item: ItemId,
}

/// New items with all that belongs to them.
pub(super) struct NewItems<'a> {
    writer: &'a Writer<'a>,
    rows: Vec<ItemRow>,
    /// Of those whose events are emitted.
    changes: Vec<Changes>,
    entries: Vec<JsonText>,
    unique: Vec<UniqueValue>,
    keys: Vec<Key>,
    terms: Vec<(ItemId, String)>,
}

impl<'a> NewItems<'a> {
    /// Gives ids to items that are complete otherwise, in their order, and makes up what belongs to them.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) fn new(tx: &mut Tx, writer: &'a Writer<'a>, completed: Vec<(ItemRow, Data)>) -> Result<Self> {
        let ids = fresh_ids(tx, completed.len())?;
        let mut new = Self {
            writer,
            rows: Vec::with_capacity(ids.len()),
            changes: Vec::new(),
            entries: Vec::with_capacity(ids.len()),
            unique: Vec::new(),
            keys: Vec::new(),
            terms: Vec::new(),
        };
        for (id, (row, data)) in ids.into_iter().zip(completed) {
            new.add(ItemRow { id, ..row }, &data);
        }
        Ok(new)
    }

    fn add(&mut self, row: ItemRow, data: &Data) {
        let (shape, item, record) = (self.writer.shape, row.id, row.record(data));
        for index in shape.indexes.iter().filter(|index| index.is_maintained()) {
            if index.kind == IndexKind::Unique {
                let digests = keys::digests(shape, index, data).into_iter();
                self.unique.extend(digests.map(|digest| UniqueValue { index: index.id, digest, item }));
            } else {
                let keys = keys::index_keys(record, shape, index).into_iter();
                self.keys.extend(keys.map(|k| Key { index: index.id, k, item }));
            }
        }
        self.terms.extend(search::terms(shape, record).map(|terms| (item, terms.tsvector())));
        let changed = created(shape, data);
        self.entries.push(short_changes(&changed));
        if self.writer.author.emits {
            self.changes.push(changed);
        }
        self.rows.push(row);
    }

    /// Stores them. Gives the refusal of the first that cannot be, in which case everything is to be undone.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) fn store(&self, tx: &mut Tx) -> Result<Option<Error>> {
        let AnyConnection::Postgres(connection) = tx.connection() else {
            return Err(Error::internal("items are stored together on PostgreSQL only"));
        };
        let stored = self.run(connection)?;
        let number = |rows: usize| i64::try_from(rows).map_err(Error::internal);
        let given = Stored { items: number(self.rows.len())?, digests: number(self.unique.len())? };
        if stored == given { Ok(None) } else { self.conflict(tx).map(Some) }
    }

    fn run(&self, connection: &mut PgConnection) -> Result<Stored> {
        let (author, shape, rows) = (self.writer.author, self.writer.shape, &self.rows);
        let now = rows.first().map(|row| row.created_at);
        let statement = diesel::sql_query(STORE)
            .bind::<Array<BigInt>, _>(column(rows, |row| row.id))
            .bind::<Array<Text>, _>(column(rows, |row| row.data.as_str()))
            .bind::<Array<Text>, _>(column(rows, |row| row.title.as_str()))
            .bind::<Array<Nullable<Text>>, _>(column(rows, |row| {
                row.computed_errors.as_ref().map(JsonText::as_str)
            }))
            .bind::<Array<Nullable<Text>>, _>(column(rows, |row| row.position.as_deref()))
            .bind::<Array<Nullable<Text>>, _>(column(rows, |row| row.external_key.as_deref()))
            .bind::<BigInt, _>(author.workspace)
            .bind::<BigInt, _>(shape.collection)
            .bind::<Text, _>(author.cause.actor.as_str())
            .bind::<Nullable<Timestamp>, _>(now)
            .bind::<Array<BigInt>, _>(column(&self.unique, |unique| unique.index))
            .bind::<Array<Binary>, _>(column(&self.unique, |unique| unique.digest.as_slice()))
            .bind::<Array<BigInt>, _>(column(&self.unique, |unique| unique.item))
            .bind::<Array<BigInt>, _>(column(&self.keys, |key| key.index))
            .bind::<Array<Binary>, _>(column(&self.keys, |key| key.k.as_slice()))
            .bind::<Array<BigInt>, _>(column(&self.keys, |key| key.item))
            .bind::<Array<BigInt>, _>(column(&self.terms, |(item, _)| *item))
            .bind::<Array<Text>, _>(column(&self.terms, |(_, terms)| terms.as_str()))
            .bind::<Array<Text>, _>(column(&self.entries, JsonText::as_str))
            .bind::<Text, _>(Action::Created)
            .bind::<Text, _>(short_actor(&author.cause.actor))
            .bind::<Text, _>(short_source(&author.source))
            .bind::<Nullable<Text>, _>(author.operation.as_deref())
            .bind::<Nullable<BigInt>, _>(columnar::of(shape).map(|index| index.id));
        Ok(Cached(statement).get_result(connection)?)
    }

    /// Why not all of them were stored.
    fn conflict(&self, tx: &mut Tx) -> Result<Error> {
        let shape = self.writer.shape;
        for row in &self.rows {
            if let Some(key) = row.external_key.as_deref() {
                let holder = holder_of_key(tx, shape, key)?;
                if holder != Some(row.id) {
                    return Ok(taken_key(shape, holder));
                }
            }
        }
        for UniqueValue { index, digest, item } in &self.unique {
            let holder = keys::holder(tx, *index, digest)?;
            if holder != Some(*item)
                && let Some(index) = shape.indexes.iter().find(|known| known.id == *index)
            {
                return Ok(keys::duplicate(shape, index, holder));
            }
        }
        Err(Error::internal("new items were not stored"))
    }

    /// The items whose events are to be emitted, each with what changed of it.
    pub(super) fn published(&self) -> impl Iterator<Item = (&ItemRow, &Changes)> {
        self.rows.iter().zip(&self.changes)
    }

    /// The items as they are stored.
    pub(super) fn into_rows(self) -> Vec<ItemRow> {
        self.rows
    }
}

/// Ids for new items, in ascending order.
fn fresh_ids(tx: &mut Tx, number: usize) -> Result<Vec<ItemId>> {
    #[derive(QueryableByName)]
    struct Fresh {
        #[diesel(sql_type = BigInt)]
        id: ItemId,
    }
    let AnyConnection::Postgres(connection) = tx.connection() else { return Ok(Vec::new()) };
    let number = i64::try_from(number).map_err(Error::internal)?;
    let ids = diesel::sql_query("SELECT nextval('items_id_seq') AS id FROM generate_series(1, $1)")
        .bind::<BigInt, _>(number);
    let mut ids: Vec<ItemId> =
        Cached(ids).get_results::<Fresh>(connection)?.into_iter().map(|fresh| fresh.id).collect();
    ids.sort_unstable();
    Ok(ids)
}
