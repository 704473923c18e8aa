//! Items that leave, for the trash or for good, and those that come back.

use super::find::{live, refuse_locked};
use super::keys::{self};
use super::row::ItemRow;
use super::values;
use super::write::{Draft, Writer, sized, store, store_with_key};
use crate::activity::{Action, Changes};
use crate::compute::Extent;
use crate::schema::{item_comments, item_files, items};
use crate::{compute, links, search};
use diesel::prelude::*;
use fields::ComputedErrors;
use model::Result;
use store::Tx;

impl Writer<'_> {
    /// Moves a live, locked item to the trash.
    ///
    /// # Errors
    /// `item_locked`, `resource_in_use` where a relation forbids it, or the database's.
    pub fn trash(&self, tx: &mut Tx, old: &ItemRow) -> Result<ItemRow> {
        let (row, fallout) = self.send_to_trash(tx, old)?;
        self.let_go(tx, &row, fallout)?;
        Ok(row)
    }

    /// Moves one item to the trash, and gives what is to follow.
    ///
    /// # Errors
    /// Those of [`Self::trash`].
    pub(crate) fn send_to_trash(&self, tx: &mut Tx, old: &ItemRow) -> Result<(ItemRow, links::Fallout)> {
        let (row, fallout) = self.take_out(tx, old)?;
        let author = fallout.author(self.author);
        Writer { author: &author, ..*self }.publish(tx, &row, Action::Trashed, &Changes::new())?;
        Ok((row, fallout))
    }

    fn let_go(&self, tx: &mut Tx, row: &ItemRow, fallout: links::Fallout) -> Result<()> {
        let author = fallout.author(self.author);
        links::let_go(tx, &Writer { author: &author, ..*self }, row, fallout)
    }

    /// Takes a live item out of indexes and search.
    fn take_out(&self, tx: &mut Tx, old: &ItemRow) -> Result<(ItemRow, links::Fallout)> {
        refuse_locked(old)?;
        self.unindex(tx, old)?;
        let mut row = self.stamped(tx, old, old.values()?)?;
        row.trashed_at = Some(row.updated_at);
        store(tx, &row)?;
        let fallout = links::fallout(tx, self, &row)?;
        Ok((row, fallout))
    }

    /// Deletes an item for good, be it live or in the trash.
    ///
    /// # Errors
    /// `item_locked`, `resource_in_use` where a relation forbids it, or the database's.
    pub fn destroy(&self, tx: &mut Tx, row: &ItemRow) -> Result<()> {
        if row.trashed_at.is_some() {
            return self.purge(tx, row);
        }
        let (row, fallout) = self.take_out(tx, row)?;
        self.let_go(tx, &row, fallout)?;
        self.purge(tx, &row)
    }

    /// Brings an item back from the trash. Its computed values are brought up to date.
    ///
    /// # Errors
    /// `duplicate_value` where a value that must be unique is taken by now, or the database's.
    pub fn restore(&self, tx: &mut Tx, old: &ItemRow) -> Result<ItemRow> {
        let mut row = self.stamped(tx, old, old.values()?)?;
        row.trashed_at = None;
        store_with_key(tx, self.shape, &row)?;
        links::take_back(tx, self, &row)?;
        let mut row = self.refresh(tx, row, Extent::Bounded)?;
        let data = row.values()?;
        let record = row.record(&data);
        keys::reindex(tx, self.shape, None, Some(record))?;
        search::reindex(tx, self.shape, None, Some(record))?;
        self.publish(tx, &row, Action::Restored, &Changes::new())?;
        if links::return_to(tx, self, &row)? {
            row = live(tx, self.shape, row.id)?;
        }
        Ok(row)
    }

    /// Deletes an item in the trash for good, with its links, comments and attachments. Its activity stays until its
    /// time is over.
    ///
    /// # Errors
    /// The database's.
    pub fn purge(&self, tx: &mut Tx, row: &ItemRow) -> Result<()> {
        links::forget(tx, row)?;
        diesel::delete(item_comments::table.filter(item_comments::item_id.eq(row.id)))
            .execute(tx.connection())?;
        diesel::delete(item_files::table.filter(item_files::item_id.eq(row.id))).execute(tx.connection())?;
        diesel::delete(items::table.find(row.id)).execute(tx.connection())?;
        self.publish(tx, row, Action::Deleted, &Changes::new())
    }

    /// Takes a live item out of the collection's indexes and search.
    ///
    /// # Errors
    /// The database's.
    pub fn unindex(&self, tx: &mut Tx, old: &ItemRow) -> Result<()> {
        let data = old.values()?;
        let record = old.record(&data);
        keys::reindex(tx, self.shape, Some(record), None)?;
        search::reindex(tx, self.shape, Some(record), None)
    }

    /// Takes an item in that left another collection.
    ///
    /// # Errors
    /// `duplicate_value`, `validation_error`, or the database's.
    pub fn arrive(&self, tx: &mut Tx, old: &ItemRow, draft: Draft, changed: &Changes) -> Result<ItemRow> {
        let now = tx.now();
        let mut data = draft.data;
        let references = links::take_references(tx, self, None, &mut data)?;
        compute::number(tx, self.shape, std::iter::once(&mut data))?;
        values::stamp(self.shape, &mut data, old.created_at, now, &old.created_by);
        let mut errors = ComputedErrors::new();
        compute::complete(tx, self.shape, None, Extent::Bounded, &mut data, &mut errors)?;
        let mut row = ItemRow {
            collection_id: self.shape.collection,
            title: values::title(self.shape, &data),
            data: sized(&data)?,
            more: None,
            computed_errors: compute::stored(&errors),
            position: draft.position,
            external_key: draft.external_key,
            version: old.version + 1,
            updated_by: self.author.cause.actor.clone(),
            updated_at: now,
            ..old.clone()
        };
        store_with_key(tx, self.shape, &row)?;
        let others = links::point(tx, self, &row, references)?;
        if others.is_some() {
            row = self.refresh(tx, row, Extent::Bounded)?;
        }
        let data = row.values()?;
        let record = row.record(&data);
        keys::reindex(tx, self.shape, None, Some(record))?;
        search::reindex(tx, self.shape, None, Some(record))?;
        self.publish(tx, &row, Action::Moved, changed)?;
        self.renew_all(tx, others.unwrap_or_default(), Action::Updated)?;
        Ok(row)
    }
}
