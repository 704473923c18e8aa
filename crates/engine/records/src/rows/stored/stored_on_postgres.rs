//! Storing new items on PostgreSQL: rows, keys, unique values, terms and activity entries by one statement, whose text is
//! the same for any number of items, so that it is prepared once.

use super::new_rows::{NewRows, Stored};
use crate::activity::{Action, short_actor, short_source};
use crate::columnar;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Text, Timestamp};
use model::{Error, ItemId, JsonText, Result};
use store::{Cached, PgConnection, column};

/// What is stored. Whoever loses a race for an external key or for a unique value finds fewer rows stored than it gave.
const STORE: &str = "\
    WITH stored AS ( \
        INSERT INTO items (id, data, title, computed_errors, position, external_key, workspace_id, collection_id, \
            comment_count, version, created_by, updated_by, created_at, updated_at) \
        SELECT id, data, title, computed_errors, position, external_key, $7, $8, 0, 1, actor, actor, $10, $10 \
        FROM unnest($1, $2, $3, $4, $5, $6, $9) \
            AS new (id, data, title, computed_errors, position, external_key, actor) \
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
        INSERT INTO item_activity (item_id, changed, actor, source, operation_id, workspace_id, collection_id, action, \
            created_at) \
        SELECT new.*, $7, $8, $20, $10 FROM unnest($1, $19, $21, $22, $23) AS new \
    ), changes AS ( \
        INSERT INTO item_changes (index_id, item_id) SELECT $24, id FROM unnest($1) AS new (id) \
        WHERE $24 IS NOT NULL \
    ) \
    SELECT (SELECT count(*) FROM stored) AS items, (SELECT count(*) FROM digests) AS digests";

/// Stores them.
///
/// # Errors
/// When the database fails.
pub(crate) fn store(new: &NewRows<'_>, connection: &mut PgConnection) -> Result<Stored> {
    let (authors, shape, rows) = (&new.authors, new.shape, &new.items);
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
        .bind::<BigInt, _>(shape.workspace)
        .bind::<BigInt, _>(shape.collection)
        .bind::<Array<Text>, _>(column(rows, |row| row.created_by.as_str()))
        .bind::<Nullable<Timestamp>, _>(now)
        .bind::<Array<BigInt>, _>(column(&new.unique, |unique| unique.index_id))
        .bind::<Array<Binary>, _>(column(&new.unique, |unique| unique.h.as_slice()))
        .bind::<Array<BigInt>, _>(column(&new.unique, |unique| unique.item_id))
        .bind::<Array<BigInt>, _>(column(&new.keys, |key| key.index_id))
        .bind::<Array<Binary>, _>(column(&new.keys, |key| key.k.as_slice()))
        .bind::<Array<BigInt>, _>(column(&new.keys, |key| key.item_id))
        .bind::<Array<BigInt>, _>(column(&new.terms, |(item, _)| *item))
        .bind::<Array<Text>, _>(column(&new.terms, |(_, terms)| terms.tsvector()))
        .bind::<Array<Text>, _>(column(&new.entries, JsonText::as_str))
        .bind::<Text, _>(Action::Created)
        .bind::<Array<Text>, _>(column(authors, |author| short_actor(&author.cause.actor)))
        .bind::<Array<Text>, _>(column(authors, |author| short_source(&author.source)))
        .bind::<Array<Nullable<Text>>, _>(column(authors, |author| author.operation.as_deref()))
        .bind::<Nullable<BigInt>, _>(columnar::of(shape).map(|index| index.id));
    Ok(Cached(statement).get_result(connection)?)
}

/// Ids for new items, in ascending order.
///
/// # Errors
/// When the database fails.
pub(crate) fn fresh_ids(connection: &mut PgConnection, number: usize) -> Result<Vec<ItemId>> {
    #[derive(QueryableByName)]
    struct Fresh {
        #[diesel(sql_type = BigInt)]
        id: ItemId,
    }
    let number = i64::try_from(number).map_err(Error::internal)?;
    let ids = diesel::sql_query("SELECT nextval('items_id_seq') AS id FROM generate_series(1, $1)")
        .bind::<BigInt, _>(number);
    let mut ids: Vec<ItemId> =
        Cached(ids).get_results::<Fresh>(connection)?.into_iter().map(|fresh| fresh.id).collect();
    ids.sort_unstable();
    Ok(ids)
}
