//! Writing of records: a batch of a file, in one transaction with the progress of the import.

use super::batch_shape::{make_options, shape_for};
use super::mistakes::{self, Refusal, refusal};
use super::model::{AbortImport, ImportError, ImportRow, ImportStatus, OnError, OnInvalid, RowError};
use super::plan::{RowProblem, RowValues};
use super::prepare::{Batch, PreparedRow, Task, draft, wanted};
use super::queries::{self, FaultyRow};
use super::reader::Record;
use model::{Code, Error, ItemId, JsonText, Result};
use records::rows::matching::{Lookup, Match, MatchKey, Matcher, OnMatch, Table};
use records::rows::{Creation, Draft, ItemRow, Writer, locked};
use records::shape::{IndexKind, Shape, Shapes};
use std::collections::HashSet;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use store::Tx;

/// The result of writing a batch.
#[derive(Debug)]
pub(super) enum BatchOutcome {
    /// The batch is written. Contains the digests that a dry run must remember, and the lookup table for the next
    /// batch.
    On(Vec<Vec<u8>>, Table),
    /// The batch is written, and the import must end because of too many errors.
    Enough,
    /// Another runner has continued the import.
    Lost,
}

/// The unique digests of earlier batches in a dry run, whose items were rolled back.
pub(super) type SeenDigests = HashSet<Vec<u8>>;

/// The result of a row.
#[derive(Debug, Clone, Copy)]
enum Outcome {
    Created,
    Updated,
    Unchanged,
    Skipped,
}

/// The reason why a batch was not written.
enum Halt {
    /// A row was written in part, and rows have no savepoints.
    HalfWritten,
    /// The service failed.
    Service(Error),
}

impl Halt {
    /// Converts a refusal that concerns the whole batch.
    fn of(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Service(error) => Self::Service(error),
            Refusal::HalfWritten | Refusal::Row(_) => Self::HalfWritten,
        }
    }
}

/// State shared by the attempts to write a batch. Each attempt is a transaction, which is rolled back if it fails.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// The lookup table of items. An attempt takes it and does not return it on failure, because its new entries are
    /// valid only if they are committed.
    pub(super) table: Table,
    /// Whether each row is written in its own savepoint.
    holds_apart: bool,
    end: Option<AttemptEnd>,
}

/// The reason why an attempt was rolled back although the service did not fail.
#[derive(Debug)]
pub(super) enum AttemptEnd {
    /// A row failed after it was written in part. The next attempt uses savepoints.
    Repeat,
    /// The import cannot continue.
    Over(ImportStatus, ImportError),
}

impl Attempts {
    /// Creates the state for the next batch.
    pub(super) fn with(table: Table) -> Self {
        Self { table, ..Self::default() }
    }

    /// Returns why the last attempt was rolled back, if it was for one of these reasons.
    pub(super) fn take_end(&mut self) -> Option<AttemptEnd> {
        self.end.take()
    }

    fn end(&mut self, end: AttemptEnd) -> Error {
        self.holds_apart |= matches!(end, AttemptEnd::Repeat);
        self.end = Some(end);
        Error::new(Code::InvalidState, "nothing of the stretch is to stay")
    }
}

/// Writes a batch of records and the progress of the import, atomically.
///
/// The first attempt uses no savepoints, because a savepoint costs more than a typical row. If a row fails after it
/// was written in part, the batch is rolled back and repeated with a savepoint for each row.
///
/// # Errors
/// `internal_error` if the service fails, or an error that only rolls back the attempt; [`Attempts::take_end`] then
/// returns the reason.
pub(super) fn take(
    tx: &mut Tx,
    shapes: &Shapes,
    task: &Task,
    batch: &Batch,
    seen: &SeenDigests,
    attempts: &Mutex<Attempts>,
) -> Result<BatchOutcome> {
    let mut attempts = attempts.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(error) = make_options(tx, shapes, task, batch) {
        return Err(over(&mut attempts, error));
    }
    let shape = match shape_for(tx, shapes, task, batch) {
        Ok(shape) => shape,
        Err(error) => return Err(over(&mut attempts, error)),
    };
    task.prepare_for(&shape);
    let Some(row) = queries::locked(tx, &task.id)? else { return Ok(BatchOutcome::Lost) };
    // Another runner has written this batch already.
    if row.status != ImportStatus::Running || row.bytes_done != batch.from {
        return Ok(BatchOutcome::Lost);
    }
    let writer = Writer { shapes, shape: &shape, author: &task.author };
    let table = mem::take(&mut attempts.table);
    let mut stretch = match Stretch::new(task, &shape, &writer, row, seen, table) {
        Ok(stretch) => stretch,
        Err(error) => return Err(over(&mut attempts, error)),
    };
    stretch.holds_apart = attempts.holds_apart;
    let enough = match stretch.write_all(tx, batch) {
        Ok(enough) => enough,
        Err(Halt::Service(error)) => return Err(over(&mut attempts, error)),
        Err(Halt::HalfWritten) if stretch.holds_apart => {
            return Err(Error::internal("a row was not held apart"));
        }
        Err(Halt::HalfWritten) => return Err(attempts.end(AttemptEnd::Repeat)),
    };
    stretch.row.bytes_done = batch.to;
    queries::advance(tx, &stretch.row)?;
    queries::note(tx, &stretch.faulty)?;
    if enough {
        return Ok(BatchOutcome::Enough);
    }
    let fresh = mem::take(&mut stretch.fresh);
    Ok(BatchOutcome::On(fresh, stretch.into_table()))
}

/// Returns the error that rolls back an attempt. Records a reason that ends the import.
fn over(attempts: &mut Attempts, error: Error) -> Error {
    match ended(error) {
        Ok((status, reason)) => attempts.end(AttemptEnd::Over(status, reason)),
        Err(error) => error,
    }
}

/// Returns how the import ends if its collection accepts no more rows. A retry would not help.
///
/// # Errors
/// The error itself, if the service failed.
pub(super) fn ended(error: Error) -> Result<(ImportStatus, ImportError)> {
    let (status, code) = match error.code() {
        Code::NotFound => (ImportStatus::Cancelled, "collection_deleted"),
        Code::InvalidState => (ImportStatus::Failed, "collection_archived"),
        code if code.status() < 500 => (ImportStatus::Failed, code.as_str()),
        _ => return Err(error),
    };
    Ok((status, ImportError::new(code, error.message())))
}

/// Items of a batch that wait to be created together with the following ones.
#[derive(Default)]
struct Waiting {
    /// Each item, with the keys of its row.
    items: Vec<(Creation, Option<Lookup>)>,
    /// The values that they will be found by.
    spellings: HashSet<Vec<u8>>,
}

/// The keys of a row, and the item that it would create, as far as they are known.
type RowInHand = (Option<Result<Lookup>>, Option<Creation>);

struct Stretch<'a> {
    task: &'a Task,
    shape: &'a Arc<Shape>,
    writer: &'a Writer<'a>,
    row: ImportRow,
    seen: &'a SeenDigests,
    matcher: Option<Matcher>,
    /// Whether each row is written in its own savepoint.
    holds_apart: bool,
    waiting: Waiting,
    fresh: Vec<Vec<u8>>,
    faulty: Vec<FaultyRow>,
}

impl<'a> Stretch<'a> {
    /// # Errors
    /// `validation_error` if the fields to match by have changed and can no longer be used.
    fn new(
        task: &'a Task,
        shape: &'a Arc<Shape>,
        writer: &'a Writer<'a>,
        row: ImportRow,
        seen: &'a SeenDigests,
        table: Table,
    ) -> Result<Self> {
        let on = &task.settings.match_on;
        Ok(Self {
            task,
            shape,
            writer,
            row,
            seen,
            matcher: if on.is_empty() { None } else { Some(Matcher::with(writer.shape, on, table)?) },
            holds_apart: false,
            waiting: Waiting::default(),
            fresh: Vec::new(),
            faulty: Vec::new(),
        })
    }

    fn into_table(self) -> Table {
        self.matcher.map(Matcher::into_table).unwrap_or_default()
    }

    /// Writes the records. Returns `true` if the import must end because of too many errors. A dry run also writes
    /// them, and rolls that back.
    fn write_all(&mut self, tx: &mut Tx, batch: &Batch) -> Result<bool, Halt> {
        if !self.task.settings.dry_run {
            return self.rows(tx, batch);
        }
        // The savepoint always fails. This rolls the items back, but keeps the import's progress.
        let mut done = Err(Halt::Service(Error::internal("no row was looked at")));
        let undone = tx.savepoint(|tx| -> Result<()> {
            done = self.rows(tx, batch);
            Err(Error::new(Code::InvalidState, "nothing is to stay"))
        });
        match undone {
            Err(error) if error.code() != Code::InvalidState => Err(Halt::Service(error)),
            _ => done,
        }
    }

    fn rows(&mut self, tx: &mut Tx, batch: &Batch) -> Result<bool, Halt> {
        let enough = self.each_row(tx, batch)?;
        self.create_waiting(tx).map_err(Halt::of)?;
        Ok(enough)
    }

    fn each_row(&mut self, tx: &mut Tx, batch: &Batch) -> Result<bool, Halt> {
        let rows = self.prepared(tx, batch).map_err(Halt::Service)?;
        for ((record, said), (wanted, creation)) in batch.records.iter().zip(rows) {
            self.row.rows_done += 1;
            match self.one_or_less(tx, record, said.as_ref(), wanted, creation) {
                Ok(Outcome::Created) => self.row.created_count += 1,
                Ok(Outcome::Updated) => self.row.updated_count += 1,
                Ok(Outcome::Unchanged) => self.row.unchanged_count += 1,
                Ok(Outcome::Skipped) => self.row.skipped_count += 1,
                Err(Refusal::Row(wrong)) => {
                    if self.reject(record, wrong) {
                        return Ok(true);
                    }
                }
                Err(refusal) => return Err(Halt::of(refusal)),
            }
        }
        Ok(false)
    }

    /// Returns the keys and the new item of each row. Looks up the matching items of all rows with one query. The
    /// keys are `None` if rows are not matched or the row contains none.
    fn prepared(&mut self, tx: &mut Tx, batch: &Batch) -> Result<Vec<RowInHand>> {
        let shape = self.writer.shape;
        let matcher = self.matcher.as_ref();
        let rows = batch.records.iter().zip(batch.take_prepared(shape)).map(|((_, said), prepared)| {
            let PreparedRow { wanted: known, creation } = prepared;
            let said = || wanted(matcher?, shape, said.as_ref().ok()?).transpose();
            (known.map(Ok).or_else(said), creation)
        });
        let rows: Vec<_> = rows.collect();
        if let Some(matcher) = &mut self.matcher {
            let known: Vec<&Lookup> =
                rows.iter().filter_map(|(wanted, _)| wanted.as_ref()?.as_ref().ok()).collect();
            matcher.look_ahead(tx, shape, &known)?;
        }
        Ok(rows)
    }

    fn reject(&mut self, record: &Record, wrong: Vec<RowProblem>) -> bool {
        let number = self.row.rows_done;
        self.row.failed_count += 1;
        let errors: Vec<RowError> = wrong.into_iter().map(|wrong| wrong.at(number)).collect();
        self.faulty.push(FaultyRow {
            import_id: self.task.id.clone(),
            row_number: number,
            record: super::report::kept(self.writer.shape.kind, &self.task.source, record),
            errors: JsonText::of(&errors),
            is_rejected: true,
        });
        let OnError::AbortAt(AbortImport { abort_at: most }) = self.task.settings.on_error else {
            return false;
        };
        if self.row.failed_count < i64::from(most) {
            return false;
        }
        let message = format!("The import ended at row {number}: {most} rows were rejected.");
        self.row.error = Some(JsonText::of(&ImportError::new("too_many_errors", message)));
        true
    }

    /// Records the values that were skipped in a row.
    fn note_skipped(&mut self, wrong: Vec<RowProblem>) {
        let number = self.row.rows_done;
        self.row.skipped_value_count += i64::try_from(wrong.len()).unwrap_or(i64::MAX);
        let errors: Vec<RowError> = wrong.into_iter().map(|wrong| wrong.at(number)).collect();
        self.faulty.push(FaultyRow {
            import_id: self.task.id.clone(),
            row_number: number,
            record: JsonText::of(&Vec::<String>::new()),
            errors: JsonText::of(&errors),
            is_rejected: false,
        });
    }

    /// Imports a row. If invalid values may be skipped, retries without them.
    fn one_or_less(
        &mut self,
        tx: &mut Tx,
        record: &Record,
        said: Result<&RowValues, &RowProblem>,
        lookup: Option<Result<Lookup>>,
        creation: Option<Creation>,
    ) -> Result<Outcome, Refusal> {
        let mut refused = match (self.one(tx, record, said, lookup, creation), self.task.settings.on_invalid)
        {
            (Err(Refusal::Row(wrong)), OnInvalid::SkipValue) => wrong,
            (outcome, _) => return outcome,
        };
        let Ok(mut left) = said.cloned() else { return Err(Refusal::Row(refused)) };
        let mut skipped = Vec::new();
        // Each iteration removes at least one value.
        loop {
            let goes_on = left.skip(&self.task.source, &refused);
            skipped.append(&mut refused);
            if !goes_on {
                return Err(Refusal::Row(skipped));
            }
            let matcher = self.matcher.as_ref();
            let lookup = matcher.and_then(|matcher| wanted(matcher, self.shape, &left).transpose());
            match self.one(tx, record, Ok(&left), lookup, None) {
                Err(Refusal::Row(wrong)) => refused = wrong,
                Ok(outcome) => {
                    if !matches!(outcome, Outcome::Skipped) {
                        self.note_skipped(skipped);
                    }
                    return Ok(outcome);
                }
                refusal => return refusal,
            }
        }
    }

    fn one(
        &mut self,
        tx: &mut Tx,
        record: &Record,
        said: Result<&RowValues, &RowProblem>,
        wanted: Option<Result<Lookup>>,
        creation: Option<Creation>,
    ) -> Result<Outcome, Refusal> {
        let said = said.map_err(RowProblem::clone)?;
        let shape = self.writer.shape;
        let refused = |error| refusal(shape, &self.task.source, record, error);
        let wanted = match wanted.transpose() {
            Ok(wanted) if said.problems.is_empty() => wanted,
            wanted => return Err(mistakes::of_row(self.task, shape, record, said, wanted.err())),
        };
        let (Some(matcher), Some(wanted)) = (&self.matcher, wanted) else {
            return self.create(tx, record, said, None, creation);
        };
        // The item of an earlier batch was rolled back, so the matcher cannot find it.
        if self.task.settings.dry_run && self.seen.contains(&digest(&wanted.key)) {
            return self.matched_earlier();
        }
        // A waiting item may be the match of this row, so create it first.
        if matcher.spellings(shape, &wanted).iter().any(|text| self.waiting.spellings.contains(text)) {
            self.create_waiting(tx)?;
        }
        let found = self.matcher.as_mut().map_or(Ok(Match::None), |matcher| matcher.find(tx, shape, &wanted));
        // The values of the row belong to different records.
        let found = found.map_err(|error| match error.code() {
            Code::DuplicateValue => refused(error),
            _ => error.into(),
        })?;
        match (found, self.task.settings.on_match) {
            (Match::None, _) => self.create(tx, record, said, Some(wanted), creation),
            (Match::One(_), OnMatch::Skip) => Ok(Outcome::Skipped),
            (Match::One(_), OnMatch::Error) => Err(already_there().into()),
            (Match::One(id), OnMatch::Update) => self.update(tx, record, said, &wanted, id),
            (Match::Several(_), _) => {
                Err(RowProblem::row("ambiguous_match", "Several items have these values.").into())
            }
        }
    }

    /// Creates an item, or adds it to the waiting ones.
    fn create(
        &mut self,
        tx: &mut Tx,
        record: &Record,
        said: &RowValues,
        wanted: Option<Lookup>,
        creation: Option<Creation>,
    ) -> Result<Outcome, Refusal> {
        let writer = self.writer;
        let refused = |error| refusal(writer.shape, &self.task.source, record, error);
        let creation = match creation {
            Some(creation) => creation,
            None => Creation::Draft(self.drafted(record, None, said)?),
        };
        // An item with statements must exist before they are stored. With savepoints and in dry runs each row needs
        // its own result.
        let waits = said.statements.is_empty() && !self.holds_apart && !self.task.settings.dry_run;
        if waits {
            if let Some((matcher, wanted)) = self.matcher.as_ref().zip(wanted.as_ref()) {
                self.waiting.spellings.extend(matcher.spellings(writer.shape, wanted));
            }
            self.waiting.items.push((creation, wanted));
            return Ok(Outcome::Created);
        }
        // Create the waiting items first, to keep the order of the file.
        self.create_waiting(tx)?;
        let row = self.write(tx, refused, |tx| {
            let row = writer.create_all(tx, vec![creation])?.pop();
            self.state(tx, row.ok_or_else(|| Error::internal("an item was not created"))?, said)
        })?;
        self.remember(&row, wanted.as_ref())?;
        if let Some(matcher) = &mut self.matcher {
            matcher.note_created(writer.shape, &row, wanted.as_ref())?;
        }
        Ok(Outcome::Created)
    }

    /// Updates a matching item.
    fn update(
        &mut self,
        tx: &mut Tx,
        record: &Record,
        said: &RowValues,
        wanted: &Lookup,
        id: ItemId,
    ) -> Result<Outcome, Refusal> {
        // The update may conflict with a waiting item or remove a conflict, so keep the order of the file.
        self.create_waiting(tx)?;
        let writer = self.writer;
        let refused = |error| refusal(writer.shape, &self.task.source, record, error);
        let old = locked(tx, writer.shape, id).map_err(refused)?;
        wanted.expect_key_of(writer.shape, &old).map_err(refused)?;
        let draft = self.drafted(record, Some(&old), said)?;
        let row = self.write(tx, refused, |tx| {
            let written = writer.update(tx, old.clone(), draft)?;
            self.state(tx, written.row, said)
        })?;
        self.remember(&row, Some(wanted))?;
        if let Some(matcher) = &mut self.matcher {
            matcher.note_changed(writer.shape, &old, &row)?;
        }
        Ok(if row.version == old.version { Outcome::Unchanged } else { Outcome::Updated })
    }

    /// Returns the draft of the item, or all errors of the row.
    fn drafted(&self, record: &Record, old: Option<&ItemRow>, said: &RowValues) -> Result<Draft, Refusal> {
        let draft = draft(self.shape, &self.task.settings, old, said);
        let stated = self.task.target.check(self.shape, &said.statements);
        let errors = match (draft, stated) {
            (Ok(draft), Ok(())) => return Ok(draft),
            (draft, stated) => draft.err().into_iter().chain(stated.err()),
        };
        Err(mistakes::all(self.shape, &self.task.source, record, errors))
    }

    /// Stores the row's values of fields that the record kind imports itself.
    fn state(&self, tx: &mut Tx, row: ItemRow, said: &RowValues) -> Result<ItemRow> {
        if said.statements.is_empty() {
            return Ok(row);
        }
        let Writer { shapes, author, .. } = self.writer;
        self.task.target.state(tx, shapes, self.shape, author, row, &said.statements)
    }

    /// Writes one row, in a savepoint if rows have one.
    fn write<T>(
        &self,
        tx: &mut Tx,
        refused: impl Fn(Error) -> Refusal,
        work: impl FnOnce(&mut Tx) -> Result<T>,
    ) -> Result<T, Refusal> {
        if self.holds_apart {
            return tx.savepoint(work).map_err(refused);
        }
        work(tx).map_err(half_written)
    }

    /// Creates the waiting items.
    fn create_waiting(&mut self, tx: &mut Tx) -> Result<(), Refusal> {
        let Waiting { items, .. } = mem::take(&mut self.waiting);
        let (items, wanted): (Vec<Creation>, Vec<Option<Lookup>>) = items.into_iter().unzip();
        let rows = self.writer.create_all(tx, items).map_err(half_written)?;
        if let Some(matcher) = &mut self.matcher {
            for (row, wanted) in rows.iter().zip(&wanted) {
                matcher.note_created(self.writer.shape, row, wanted.as_ref())?;
            }
        }
        Ok(())
    }

    /// Returns the result of a dry run's row whose item an earlier batch would have created.
    fn matched_earlier(&self) -> Result<Outcome, Refusal> {
        match self.task.settings.on_match {
            OnMatch::Update => Ok(Outcome::Updated),
            OnMatch::Skip => Ok(Outcome::Skipped),
            OnMatch::Error => Err(already_there().into()),
        }
    }

    /// Remembers a row of a dry run, for matches and conflicts of later batches. Returns an error if it conflicts
    /// with an earlier row.
    fn remember(&mut self, row: &ItemRow, wanted: Option<&Lookup>) -> Result<(), Refusal> {
        if !self.task.settings.dry_run {
            return Ok(());
        }
        let (shape, data) = (self.writer.shape, row.values()?);
        for index in shape.indexes.iter().filter(|index| index.kind == IndexKind::Unique) {
            let Some(mut digest) = records::rows::digest(shape, index, &data) else { continue };
            digest.extend(index.id.0.to_be_bytes());
            if self.seen.contains(&digest) {
                let message = "Another row of the file has the same value, which must be unique.";
                return Err(RowProblem::row(Code::DuplicateValue.as_str(), message).into());
            }
            self.fresh.push(digest);
        }
        self.fresh.extend(wanted.map(|wanted| digest(&wanted.key)));
        Ok(())
    }
}

/// Returns the digest that a dry run remembers an item by.
fn digest(wanted: &MatchKey) -> Vec<u8> {
    let text = match wanted {
        MatchKey::Key(key) => key.clone(),
        MatchKey::Values(data) => serde_json::to_string(data).unwrap_or_default(),
        MatchKey::Identities(key, data) => serde_json::to_string(&(key, data)).unwrap_or_default(),
    };
    ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref().to_vec()
}

fn already_there() -> RowProblem {
    RowProblem::row("already_exists", "An item with these values already exists.")
}

/// Converts an error of a write that may be partial.
fn half_written(error: Error) -> Refusal {
    if error.code().status() < 500 { Refusal::HalfWritten } else { Refusal::Service(error) }
}
