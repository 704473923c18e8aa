//! New items with all that belongs to them, on their way into the database.

use super::new_item::{NewItem, waits_for_row};
use super::stored::new_rows::{KeyRow, NewRows, Stored, UniqueRow};
use super::stored::store::{fresh_ids, store};
use crate::Author;
use crate::activity::{Action, created};
use crate::rows::find::holder_of_key;
use crate::rows::keys;
use crate::rows::row::ItemRow;
use crate::rows::write::{announce, taken_key};
use crate::shape::Shape;
use fields::Data;
use model::{Error, ItemId, Result, Timestamp};
use store::Tx;

/// New items of one set with their authors, and their values where an event of any of them is emitted.
pub(crate) struct NewItems<'a> {
    rows: NewRows<'a>,
    data: Vec<Data>,
}

impl<'a> NewItems<'a> {
    /// Gives items their ids and their dates, in their order.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn new(tx: &mut Tx, shape: &'a Shape, items: Vec<(NewItem, &'a Author)>) -> Result<Self> {
        let now = tx.now();
        let ids = fresh_ids(tx, items.len())?;
        let rows = NewRows {
            authors: items.iter().map(|(_, author)| *author).collect(),
            shape,
            items: Vec::with_capacity(ids.len()),
            entries: Vec::with_capacity(ids.len()),
            unique: Vec::new(),
            keys: Vec::new(),
            terms: Vec::with_capacity(ids.len()),
        };
        let emits = rows.authors.iter().any(|author| author.emits);
        let mut new = Self { rows, data: Vec::new() };
        for (id, (item, _)) in ids.into_iter().zip(items) {
            let data = new.add(id, now, item);
            if emits {
                new.data.push(data);
            }
        }
        new.rows.unique.sort_unstable();
        new.rows.keys.sort_unstable();
        Ok(new)
    }

    /// Gives the values back.
    fn add(&mut self, id: ItemId, now: Timestamp, item: NewItem) -> Data {
        let NewItem { row, data, unique, keys, terms, entry } = item;
        let row = ItemRow { id, created_at: now, updated_at: now, ..row };
        let rows = &mut self.rows;
        let shape = rows.shape;
        let unique = unique.into_iter().map(|(index_id, h)| UniqueRow { index_id, h, item_id: id });
        rows.unique.extend(unique);
        rows.keys.extend(keys.into_iter().map(|(index_id, k)| KeyRow { index_id, k, item_id: id }));
        for index in shape.indexes.iter().filter(|index| index.is_maintained() && waits_for_row(index)) {
            let keys = keys::index_keys(row.record(&data), shape, index).into_iter();
            rows.keys.extend(keys.map(|k| KeyRow { index_id: index.id, k, item_id: id }));
        }
        rows.terms.extend(terms.map(|terms| (id, terms)));
        rows.entries.push(entry);
        rows.items.push(row);
        data
    }

    /// Stores them, and emits their events.
    ///
    /// # Errors
    /// `duplicate_value`, in which case everything is to be undone, or the database's.
    pub(crate) fn store(self, tx: &mut Tx) -> Result<Vec<ItemRow>> {
        let rows = &self.rows;
        let given = Stored { items: rows.items.len(), digests: rows.unique.len() };
        if store(tx, rows)? != given {
            return Err(self.conflict(tx)?);
        }
        for ((row, data), author) in rows.items.iter().zip(&self.data).zip(&rows.authors) {
            announce(tx, rows.shape, author, row, Action::Created, &created(rows.shape, data))?;
        }
        Ok(self.rows.items)
    }

    /// Why not all of them were stored.
    fn conflict(&self, tx: &mut Tx) -> Result<Error> {
        let shape = self.rows.shape;
        for row in &self.rows.items {
            if let Some(key) = row.external_key.as_deref() {
                let holder = holder_of_key(tx, shape, key)?;
                if holder != Some(row.id) {
                    return Ok(taken_key(shape, holder));
                }
            }
        }
        for UniqueRow { index_id, h, item_id } in &self.rows.unique {
            let holder = keys::holder(tx, *index_id, h)?;
            if holder != Some(*item_id)
                && let Some(index) = shape.indexes.iter().find(|known| known.id == *index_id)
            {
                return Ok(keys::duplicate(shape, index, holder));
            }
        }
        Err(Error::internal("new items were not stored"))
    }
}
