//! Writing items. Every change of an item goes through the writer: its row, its keys, its terms, its activity entry and
//! its event are one transaction, and a change that changes nothing leaves no trace. Creating them is in
//! [`create`](super::create).

use super::find::{find, holder_of_key, live, lock, refuse_locked};
use super::keys::{self};
use super::row::ItemRow;
use super::values;
use crate::Author;
use crate::activity::{self, Action, Changes, change};
use crate::compute::Extent;
use crate::schema::items;
use crate::shape::{RecordChange, Shape, Shapes};
use crate::{compute, links, search};
use diesel::prelude::*;
use fields::Data;
use fields::FieldType;
use fields::computed;
use model::{Code, CollectionId, Error, ItemId, JsonText, Result, Timestamp};
use serde_json::Value;
use store::{CachedChange, Tx, each};

/// The most bytes of an item's values as JSON.
const MOST_DATA: usize = 256 * 1024;

/// What an item is to become.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// Its values, as [`values::merge`] gives them.
    pub data: Data,
    /// The caller's own key.
    pub external_key: Option<String>,
    /// Its place in the manual order; `None` for the one of its birth.
    pub position: Option<String>,
}

/// What a write did.
#[derive(Debug, Clone)]
pub struct Written {
    /// The item as it is now.
    pub row: ItemRow,
    /// Whether anything changed.
    pub changed: bool,
}

/// Everything that writing items of one collection takes.
pub struct Writer<'a> {
    /// All shapes, for the other ends of links.
    pub shapes: &'a Shapes,
    /// The collection's shape, as [`crate::shape::for_write`] gives it.
    pub shape: &'a Shape,
    /// Who writes.
    pub author: &'a Author,
}

impl Writer<'_> {
    /// Gives the own key its form, and has the kind fill in what follows from other values, or refuse them. `before` is the
    /// record until then.
    pub(super) fn complete(&self, draft: &mut Draft, before: Option<(&Data, Option<&str>)>) -> Result<()> {
        let Draft { data, external_key, .. } = draft;
        let kept = before.and_then(|(_, key)| key);
        // Keys that were stored before they had a form stay as they are until they are changed.
        if let Some(key) = external_key.as_mut().filter(|key| Some(key.as_str()) != kept) {
            *key = own_key(self.shape, key)?;
        }
        let given = data.len();
        let before = before.map(|(data, _)| data);
        (self.shape.kind.complete)(data, before, external_key.as_deref(), self.author)?;
        if data.len() != given {
            computed::order(self.shape, data);
        }
        Ok(())
    }

    /// Changes a live, locked item.
    ///
    /// # Errors
    /// `duplicate_value`, `validation_error`, `item_locked`, or the database's.
    pub fn update(&self, tx: &mut Tx, old: ItemRow, draft: Draft) -> Result<Written> {
        refuse_locked(&old)?;
        let before = old.values()?;
        let mut draft = draft;
        self.complete(&mut draft, Some((&before, old.external_key.as_deref())))?;
        let mut data = draft.data;
        let references = links::take_references(tx, self, Some(&old), &mut data)?;
        let mut errors = old.errors()?;
        computed::derive(self.shape, &mut data, &mut errors);
        let mut changed = differences(self.shape, &before, &data);
        changed.extend(links::differences(&references));
        let same_place = draft.position == old.position && draft.external_key == old.external_key;
        if changed.is_empty() && same_place && !differ_unseen(self.shape, &before, &data) {
            return Ok(Written { row: old, changed: false });
        }
        if draft.position != old.position {
            changed.insert(
                "position".to_owned(),
                change(Some(&old.place().into()), draft.position.clone().map(Value::from).as_ref()),
            );
        }
        if draft.external_key != old.external_key {
            let as_value = |key: &Option<String>| key.clone().map(Value::from);
            let entry = change(as_value(&old.external_key).as_ref(), as_value(&draft.external_key).as_ref());
            changed.insert(self.shape.kind.external_key.to_owned(), entry);
        }
        let now = tx.now();
        values::stamp(self.shape, &mut data, old.created_at, now, &old.created_by);
        computed::formulas(self.shape, &mut data, &mut errors);
        let mut row = old.clone();
        row.title = values::title(self.shape, &data);
        row.data = sized(&data)?;
        row.computed_errors = compute::stored(&errors);
        row.position = draft.position;
        row.external_key = draft.external_key;
        row.version += 1;
        row.updated_by = self.author.cause.actor.clone();
        row.updated_at = now;
        if row.external_key == old.external_key {
            store(tx, &row)?;
        } else {
            store_with_key(tx, self.shape, &row)?;
        }
        let others = links::point(tx, self, &row, references)?;
        if others.is_some() {
            row = self.refresh(tx, row, Extent::Bounded)?;
            data = row.values()?;
            // What links decide is known by now. Of relations themselves it is known in full from before.
            for (key, entry) in differences(self.shape, &before, &data) {
                changed.entry(key).or_insert(entry);
            }
        }
        let (old_record, record) = (old.record(&before), row.record(&data));
        keys::reindex(tx, self.shape, Some(old_record), Some(record))?;
        search::reindex(tx, self.shape, Some(old_record), Some(record))?;
        self.publish(tx, &row, Action::Updated, &changed)?;
        let renewed = self.renew_all(tx, others.unwrap_or_default(), Action::Updated)?;
        if self.spread(tx, row.id, &changed)? || renewed {
            // What this item computes from others may have come back to it.
            row = live(tx, self.shape, row.id)?;
        }
        Ok(Written { row, changed: true })
    }

    /// Raises the version of a live, locked item whose links were changed, brings its own values and then the `others`
    /// that the change concerns up to date.
    ///
    /// # Errors
    /// `duplicate_value`, `validation_error`, or the database's.
    pub fn relinked(
        &self,
        tx: &mut Tx,
        old: &ItemRow,
        others: Vec<(CollectionId, ItemId)>,
        action: Action,
    ) -> Result<()> {
        let row = self.stamped(tx, old, old.values()?)?;
        store(tx, &row)?;
        let row = self.refresh(tx, row, Extent::Bounded)?;
        let changed = self.settle(tx, old, &row, action)?;
        self.renew_all(tx, others, action)?;
        self.spread(tx, row.id, &changed)?;
        Ok(())
    }

    /// Brings one live item up to date and gives what changed, by field; nothing that looks at it is touched. With an
    /// `action` the activity log and an event name it.
    ///
    /// # Errors
    /// The database's.
    pub fn renew(
        &self,
        tx: &mut Tx,
        id: ItemId,
        extent: Extent,
        action: Option<Action>,
    ) -> Result<Option<Changes>> {
        lock(tx, id)?;
        let Some(old) = find(tx, self.shape, id)?.filter(|row| row.trashed_at.is_none()) else {
            return Ok(None);
        };
        let row = match self.refresh(tx, old.clone(), extent) {
            // Nobody who writes elsewhere can do anything about it: what is computed of this item stays as it was.
            Err(error) if error.code() == Code::ValidationError => {
                tracing::warn!(item = id.0, "an item has no room for what is computed of it");
                return Ok(None);
            }
            refreshed => refreshed?,
        };
        match action {
            Some(action) => self.settle(tx, &old, &row, action).map(Some),
            None => self.reindex(tx, &old, &row).map(Some),
        }
    }

    /// Brings the indexes up to date after a row was refreshed, and gives what changed.
    fn reindex(&self, tx: &mut Tx, old: &ItemRow, row: &ItemRow) -> Result<Changes> {
        let (before, data) = (old.values()?, row.values()?);
        let mut changed = differences(self.shape, &before, &data);
        if row.more != old.more {
            let as_value = |row: &ItemRow| row.more.as_ref().and_then(|more| more.parse::<Value>().ok());
            changed.insert("has_more".to_owned(), change(as_value(old).as_ref(), as_value(row).as_ref()));
        }
        let (old_record, record) = (old.record(&before), row.record(&data));
        keys::reindex(tx, self.shape, Some(old_record), Some(record))?;
        search::reindex(tx, self.shape, Some(old_record), Some(record))?;
        Ok(changed)
    }

    /// The same, published where anything changed.
    fn settle(&self, tx: &mut Tx, old: &ItemRow, row: &ItemRow, action: Action) -> Result<Changes> {
        let changed = self.reindex(tx, old, row)?;
        if !changed.is_empty() || row.version != old.version {
            self.publish(tx, row, action, &changed)?;
        }
        Ok(changed)
    }

    /// Changes something of a live, locked item that is no value and no link, such as its lock.
    ///
    /// # Errors
    /// The database's.
    pub fn touch(
        &self,
        tx: &mut Tx,
        old: &ItemRow,
        action: Action,
        change: impl FnOnce(&mut ItemRow, Timestamp),
    ) -> Result<ItemRow> {
        let mut row = self.stamped(tx, old, old.values()?)?;
        let now = row.updated_at;
        change(&mut row, now);
        store(tx, &row)?;
        let changed = self.reindex(tx, old, &row)?;
        self.publish(tx, &row, action, &changed)?;
        if self.spread(tx, row.id, &changed)? {
            row = live(tx, self.shape, row.id)?;
        }
        Ok(row)
    }

    /// The next version of a row whose values are `data`: who changed it and when.
    pub(crate) fn stamped(&self, tx: &Tx, old: &ItemRow, mut data: Data) -> Result<ItemRow> {
        let mut row = old.clone();
        row.version += 1;
        row.updated_by = self.author.cause.actor.clone();
        row.updated_at = tx.now();
        if self.shape.fields.iter().any(|field| field.kind == FieldType::UpdatedAt) {
            values::stamp(self.shape, &mut data, old.created_at, row.updated_at, &old.created_by);
            let mut errors = old.errors()?;
            computed::formulas(self.shape, &mut data, &mut errors);
            row.title = values::title(self.shape, &data);
            row.data = sized(&data)?;
            row.computed_errors = compute::stored(&errors);
        }
        Ok(row)
    }

    /// Computes a row's own values anew and stores them, without publishing it.
    pub fn refresh(&self, tx: &mut Tx, mut row: ItemRow, extent: Extent) -> Result<ItemRow> {
        let before = row.values()?;
        let mut data = before.clone();
        let more = links::inline(tx, self.shape, &row, &mut data)?;
        let mut errors = row.errors()?;
        compute::complete(tx, self.shape, Some(&row), extent, &mut data, &mut errors)?;
        computed::order(self.shape, &mut data);
        let computed_errors = compute::stored(&errors);
        if data != before || more != row.more || computed_errors != row.computed_errors {
            row.title = values::title(self.shape, &data);
            row.data = sized(&data)?;
            row.more = more;
            row.computed_errors = computed_errors;
            store(tx, &row)?;
        }
        Ok(row)
    }

    /// Writes the activity entry and the event of a change.
    ///
    /// # Errors
    /// The database's.
    pub fn publish(&self, tx: &mut Tx, row: &ItemRow, action: Action, changed: &Changes) -> Result<()> {
        activity::record(tx, self.author, row.collection_id, Some(row.id), action, changed)?;
        announce(tx, self.shape, self.author, row, action, changed)
    }
}

/// Emits the event of a change.
///
/// # Errors
/// When its data cannot be JSON.
pub(super) fn announce(
    tx: &mut Tx,
    shape: &Shape,
    author: &Author,
    row: &ItemRow,
    action: Action,
    changed: &Changes,
) -> Result<()> {
    if !author.emits {
        return Ok(());
    }
    (shape.kind.publish)(tx, author, &RecordChange { shape, row, action, changed })
}

/// The form in which a caller's own key is kept, so that keys which look the same are the same: without white space around
/// it and without characters that nobody sees.
///
/// # Errors
/// `validation_error` where nothing is left of it.
fn own_key(shape: &Shape, key: &str) -> Result<String> {
    let bare = fields::invisible::bare(key);
    if bare.is_empty() {
        return Err(Error::invalid(shape.kind.external_key, "must have a character that can be seen"));
    }
    Ok(bare)
}

/// Stores all that may change of a row. Listed by column, because every update of an item runs this statement: what never
/// changes is not written.
pub fn store(tx: &mut Tx, row: &ItemRow) -> Result<()> {
    let statement = CachedChange(diesel::update(items::table.find(row.id)).set((
        items::collection_id.eq(row.collection_id),
        items::data.eq(&row.data),
        items::title.eq(&row.title),
        items::more.eq(&row.more),
        items::computed_errors.eq(&row.computed_errors),
        items::position.eq(&row.position),
        items::external_key.eq(&row.external_key),
        items::locked_by.eq(&row.locked_by),
        items::locked_at.eq(row.locked_at),
        items::version.eq(row.version),
        items::updated_by.eq(&row.updated_by),
        items::updated_at.eq(row.updated_at),
        items::trashed_at.eq(row.trashed_at),
    )));
    each!(tx.connection(), |connection| statement.run(connection))?;
    Ok(())
}

/// What differs between the values of an item before and after, by field. Times of change are no change.
pub fn differences(shape: &Shape, before: &Data, after: &Data) -> Changes {
    let mut changed = Changes::new();
    for field in shape.fields.iter().filter(|field| !field.hidden) {
        let (old, new) = (before.get(&field.key), after.get(&field.key));
        if old != new && field.kind != FieldType::UpdatedAt {
            changed.insert(field.key.clone(), change(old, new));
        }
    }
    changed
}

/// Whether values differ that callers never see.
fn differ_unseen(shape: &Shape, before: &Data, after: &Data) -> bool {
    let mut hidden = shape.fields.iter().filter(|field| field.hidden);
    hidden.any(|field| before.get(&field.key) != after.get(&field.key))
}

pub(super) fn sized(data: &Data) -> Result<JsonText> {
    let text = JsonText::of(data);
    if text.as_str().len() > MOST_DATA {
        return Err(Error::invalid("data", "must have at most 256 KB of JSON"));
    }
    Ok(text)
}

/// Stores a row whose external key is new to the live items. Another transaction may have taken the key and not be
/// through yet, which only the index knows.
///
/// # Errors
/// `duplicate_value`.
pub(crate) fn store_with_key(tx: &mut Tx, shape: &Shape, row: &ItemRow) -> Result<()> {
    use diesel::result::{DatabaseErrorKind::UniqueViolation, Error as Diesel};
    let Some(key) = row.external_key.as_deref() else { return store(tx, row) };
    let Err(error) = tx.savepoint(|tx| store(tx, row)) else { return Ok(()) };
    match error.cause().and_then(|cause| cause.downcast_ref::<Diesel>()) {
        Some(Diesel::DatabaseError(UniqueViolation, _)) => {
            Err(taken_key(shape, holder_of_key(tx, shape, key)?))
        }
        _ => Err(error),
    }
}

pub(super) fn taken_key(shape: &Shape, holder: Option<ItemId>) -> Error {
    let (param, noun) = (shape.kind.external_key, shape.kind.noun);
    Error::duplicate(param, format!("Another {noun} has this `{param}`."), holder)
}
