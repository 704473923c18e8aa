//! Items that are yet to be stored, complete but for what only the transaction that stores them knows.

use crate::Author;
use crate::activity::short_created;
use crate::compute;
use crate::rows::keys::{self, IndexedDigest};
use crate::rows::row::ItemRow;
use crate::rows::values;
use crate::rows::write::{Draft, Writer, sized};
use crate::search;
use crate::shape::{Index, IndexKind, Shape, Shapes};
use fields::computed;
use fields::terms::Terms;
use fields::{ComputedErrors, Data, Field, FieldType, Subject};
use model::{Caller, CollectionId, IndexId, ItemId, JsonText, Result, Timestamp};

/// An item that was made ready before the transaction that stores it, by the shape that its set had then.
#[derive(Debug)]
pub struct PreparedItem {
    shape_version: i64,
    creation: Creation,
}

impl PreparedItem {
    /// Makes an item ready by the latest shape of its set. `None` if that is not known, or the item has to be made by the
    /// transaction, which also says what is wrong with it.
    pub fn of(
        shapes: &Shapes,
        caller: &Caller,
        set: CollectionId,
        draft: impl FnOnce(&Shape) -> Result<Draft>,
    ) -> Option<Self> {
        let shape = shapes.latest(set).filter(|shape| caller.workspace_id() == shape.workspace)?;
        let author = Author::of(caller);
        let writer = Writer { shapes, shape: &shape, author: &author };
        let creation = writer.prepare(draft(&shape).ok()?).ok()?;
        Some(Self { shape_version: shape.version, creation })
    }

    /// The item, if all of it was made ready and the set still has the shape by which it was made.
    pub fn ready(self, shape: &Shape) -> Option<NewItem> {
        match self.creation {
            Creation::Ready(item) if self.shape_version == shape.version => Some(*item),
            _ => None,
        }
    }

    /// What was made ready, if it was and the set still has the shape by which it was made; else the draft.
    ///
    /// # Errors
    /// Those of `draft`.
    pub fn or_draft(
        prepared: Option<Self>,
        shape: &Shape,
        draft: impl FnOnce(&Shape) -> Result<Draft>,
    ) -> Result<Creation> {
        match prepared.filter(|prepared| prepared.shape_version == shape.version) {
            Some(prepared) => Ok(prepared.creation),
            None => draft(shape).map(Creation::Draft),
        }
    }
}

/// An item to create: as a draft, or with all that can be made of a draft before the transaction.
#[derive(Debug)]
pub enum Creation {
    /// Its values.
    Draft(Draft),
    /// The item, as [`Writer::prepare`] gives it.
    Ready(Box<NewItem>),
}

impl Creation {
    /// The values of a draft.
    pub(crate) fn draft_values(&mut self) -> Option<&mut Data> {
        match self {
            Self::Draft(draft) => Some(&mut draft.data),
            Self::Ready(_) => None,
        }
    }
}

/// An item without its id and its dates, with all that belongs to it.
#[derive(Debug)]
pub struct NewItem {
    pub(crate) row: ItemRow,
    pub(crate) data: Data,
    /// What no other item may have.
    pub(crate) unique: Vec<IndexedDigest>,
    /// Its keys in those indexes whose keys hold neither an id nor a date.
    pub(crate) keys: Vec<(IndexId, Vec<u8>)>,
    /// Its terms; `None` where it has none.
    pub(crate) terms: Option<Terms>,
    /// What its activity entry says of it.
    pub(crate) entry: JsonText,
}

impl NewItem {
    /// Whether it has a key of the caller's own, which no other item of its set may have.
    pub fn has_external_key(&self) -> bool {
        self.row.external_key.is_some()
    }

    pub(crate) fn of(shape: &Shape, row: ItemRow, data: Data) -> Self {
        let record = row.record(&data);
        let (mut unique, mut item_keys) = (Vec::new(), Vec::new());
        for index in shape.indexes.iter().filter(|index| index.is_maintained()) {
            if index.kind == IndexKind::Unique {
                unique
                    .extend(keys::digests(shape, index, &data).into_iter().map(|digest| (index.id, digest)));
            } else if !waits_for_row(index) {
                item_keys.extend(keys::index_keys(record, shape, index).into_iter().map(|k| (index.id, k)));
            }
        }
        let terms = search::terms(shape, record);
        let entry = short_created(shape, &data);
        Self { row, data, unique, keys: item_keys, terms, entry }
    }
}

/// Whether the keys of an index hold what an item has only when it is stored. Composite keys end with the id.
pub(crate) fn waits_for_row(index: &Index) -> bool {
    index.kind == IndexKind::Composite
        || index.parts.iter().any(|part| matches!(part.subject, Subject::System(_)))
}

impl Writer<'_> {
    /// Makes as much of a draft as can be made without the database, on any thread. The shape must still be the same
    /// when the item is [created](Self::create_all).
    ///
    /// # Errors
    /// `validation_error` for values that the kind of records refuses.
    pub fn prepare(&self, draft: Draft) -> Result<Creation> {
        let waits = |field: &Field| waits_for_transaction(field, &draft.data);
        if self.shape.fields.iter().any(waits) {
            return Ok(Creation::Draft(draft));
        }
        let mut draft = draft;
        self.complete(&mut draft, None)?;
        let Draft { mut data, external_key, position } = draft;
        let mut errors = ComputedErrors::new();
        computed::derive(self.shape, &mut data, &mut errors);
        let row = self.new_row(&data, &errors, position, external_key)?;
        Ok(Creation::Ready(Box::new(NewItem::of(self.shape, row, data))))
    }

    /// The row of an item with these values, without its id and its dates.
    pub(crate) fn new_row(
        &self,
        data: &Data,
        errors: &ComputedErrors,
        position: Option<String>,
        external_key: Option<String>,
    ) -> Result<ItemRow> {
        let actor = &self.author.cause.actor;
        Ok(ItemRow {
            id: ItemId(0),
            workspace_id: self.author.workspace,
            collection_id: self.shape.collection,
            title: values::title(self.shape, data),
            data: sized(data)?,
            more: None,
            computed_errors: compute::stored(errors),
            position,
            external_key,
            comment_count: 0,
            locked_by: None,
            locked_at: None,
            version: 1,
            created_by: actor.clone(),
            updated_by: actor.clone(),
            created_at: Timestamp::from_millis(0),
            updated_at: Timestamp::from_millis(0),
            trashed_at: None,
        })
    }
}

/// Whether a field has a value that only the transaction can give or check.
fn waits_for_transaction(field: &Field, data: &Data) -> bool {
    use FieldType::{AutoNumber, CreatedAt, CreatedBy, Lookup, Rollup, UpdatedAt};
    match field.kind {
        AutoNumber | Rollup | Lookup | CreatedAt | UpdatedAt | CreatedBy => true,
        kind => kind.is_reference() && data.contains_key(&field.key),
    }
}
