//! Creating items, one or many at once.
//!
//! PostgreSQL stores any number of new items, with all that belongs to them, by one statement, because each statement is
//! a round trip. SQLite stores them one after the other, by statements that are prepared once, and then their keys, sorted
//! and many at a time. Items that point to others are created one by one, because what they compute is known only when their
//! links are there.

use super::find::{holder_of_key, live};
use super::keys::{self, KeyRow};
use super::row::ItemRow;
use super::stored_together::NewItems;
use super::values;
use super::write::{Draft, Writer, sized, taken_key};
use crate::activity::{Action, created};
use crate::compute::{self, Extent};
use crate::schema::items;
use crate::shape::Shape;
use crate::{links, search};
use diesel::dsl::sql;
use diesel::prelude::*;
use diesel::sql_types::BigInt;
use fields::{ComputedErrors, Data, FieldType};
use model::{Error, ItemId, Result};
use store::{AnyConnection, Tx};

/// What an item is to become, in parts that are made up one after the other.
struct Parts {
    data: Data,
    position: Option<String>,
    external_key: Option<String>,
}

impl Writer<'_> {
    /// Creates an item.
    ///
    /// # Errors
    /// `duplicate_value`, `validation_error`, or the database's. What was written until then is for the caller to undo.
    pub fn insert(&self, tx: &mut Tx, draft: Draft) -> Result<ItemRow> {
        let created = self.insert_all(tx, vec![draft])?.pop();
        created.ok_or_else(|| Error::internal("an item was not created"))
    }

    /// Creates items, in the order of their drafts. The first that cannot be created ends it.
    ///
    /// # Errors
    /// Those of [`Self::insert`]. Where two mistakes are made, it is not always the first that is named.
    pub fn insert_all(&self, tx: &mut Tx, drafts: Vec<Draft>) -> Result<Vec<ItemRow>> {
        if drafts.is_empty() {
            return Ok(Vec::new());
        }
        if tx.is_postgres() && !drafts.iter().any(|draft| self.points(&draft.data)) {
            return self.insert_together(tx, drafts);
        }
        if drafts.len() == 1 || drafts.iter().any(|draft| self.points(&draft.data)) {
            return drafts.into_iter().map(|draft| self.insert_alone(tx, draft)).collect();
        }
        let mut keys = Vec::new();
        let insert = |draft| self.insert_but_for_keys(tx, draft, &mut keys);
        let rows = drafts.into_iter().map(insert).collect::<Result<_>>()?;
        keys::insert_keys(tx, keys)?;
        Ok(rows)
    }

    /// Creates an item that points to no others, and gives the keys that it is to have in indexes.
    fn insert_but_for_keys(&self, tx: &mut Tx, draft: Draft, keys: &mut Vec<KeyRow>) -> Result<ItemRow> {
        let Draft { mut data, external_key, position } = draft;
        links::take_references(tx, self, None, &mut data)?;
        compute::number(tx, self.shape, std::iter::once(&mut data))?;
        let (mut row, data) = self.completed(tx, Parts { data, position, external_key })?;
        row.id = store(tx, self.shape, &row)?;
        let record = row.record(&data);
        keys.extend(keys::changed_keys(tx, self.shape, None, Some(record))?);
        search::reindex(tx, self.shape, None, Some(record))?;
        self.publish(tx, &row, Action::Created, &created(self.shape, &data))?;
        Ok(row)
    }

    /// Whether values name items that they point to.
    fn points(&self, data: &Data) -> bool {
        let mut relations = self.shape.fields.iter().filter(|field| field.kind == FieldType::Relation);
        relations.any(|field| data.contains_key(&field.key))
    }

    fn insert_alone(&self, tx: &mut Tx, draft: Draft) -> Result<ItemRow> {
        let Draft { mut data, external_key, position } = draft;
        // Items are held before anything is written, and that includes the next number.
        let references = links::take_references(tx, self, None, &mut data)?;
        compute::number(tx, self.shape, std::iter::once(&mut data))?;
        let (mut row, mut data) = self.completed(tx, Parts { data, position, external_key })?;
        row.id = store(tx, self.shape, &row)?;
        let others = links::point(tx, self, &row, references)?;
        if others.is_some() {
            // The other ends may decide what rollups of this item hold.
            row = self.refresh(tx, row, Extent::Bounded)?;
            data = row.values()?;
        }
        let record = row.record(&data);
        keys::reindex(tx, self.shape, None, Some(record))?;
        search::reindex(tx, self.shape, None, Some(record))?;
        self.publish(tx, &row, Action::Created, &created(self.shape, &data))?;
        if self.renew_all(tx, others.unwrap_or_default(), Action::Updated)? {
            row = live(tx, self.shape, row.id)?;
        }
        Ok(row)
    }

    fn insert_together(&self, tx: &mut Tx, drafts: Vec<Draft>) -> Result<Vec<ItemRow>> {
        let mut parts = Vec::with_capacity(drafts.len());
        for Draft { mut data, external_key, position } in drafts {
            // They point to no items; what else they refer to has to exist.
            links::take_references(tx, self, None, &mut data)?;
            parts.push(Parts { data, position, external_key });
        }
        compute::number(tx, self.shape, parts.iter_mut().map(|parts| &mut parts.data))?;
        let mut completed = Vec::with_capacity(parts.len());
        for parts in parts {
            completed.push(self.completed(tx, parts)?);
        }
        let new = NewItems::new(tx, self, completed)?;
        if let Some(conflict) = new.store(tx)? {
            return Err(conflict);
        }
        for (row, changed) in new.published() {
            self.announce(tx, row, Action::Created, changed)?;
        }
        Ok(new.into_rows())
    }

    /// A new item with its computed values, complete but for its id.
    fn completed(&self, tx: &mut Tx, parts: Parts) -> Result<(ItemRow, Data)> {
        let now = tx.now();
        let Parts { mut data, position, external_key } = parts;
        self.complete(&mut data, external_key.as_deref())?;
        let actor = &self.author.cause.actor;
        values::stamp(self.shape, &mut data, now, now, actor);
        let mut errors = ComputedErrors::new();
        compute::complete(tx, self.shape, None, Extent::Bounded, &mut data, &mut errors)?;
        let row = ItemRow {
            // The database gives it one.
            id: ItemId(0),
            workspace_id: self.author.workspace,
            collection_id: self.shape.collection,
            title: values::title(self.shape, &data),
            data: sized(&data)?,
            more: None,
            computed_errors: compute::stored(&errors),
            position,
            external_key,
            comment_count: 0,
            locked_by: None,
            locked_at: None,
            version: 1,
            created_by: actor.clone(),
            updated_by: actor.clone(),
            created_at: now,
            updated_at: now,
            trashed_at: None,
        };
        Ok((row, data))
    }
}

/// Stores a new row and gives its id.
///
/// # Errors
/// `duplicate_value` where another live item has its external key.
fn store(tx: &mut Tx, shape: &Shape, row: &ItemRow) -> Result<ItemId> {
    let statement = diesel::insert_into(items::table).values((
        items::workspace_id.eq(row.workspace_id),
        items::collection_id.eq(row.collection_id),
        items::data.eq(&row.data),
        items::title.eq(&row.title),
        items::computed_errors.eq(&row.computed_errors),
        items::position.eq(&row.position),
        items::external_key.eq(&row.external_key),
        items::comment_count.eq(row.comment_count),
        items::version.eq(row.version),
        items::created_by.eq(&row.created_by),
        items::updated_by.eq(&row.updated_by),
        items::created_at.eq(row.created_at),
        items::updated_at.eq(row.updated_at),
    ));
    let id = match tx.connection() {
        // With `RETURNING` SQLite journals the one statement, for which full-text search has to write out what it
        // gathers from many. The plain one diesel knows by its type.
        AnyConnection::Sqlite(connection) => {
            let inserted = match row.external_key {
                None => statement.execute(connection)?,
                Some(_) => statement.on_conflict_do_nothing().execute(connection)?,
            };
            let id = diesel::select(sql::<BigInt>("last_insert_rowid()"));
            if inserted == 1 { Some(id.get_result(connection)?) } else { None }
        }
        AnyConnection::Postgres(connection) => {
            let statement = statement.on_conflict_do_nothing().returning(items::id);
            statement.get_result(connection).optional()?
        }
    };
    match (id, row.external_key.as_deref()) {
        (Some(id), _) => Ok(id),
        (None, key) => Err(taken_key(shape, holder_of_key(tx, shape, key.unwrap_or_default())?)),
    }
}
