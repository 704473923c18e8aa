//! Creating items, one or many at once.
//!
//! They are [completed](NewItem) first, and then stored by statements of many rows: each statement is a round trip to
//! PostgreSQL. Items that point to others are created one by one, because what they compute is known only when their links
//! are there.

use super::find::{holder_of_key, live};
use super::keys;
use super::new_item::{Creation, NewItem};
use super::new_items::NewItems;
use super::row::ItemRow;
use super::values;
use super::write::{Draft, Writer, taken_key};
use crate::Author;
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

impl Writer<'_> {
    /// Creates an item.
    ///
    /// # Errors
    /// `duplicate_value`, `validation_error`, or the database's. What was written until then is for the caller to undo.
    pub fn insert(&self, tx: &mut Tx, draft: Draft) -> Result<ItemRow> {
        self.create(tx, Creation::Draft(draft))
    }

    /// Creates an item, of which more may have been made before the transaction.
    ///
    /// # Errors
    /// Those of [`Self::insert`].
    pub fn create(&self, tx: &mut Tx, creation: Creation) -> Result<ItemRow> {
        let created = self.create_all(tx, vec![creation])?.pop();
        created.ok_or_else(|| Error::internal("an item was not created"))
    }

    /// Creates items, in their order. The first that cannot be created ends it.
    ///
    /// # Errors
    /// Those of [`Self::insert`]. Where two mistakes are made, it is not always the first that is named.
    pub fn create_all(&self, tx: &mut Tx, creations: Vec<Creation>) -> Result<Vec<ItemRow>> {
        if !creations.iter().any(|creation| self.points(creation)) {
            return self.store_all(tx, creations);
        }
        let mut rows = Vec::with_capacity(creations.len());
        for creation in creations {
            match creation {
                Creation::Draft(draft) => rows.push(self.insert_pointing(tx, draft)?),
                Creation::Ready(_) => rows.extend(self.store_all(tx, vec![creation])?),
            }
        }
        Ok(rows)
    }

    /// Whether an item is given other items that it points to.
    fn points(&self, creation: &Creation) -> bool {
        let Creation::Draft(draft) = creation else { return false };
        let mut relations = self.shape.fields.iter().filter(|field| field.kind == FieldType::Relation);
        relations.any(|field| draft.data.contains_key(&field.key))
    }

    /// Creates items that point to no others.
    fn store_all(&self, tx: &mut Tx, mut creations: Vec<Creation>) -> Result<Vec<ItemRow>> {
        if creations.is_empty() {
            return Ok(Vec::new());
        }
        let mut drafts: Vec<&mut Data> = creations.iter_mut().filter_map(Creation::draft_values).collect();
        for data in &mut drafts {
            // They point to no items; what else they refer to has to exist.
            links::take_references(tx, self, None, data)?;
        }
        compute::number(tx, self.shape, drafts.into_iter())?;
        let mut items = Vec::with_capacity(creations.len());
        for creation in creations {
            items.push(match creation {
                Creation::Ready(item) => (*item, self.author),
                Creation::Draft(draft) => {
                    let (row, data) = self.completed(tx, draft)?;
                    (NewItem::of(self.shape, row, data), self.author)
                }
            });
        }
        NewItems::new(tx, self.shape, items)?.store(tx)
    }

    fn insert_pointing(&self, tx: &mut Tx, mut draft: Draft) -> Result<ItemRow> {
        // Items are held before anything is written, and that includes the next number.
        let references = links::take_references(tx, self, None, &mut draft.data)?;
        compute::number(tx, self.shape, std::iter::once(&mut draft.data))?;
        let (mut row, mut data) = self.completed(tx, draft)?;
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

    /// The row and the values of a new item, complete but for its id.
    fn completed(&self, tx: &mut Tx, draft: Draft) -> Result<(ItemRow, Data)> {
        let now = tx.now();
        let mut draft = draft;
        self.complete(&mut draft, None)?;
        let Draft { mut data, external_key, position } = draft;
        values::stamp(self.shape, &mut data, now, now, &self.author.cause.actor);
        let mut errors = ComputedErrors::new();
        compute::complete(tx, self.shape, None, Extent::Bounded, &mut data, &mut errors)?;
        let row = self.new_row(&data, &errors, position, external_key)?;
        Ok((ItemRow { created_at: now, updated_at: now, ..row }, data))
    }
}

/// Creates items that several authors made ready for one set, in their order. The first that cannot be created ends it.
///
/// # Errors
/// `duplicate_value`, or the database's. What was written until then is for the caller to undo.
pub fn create_ready(tx: &mut Tx, shape: &Shape, items: Vec<(NewItem, &Author)>) -> Result<Vec<ItemRow>> {
    NewItems::new(tx, shape, items)?.store(tx)
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
