//! Preparation of rows on the reading thread while earlier rows are written, to keep the transaction short. If the
//! fields have changed since the preparation, the transaction repeats it.

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

/// A running import.
pub(super) struct Task {
    /// The kind of records to write.
    pub(super) target: Arc<dyn Target>,
    pub(super) id: ImportId,
    pub(super) collection: CollectionId,
    pub(super) settings: ImportSettings,
    pub(super) source: ImportSource,
    pub(super) author: Author,
    /// The shape used for the previous rows.
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

    /// Prepares further rows for this shape. A dry run needs no preparation.
    pub(super) fn prepare_for(&self, shape: &Arc<Shape>) {
        if !self.settings.dry_run {
            *self.shape.lock().unwrap_or_else(PoisonError::into_inner) = Some(shape.clone());
        }
    }

    fn shape(&self) -> Option<Arc<Shape>> {
        self.shape.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A batch of records that are written together, already converted.
#[derive(Debug)]
pub(super) struct Batch {
    /// The position before the first record. The batch applies only if the import is at this position.
    pub(super) from: i64,
    /// The records with their values.
    pub(super) records: Vec<(Record, Result<RowValues, RowProblem>)>,
    /// The prepared rows, with the version of the shape that they are valid for. The first attempt to write the batch
    /// takes them.
    prepared: Mutex<Option<(i64, Vec<PreparedRow>)>>,
    /// The position after the last record.
    pub(super) to: i64,
}

/// A prepared row. The transaction computes what is missing, and reports errors.
#[derive(Debug, Default)]
pub(super) struct PreparedRow {
    /// The keys to match an item by, if rows are matched and this row has values to match.
    pub(super) wanted: Option<Lookup>,
    /// The item to create if no item matches.
    pub(super) creation: Option<Creation>,
}

impl Batch {
    /// Converts and prepares records.
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

    /// Returns the values of the rows.
    pub(super) fn values(&self) -> impl Iterator<Item = &Data> + Clone {
        self.records.iter().filter_map(|(_, said)| said.as_ref().ok()).map(|said| &said.data)
    }

    /// Returns the prepared rows, if they are valid for the shape. Only the first call gets them.
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

/// Returns the keys to match an item by, or `None` if the row contains none and is for a new item.
///
/// # Errors
/// `validation_error` if a value to match by is missing or invalid.
pub(super) fn wanted(matcher: &Matcher, shape: &Shape, said: &RowValues) -> Result<Option<Lookup>> {
    if !matcher.is_identified(shape, &said.data, said.external_key.as_deref()) {
        return Ok(None);
    }
    matcher.wanted(shape, &said.data, said.external_key.as_deref(), Mode::Typecast).map(Some)
}

/// Returns the draft of a new item, or of `old` with the values of a row.
///
/// # Errors
/// `validation_error` for invalid values.
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

/// Returns the values that a row sets on an item with the values `before`.
fn given(shape: &Shape, settings: &ImportSettings, before: Option<&Data>, said: &RowValues) -> Data {
    let mut given = said.data.clone();
    // An empty string counts as missing.
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
                // The merge reports a value that is not a list of tags.
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
