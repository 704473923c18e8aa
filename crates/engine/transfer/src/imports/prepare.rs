//! What is made of rows on the thread that reads them, while the rows before are written: the transaction has the less to
//! do. All of it can be made by the transaction as well, which does so where the fields have changed since.

use super::model::{ImportRow, ImportSettings, ImportSource, TagsMode};
use super::plan::{self, RowProblem, RowValues};
use super::reader::{self, Record};
use super::target::Target;
use fields::value::{self, Mode};
use fields::{Data, FieldType};
use model::{CollectionId, ImportId, Result};
use records::Author;
use records::rows::matching::{Lookup, Matcher};
use records::rows::{Creation, Draft, ItemRow, Missing, Writer, merge};
use records::shape::{Shape, Shapes};
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// An import at work.
pub(super) struct Task {
    /// Whose records it writes.
    pub(super) target: Arc<dyn Target>,
    pub(super) id: ImportId,
    pub(super) collection: CollectionId,
    pub(super) settings: ImportSettings,
    pub(super) source: ImportSource,
    pub(super) author: Author,
    /// The shape that the rows before were written by.
    shape: Mutex<Option<Arc<Shape>>>,
}

impl Task {
    pub(super) fn new(
        row: &ImportRow,
        settings: ImportSettings,
        source: ImportSource,
        author: Author,
        target: Arc<dyn Target>,
    ) -> Self {
        let shape = Mutex::new(None);
        Self { target, id: row.id.clone(), collection: row.collection_id, settings, source, author, shape }
    }

    /// Has rows made ready for this shape from here on. A dry run writes none.
    pub(super) fn prepare_for(&self, shape: &Arc<Shape>) {
        if !self.settings.dry_run {
            *self.shape.lock().unwrap_or_else(PoisonError::into_inner) = Some(shape.clone());
        }
    }

    fn shape(&self) -> Option<Arc<Shape>> {
        self.shape.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Records that are written together, taken apart.
#[derive(Debug)]
pub(super) struct Batch {
    /// The place before the first record: where the import must stand for this batch to be the next.
    pub(super) from: i64,
    /// The records, each with what it says.
    pub(super) records: Vec<(Record, Result<RowValues, RowProblem>)>,
    /// What was made of each, and the version of the shape for which that holds. The first attempt to write them takes it.
    prepared: Mutex<Option<(i64, Vec<PreparedRow>)>>,
    /// The place behind the last record.
    pub(super) to: i64,
}

/// What was made of a row. What is missing is made by the transaction, and so is the refusal of a row that is wrong.
#[derive(Debug, Default)]
pub(super) struct PreparedRow {
    /// What it says of its item, where rows are matched with items and it says anything.
    pub(super) wanted: Option<Lookup>,
    /// The item that it creates if there is none.
    pub(super) creation: Option<Creation>,
}

impl Batch {
    /// Takes records apart, and makes them ready.
    pub(super) fn of(task: &Task, shapes: &Shapes, read: reader::ReadBatch) -> Self {
        let said = |record| {
            let said = plan::said(&*task.target, &task.source, &record);
            (record, said)
        };
        let records: Vec<_> = read.records.into_iter().map(said).collect();
        let prepared = task.shape().map(|shape| {
            let matcher = Some(&task.settings.match_on).filter(|on| !on.is_empty());
            let matcher = matcher.and_then(|on| Matcher::new(&shape, on).ok());
            let writer = Writer { shapes, shape: &shape, author: &task.author };
            let row = |said: &RowValues| PreparedRow::of(task, &writer, matcher.as_ref(), said);
            let rows = records.iter().map(|(_, said)| said.as_ref().map(row).unwrap_or_default()).collect();
            (shape.version, rows)
        });
        Self { from: read.from, records, prepared: Mutex::new(prepared), to: read.to }
    }

    /// The values of the rows.
    pub(super) fn values(&self) -> impl Iterator<Item = &Data> + Clone {
        self.records.iter().filter_map(|(_, said)| said.as_ref().ok()).map(|said| &said.data)
    }

    /// What was made of each row, for the first who asks and where it holds for the shape.
    pub(super) fn take_prepared(&self, shape: &Shape) -> Vec<PreparedRow> {
        let prepared = self.prepared.lock().unwrap_or_else(PoisonError::into_inner).take();
        let prepared = prepared.filter(|(version, _)| *version == shape.version);
        let mut rows = prepared.map(|(_, rows)| rows).unwrap_or_default();
        rows.resize_with(self.records.len(), PreparedRow::default);
        rows
    }
}

impl PreparedRow {
    fn of(task: &Task, writer: &Writer<'_>, matcher: Option<&Matcher>, said: &RowValues) -> Self {
        if !said.problems.is_empty() {
            return Self::default();
        }
        let wanted = matcher.and_then(|matcher| wanted(matcher, writer.shape, said).ok().flatten());
        let draft = draft(writer.shape, &task.settings, None, said);
        let creation = task
            .target
            .check(writer.shape, &said.statements)
            .and(draft)
            .and_then(|draft| writer.prepare(draft));
        Self { wanted, creation: creation.ok() }
    }
}

/// What a row says of its item; `None` where it says nothing that identifies one, so that it is for a new one.
///
/// # Errors
/// `validation_error` where a value is missing or does not fit its field.
pub(super) fn wanted(matcher: &Matcher, shape: &Shape, said: &RowValues) -> Result<Option<Lookup>> {
    if !matcher.is_identified(shape, &said.data, said.external_key.as_deref()) {
        return Ok(None);
    }
    matcher.wanted(shape, &said.data, said.external_key.as_deref(), Mode::Typecast).map(Some)
}

/// What an item is to become: a new one, or `old` with what a row says of it.
///
/// # Errors
/// `validation_error` for values that do not fit their fields.
pub(super) fn draft(
    shape: &Shape,
    settings: &ImportSettings,
    old: Option<&ItemRow>,
    said: &RowValues,
) -> Result<Draft> {
    let (before, missing) = match old {
        Some(old) => (Some(old.values()?), Missing::Keep),
        None => (None, Missing::Default),
    };
    let given = given(shape, settings, before.as_ref(), said);
    Ok(Draft {
        data: merge(shape, before.as_ref(), &given, missing, Mode::Typecast, "")?,
        external_key: said.external_key.clone().or_else(|| old?.external_key.clone()),
        position: old.and_then(|old| old.position.clone()),
    })
}

/// The values that a row gives to an item with these values.
fn given(shape: &Shape, settings: &ImportSettings, before: Option<&Data>, said: &RowValues) -> Data {
    let mut given = said.data.clone();
    // A text that is empty says no more than none.
    given.retain(|key, value| {
        value.as_str() != Some("") || before.is_none_or(|before| before.contains_key(key))
    });
    for field in &shape.fields {
        let Some(value) = given.get_mut(&field.key) else { continue };
        match field.kind {
            FieldType::Json if said.is_typed => {
                if let Some(text) = value.as_str() {
                    *value = Value::from(Value::from(text).to_string());
                }
            }
            FieldType::Tags if settings.tags == TagsMode::Add => {
                let stored = before.and_then(|before| before.get(&field.key)).and_then(Value::as_array);
                let Some(stored) = stored else { continue };
                // What is no list of tags is for the merge to refuse.
                let Ok(added) = value::check(field, value, Mode::Typecast) else { continue };
                let mut tags = stored.clone();
                let added = added.as_ref().and_then(Value::as_array).into_iter().flatten();
                tags.extend(added.filter(|tag| !stored.contains(tag)).cloned());
                *value = tags.into();
            }
            _ => {}
        }
    }
    given
}
