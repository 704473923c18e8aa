//! Records become items: one stretch of a file, in one transaction with how far the import is.

use super::model::{ImportError, ImportRow, ImportSettings, ImportSource, ImportStatus, OnError, RowError};
use super::plan::{self, Said, Wrong};
use super::queries::{self, Rejected};
use super::reader::{Batch, Record};
use crate::author::Author;
use crate::items::matching::{Found, Matcher, OnMatch, Table, Wanted};
use crate::items::{Draft, Facts, ItemRow, Missing, Writer, locked, merge};
use crate::shape::{self, IndexKind, Shape, Shapes};
use crate::value::Mode;
use model::{Code, CollectionId, Error, ImportId, ItemId, JsonText, Result};
use std::collections::HashSet;
use std::mem;
use std::sync::{Mutex, PoisonError};
use store::Tx;

/// An import at work.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) id: ImportId,
    pub(super) collection: CollectionId,
    pub(super) settings: ImportSettings,
    pub(super) source: ImportSource,
    pub(super) author: Author,
}

/// What became of a stretch.
#[derive(Debug)]
pub(super) enum Taken {
    /// It is written; what a dry run has to remember of it, and what the next stretch can match by.
    On(Vec<Vec<u8>>, Table),
    /// It is written, and the import is to end here.
    Enough,
    /// Somebody else goes on with the import.
    Lost,
    /// The import cannot go on.
    Over(ImportStatus, ImportError),
}

/// What a dry run remembers of earlier stretches, whose items are not there: the digests that must be unique.
pub(super) type Seen = HashSet<Vec<u8>>;

/// What became of a row.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Created,
    Updated,
    Unchanged,
    Skipped,
}

/// Why nothing became of a row.
enum Refusal {
    /// Something is wrong with it.
    Row(Vec<Wrong>),
    /// The service failed.
    Service(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self::Service(error)
    }
}

impl From<Wrong> for Refusal {
    fn from(wrong: Wrong) -> Self {
        Self::Row(vec![wrong])
    }
}

/// Writes a stretch of records and how far that brings the import, or nothing. An attempt takes the table of the stretch
/// before for good: what it learns is true only if it is committed.
///
/// # Errors
/// When the service fails.
pub(super) fn take(
    tx: &mut Tx,
    shapes: &Shapes,
    task: &Task,
    batch: &Batch,
    seen: &Seen,
    table: &Mutex<Table>,
) -> Result<Taken> {
    let Some(mut row) = queries::locked(tx, &task.id)? else { return Ok(Taken::Lost) };
    if row.status()? != ImportStatus::Running || row.bytes_done != batch.from {
        return Ok(Taken::Lost);
    }
    let shape = match shape::for_write(tx, shapes, task.author.workspace, task.collection) {
        Ok(shape) => shape,
        Err(error) => return over(error),
    };
    let mut stretch = Stretch {
        task,
        shapes,
        shape: &shape,
        row: &mut row,
        seen,
        table: mem::take(&mut *table.lock().unwrap_or_else(PoisonError::into_inner)),
        fresh: Vec::new(),
        rejected: Vec::new(),
    };
    let enough = if task.settings.dry_run {
        let mut done = None;
        let undone: Result<()> = tx.savepoint(|tx| {
            done = Some(stretch.write(tx, batch)?);
            // Whatever was written is undone, and what was found out is kept.
            Err(Error::new(Code::InvalidState, "a dry run"))
        });
        match (done, undone) {
            (Some(done), _) => done,
            (None, Err(error)) => return expensive(error),
            (None, Ok(())) => false,
        }
    } else {
        match stretch.write(tx, batch) {
            Ok(enough) => enough,
            Err(error) => return expensive(error),
        }
    };
    let Stretch { fresh, rejected, table, .. } = stretch;
    row.bytes_done = batch.to;
    queries::advance(tx, &row)?;
    queries::reject(tx, &rejected)?;
    Ok(if enough { Taken::Enough } else { Taken::On(fresh, table) })
}

/// Why a collection takes no more rows.
fn over(error: Error) -> Result<Taken> {
    let ended = |status, code: &str| {
        let message = error.message().to_owned();
        Ok(Taken::Over(status, ImportError { code: code.to_owned(), message }))
    };
    match error.code() {
        Code::NotFound => ended(ImportStatus::Cancelled, "collection_deleted"),
        Code::InvalidState => ended(ImportStatus::Failed, "collection_archived"),
        _ => Err(error),
    }
}

/// A collection that is too large to match on without an index will not be smaller next time.
fn expensive(error: Error) -> Result<Taken> {
    if error.code() != Code::QueryTooExpensive {
        return Err(error);
    }
    let reason = ImportError { code: error.code().as_str().to_owned(), message: error.message().to_owned() };
    Ok(Taken::Over(ImportStatus::Failed, reason))
}

struct Stretch<'a> {
    task: &'a Task,
    shapes: &'a Shapes,
    shape: &'a Shape,
    row: &'a mut ImportRow,
    seen: &'a Seen,
    table: Table,
    fresh: Vec<Vec<u8>>,
    rejected: Vec<Rejected>,
}

impl Stretch<'_> {
    /// Writes the records; `true` where so many failed that the import is to end.
    fn write(&mut self, tx: &mut Tx, batch: &Batch) -> Result<bool> {
        let (task, shape) = (self.task, self.shape);
        let writer = Writer { shapes: self.shapes, shape, author: &task.author };
        let on = &task.settings.match_on;
        let table = mem::take(&mut self.table);
        let mut matcher = if on.is_empty() { None } else { Some(Matcher::with(shape, on, table)?) };
        for record in &batch.records {
            self.row.rows_done += 1;
            match self.one(tx, &writer, matcher.as_mut(), record) {
                Ok(Outcome::Created) => self.row.created_count += 1,
                Ok(Outcome::Updated) => self.row.updated_count += 1,
                Ok(Outcome::Unchanged) => self.row.unchanged_count += 1,
                Ok(Outcome::Skipped) => self.row.skipped_count += 1,
                Err(Refusal::Service(error)) => return Err(error),
                Err(Refusal::Row(wrong)) => {
                    if self.reject(record, wrong) {
                        return Ok(true);
                    }
                }
            }
        }
        self.table = matcher.map(Matcher::into_table).unwrap_or_default();
        Ok(false)
    }

    fn reject(&mut self, record: &Record, wrong: Vec<Wrong>) -> bool {
        let number = self.row.rows_done;
        self.row.failed_count += 1;
        let errors: Vec<RowError> = wrong.into_iter().map(|wrong| wrong.at(number)).collect();
        self.rejected.push(Rejected {
            import_id: self.task.id.clone(),
            row_number: number,
            record: super::report::kept(&self.task.source, record),
            errors: JsonText::of(&errors),
        });
        let OnError::AbortAt(most) = self.task.settings.on_error else { return false };
        if self.row.failed_count < i64::from(most) {
            return false;
        }
        let message = format!("The import ended at row {number}: {most} rows could not be taken.");
        self.row.error = Some(JsonText::of(&ImportError { code: "too_many_errors".to_owned(), message }));
        true
    }

    fn one(
        &mut self,
        tx: &mut Tx,
        writer: &Writer<'_>,
        matcher: Option<&mut Matcher>,
        record: &Record,
    ) -> Result<Outcome, Refusal> {
        let said = plan::said(&self.task.source, record)?;
        let mut known = None;
        let mut found = Found::None;
        if let Some(matcher) = &matcher {
            let wanted = matcher.wanted(self.shape, &said.data, said.external_key.as_deref(), Mode::Typecast);
            known = Some(wanted.map_err(|error| self.refusal(record, error))?);
        }
        let mut matcher = matcher;
        if let (Some(matcher), Some(wanted)) = (matcher.as_mut(), &known) {
            if self.task.settings.dry_run && self.seen.contains(&digest(wanted)) {
                return self.matched_earlier();
            }
            found = matcher.find(tx, self.shape, wanted)?;
        }
        let on_match = self.task.settings.on_match;
        let existing = match found {
            Found::None => None,
            Found::One(_) if on_match == OnMatch::Skip => return Ok(Outcome::Skipped),
            Found::One(_) if on_match == OnMatch::Error => return Err(already_there().into()),
            Found::One(id) => Some(id),
            Found::Several(_) => {
                return Err(Wrong::row("ambiguous_match", "More than one item has these values.").into());
            }
        };
        let written = tx.savepoint(|tx| match existing {
            None => create(tx, writer, said),
            Some(id) => change(tx, writer, id, said),
        });
        match written {
            Ok((outcome, row)) => {
                if self.task.settings.dry_run {
                    self.remember(&row, known.as_ref())?;
                }
                if let (Some(matcher), Outcome::Created) = (matcher, outcome) {
                    matcher.note(self.shape, &row)?;
                }
                Ok(outcome)
            }
            Err(error) => Err(self.refusal(record, error)),
        }
    }

    /// What the collection refuses is the row's fault, anything else is ours.
    fn refusal(&self, record: &Record, error: Error) -> Refusal {
        if error.code().status() < 500 {
            Refusal::Row(plan::explained(&self.task.source, record, &error))
        } else {
            Refusal::Service(error)
        }
    }

    /// In a dry run, a row whose item an earlier stretch of the file would have made.
    fn matched_earlier(&self) -> Result<Outcome, Refusal> {
        match self.task.settings.on_match {
            OnMatch::Update => Ok(Outcome::Updated),
            OnMatch::Skip => Ok(Outcome::Skipped),
            OnMatch::Error => Err(already_there().into()),
        }
    }

    /// In a dry run, what later stretches could find or clash with, and whether this row clashes with an earlier one.
    fn remember(&mut self, row: &ItemRow, wanted: Option<&Wanted>) -> Result<(), Refusal> {
        let data = row.values()?;
        let facts = Facts { row, data: &data };
        for index in self.shape.indexes.iter().filter(|index| index.kind == IndexKind::Unique) {
            let Some(mut digest) = facts.digest(self.shape, index) else { continue };
            digest.extend(index.id.0.to_be_bytes());
            if self.seen.contains(&digest) {
                let message = "Another row of the file has the same value, which must be unique.";
                return Err(Wrong::row(Code::DuplicateValue.as_str(), message).into());
            }
            self.fresh.push(digest);
        }
        self.fresh.extend(wanted.map(digest));
        Ok(())
    }
}

/// What a dry run knows a row's item by.
fn digest(wanted: &Wanted) -> Vec<u8> {
    let text = match wanted {
        Wanted::Key(key) => key.clone(),
        Wanted::Values(data) => serde_json::to_string(data).unwrap_or_default(),
    };
    ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref().to_vec()
}

fn already_there() -> Wrong {
    Wrong::row("already_exists", "There is an item with these values already.")
}

fn create(tx: &mut Tx, writer: &Writer<'_>, said: Said) -> Result<(Outcome, ItemRow)> {
    let data = merge(writer.shape, None, &said.data, Missing::Default, Mode::Typecast, "")?;
    let row = writer.insert(tx, Draft { data, external_key: said.external_key, position: None })?;
    Ok((Outcome::Created, row))
}

fn change(tx: &mut Tx, writer: &Writer<'_>, found: ItemId, said: Said) -> Result<(Outcome, ItemRow)> {
    let old = locked(tx, writer.shape, found)?;
    let data = merge(writer.shape, Some(&old.values()?), &said.data, Missing::Keep, Mode::Typecast, "")?;
    let external_key = said.external_key.or_else(|| old.external_key.clone());
    let position = old.position.clone();
    let written = writer.update(tx, old, Draft { data, external_key, position })?;
    let outcome = if written.changed { Outcome::Updated } else { Outcome::Unchanged };
    Ok((outcome, written.row))
}
