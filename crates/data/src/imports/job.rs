//! The job `data.import`: from a file to items, going on where it stopped.

use super::detect::{self, Looks};
use super::model::{Format, ImportError, ImportRow, ImportSettings, ImportSource, ImportStatus};
use super::plan;
use super::queries;
use super::reader::{self, Batch, Opening, Record, Records};
use super::report;
use super::rows::{self, Seen, Taken, Task};
use crate::author::Author;
use crate::files::{self, Files, NewFile};
use crate::items::activity::{self, Action, Changes, change};
use crate::items::matching::Table;
use crate::shape::{self, FieldType, Shape, Shapes};
use encoding_rs::Encoding;
use jobs::{JobContext, JobError};
use model::{Error, FileId, ImportId, JsonText, NewEvent, Result, WorkspaceId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};
use store::{Db, Tx};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// The job's kind.
pub const KIND: &str = "data.import";

/// How often an import is tried. A server that is killed counts as an attempt.
pub const ATTEMPTS: i64 = 50;

/// How many rows are written in one transaction, at most: the writer of SQLite is never held for long.
const ROWS: usize = 500;

/// About how many bytes are read for one transaction.
const BYTES: i64 = 1 << 20;

/// How many rows show what a column looks like.
const SHOWN: i64 = 1_000;

/// The most columns of a file.
const MOST_COLUMNS: usize = 1_000;

/// The most bytes of an error file.
const MOST_REPORTED: u64 = 256 << 20;

/// What the job is given.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Payload {
    pub(super) import_id: ImportId,
}

/// Runs imports.
pub struct Importer {
    /// The files.
    pub files: Arc<Files>,
    /// The shapes of collections.
    pub shapes: Arc<Shapes>,
}

/// How far a run of the job came.
enum Reached {
    End,
    /// The service stops, or somebody else goes on.
    Stopped,
}

/// Runs an import, or goes on with it.
///
/// # Errors
/// What the job is tried again for.
pub async fn run(job: JobContext, importer: Arc<Importer>) -> Result<(), JobError> {
    let payload: Payload = job.payload.parse().map_err(|error| JobError::give_up(Error::internal(error)))?;
    match importer.go_on(&job, &payload.import_id).await {
        Ok(Reached::End) => Ok(()),
        Ok(Reached::Stopped) => Err(JobError::hand_back()),
        Err(error) if job.attempts >= ATTEMPTS => {
            let message =
                "Something failed on our side again and again. Rows that are counted were imported.";
            let reason = ImportError { code: "internal_error".to_owned(), message: message.to_owned() };
            importer.end_early(&job.db, &payload.import_id, ImportStatus::Failed, reason).await?;
            Err(JobError::give_up(error))
        }
        Err(error) => Err(error.into()),
    }
}

impl Importer {
    async fn go_on(&self, job: &JobContext, id: &ImportId) -> Result<Reached> {
        let wanted = id.clone();
        let Some(mut row) = job.db.read(move |read| queries::by_id(read, &wanted)).await? else {
            return Ok(Reached::End);
        };
        if row.status()?.is_final() {
            return Ok(Reached::End);
        }
        let Some(opening) = self.opening(&job.db, row.workspace_id, row.file_id).await? else {
            let reason =
                ImportError { code: "file_missing".to_owned(), message: "The file was deleted.".to_owned() };
            self.end_early(&job.db, id, ImportStatus::Failed, reason).await?;
            return Ok(Reached::End);
        };
        if row.status()? != ImportStatus::Running {
            match self.validate(&job.db, &row, &opening).await? {
                Ok(running) => row = running,
                Err((status, reason)) => {
                    self.end_early(&job.db, id, status, reason).await?;
                    return Ok(Reached::End);
                }
            }
        }
        // An import whose last row was too much is over, and only its end is to be told.
        if row.error.is_none()
            && let Reached::Stopped = self.take_rows(job, &row, opening).await?
        {
            return Ok(Reached::Stopped);
        }
        self.finish(&job.db, id).await?;
        Ok(Reached::End)
    }

    async fn opening(&self, db: &Db, workspace: WorkspaceId, file: FileId) -> Result<Option<Opening>> {
        let row = db.read(move |read| files::find(read, workspace, file)).await?;
        let ready = row.filter(files::FileRow::is_ready);
        Ok(ready.map(|row| Opening { files: self.files.clone(), row, handle: Handle::current() }))
    }

    /// Looks the file through and says what becomes of its columns. The inner error is the caller's to mend.
    async fn validate(
        &self,
        db: &Db,
        row: &ImportRow,
        opening: &Opening,
    ) -> Result<Result<ImportRow, (ImportStatus, ImportError)>> {
        let id = row.id.clone();
        db.write(move |tx| queries::begin(tx, &id)).await?;
        let (shapes, workspace, collection) = (self.shapes.clone(), row.workspace_id, row.collection_id);
        let shape = match db.read(move |read| shape::for_read(read, &shapes, workspace, collection)).await {
            Ok(shape) => shape,
            Err(error) if error.code() == model::Code::NotFound => {
                return Ok(Err((ImportStatus::Cancelled, refused("collection_deleted", error.message()))));
            }
            Err(error) => return Err(error),
        };
        let settings: ImportSettings = row.settings.parse()?;
        let opening = opening.clone();
        let looked = tokio::task::spawn_blocking(move || look(&opening, &settings, &shape)).await??;
        let looked = match looked {
            Ok(looked) => looked,
            Err(reason) => return Ok(Err((ImportStatus::Failed, reason))),
        };
        let id = row.id.clone();
        let running = db.write(move |tx| {
            queries::run(tx, &id, &looked.source, looked.bytes, looked.rows)?;
            queries::by_id(tx, &id)?.ok_or_else(|| Error::not_found("import"))
        });
        Ok(Ok(running.await?))
    }

    /// Reads on a thread of its own while the rows before are written.
    async fn take_rows(&self, job: &JobContext, row: &ImportRow, opening: Opening) -> Result<Reached> {
        let damaged = || Error::internal("a running import does not say what its file is");
        let source: ImportSource = row.source.as_ref().ok_or_else(damaged)?.parse()?;
        let settings: ImportSettings = row.settings.parse()?;
        let mut from = row.bytes_done;
        if settings.dry_run {
            from = source.data_start;
            let id = row.id.clone();
            job.db.write(move |tx| queries::rewind(tx, &id, from)).await?;
        }
        let author = Author::import(row.workspace_id, &row.id, settings.emit_events);
        let task = Arc::new(Task {
            id: row.id.clone(),
            collection: row.collection_id,
            settings,
            source: source.clone(),
            author,
        });
        let (sender, mut batches) = mpsc::channel::<Batch>(2);
        let reading = tokio::task::spawn_blocking(move || {
            let text = opening.text(encoding_of(&source), from)?;
            let records = Records::new(Box::new(text), &source, from);
            reader::batches(records, ROWS, BYTES, |batch| sender.blocking_send(batch).is_ok())
        });
        let mut seen = Seen::new();
        let table = Arc::new(Mutex::new(Table::default()));
        while let Some(batch) = batches.recv().await {
            if job.soft.is_cancelled() {
                return Ok(Reached::Stopped);
            }
            let batch = Arc::new(batch);
            let (shapes, task) = (self.shapes.clone(), task.clone());
            let known = Arc::new(seen);
            let (written, read_only, kept) = (batch.clone(), known.clone(), table.clone());
            let take = move |tx: &mut Tx| rows::take(tx, &shapes, &task, &written, &read_only, &kept);
            let taken = job.db.write(take).await?;
            seen = Arc::try_unwrap(known).unwrap_or_else(|known| Seen::clone(&known));
            match taken {
                Taken::On(fresh, learned) => {
                    seen.extend(fresh);
                    *table.lock().unwrap_or_else(PoisonError::into_inner) = learned;
                }
                Taken::Enough => return Ok(Reached::End),
                Taken::Lost => return Ok(Reached::Stopped),
                Taken::Over(status, reason) => {
                    self.end_early(&job.db, &row.id, status, reason).await?;
                    return Ok(Reached::End);
                }
            }
        }
        reading.await??;
        Ok(Reached::End)
    }

    /// Writes the error file, and tells of the end.
    async fn finish(&self, db: &Db, id: &ImportId) -> Result<()> {
        let wanted = id.clone();
        let row = db.read(move |read| queries::by_id(read, &wanted)).await?;
        let Some(row) = row else { return Ok(()) };
        if row.status()?.is_final() {
            return Ok(());
        }
        let error = row.error.as_ref().map(JsonText::parse::<ImportError>).transpose()?;
        let status = match (&error, row.failed_count) {
            (Some(_), _) => ImportStatus::Failed,
            (None, 0) => ImportStatus::Completed,
            (None, _) => ImportStatus::CompletedWithErrors,
        };
        self.end(db, row, status, error).await
    }

    async fn end_early(
        &self,
        db: &Db,
        id: &ImportId,
        status: ImportStatus,
        reason: ImportError,
    ) -> Result<()> {
        let wanted = id.clone();
        match db.read(move |read| queries::by_id(read, &wanted)).await? {
            Some(row) if !row.status()?.is_final() => self.end(db, row, status, Some(reason)).await,
            _ => Ok(()),
        }
    }

    async fn end(
        &self,
        db: &Db,
        row: ImportRow,
        status: ImportStatus,
        error: Option<ImportError>,
    ) -> Result<()> {
        let author = Author::import(row.workspace_id, &row.id, true);
        let columns = match &row.source {
            Some(source) => {
                source.parse::<ImportSource>()?.columns.into_iter().map(|column| column.name).collect()
            }
            None => Vec::new(),
        };
        let report = if row.failed_count > 0 {
            let new = NewFile {
                name: format!("{}-errors.csv", row.id),
                most_bytes: MOST_REPORTED,
                author: author.clone(),
            };
            let text = report::file(db.clone(), row.id.clone(), columns);
            Some(self.files.put(db, new, text).await?)
        } else {
            None
        };
        db.write(move |tx| {
            let Some(now) = queries::locked(tx, &row.id)? else { return Ok(()) };
            if now.status()?.is_final() {
                return Ok(());
            }
            let file = report.as_ref().map(|report| files::finish(tx, report)).transpose()?;
            queries::end(tx, &row.id, status, error.as_ref(), file.map(|file| file.id))?;
            queries::forget(tx, &row.id)?;
            tell(tx, &author, &row.id)
        })
        .await
    }
}

/// The activity entry and the event of an import that is over.
fn tell(tx: &mut Tx, author: &Author, id: &ImportId) -> Result<()> {
    let Some(row) = queries::by_id(tx, id)? else { return Ok(()) };
    let (status, collection, counts) = (row.status()?, row.collection_id, row.counts());
    let import = row.import(None, None)?;
    if !import.settings.dry_run && import.processed.rows > 0 {
        let counts = serde_json::to_value(counts)?;
        let changes: Changes = [("counts".to_owned(), change(None, Some(&counts)))].into_iter().collect();
        activity::record(tx, author, collection, None, Action::Imported, &changes)?;
    }
    let kind = match status {
        ImportStatus::Completed | ImportStatus::CompletedWithErrors => "import.completed",
        _ => "import.failed",
    };
    let event = NewEvent::new(kind, author.livemode, &BTreeMap::from([("import", &import)]));
    tx.emit(author.workspace, None, &event)?;
    Ok(())
}

/// Asks for an import to be run.
pub(super) fn ask(tx: &mut Tx, id: &ImportId) -> Result<()> {
    let now = tx.now();
    tx.enqueue(KIND, Some(id.as_str()), &Payload { import_id: id.clone() }, now)
}

struct Looked {
    source: ImportSource,
    bytes: i64,
    rows: i64,
}

fn refused(code: &str, message: &str) -> ImportError {
    ImportError { code: code.to_owned(), message: message.to_owned() }
}

fn encoding_of(source: &ImportSource) -> &'static Encoding {
    Encoding::for_label(source.encoding.as_bytes()).unwrap_or(encoding_rs::UTF_8)
}

/// Looks a file through: what it is, what its columns are, how much there is. Blocks.
fn look(opening: &Opening, settings: &ImportSettings, shape: &Shape) -> Result<Result<Looked, ImportError>> {
    let encoding = match settings.encoding.as_deref().and_then(|label| Encoding::for_label(label.as_bytes()))
    {
        Some(encoding) => encoding,
        None => detect::encoding(opening.bytes()?)?,
    };
    let mut sample = vec![0; detect::SAMPLE];
    let filled = detect::fill(&mut opening.text(encoding, 0)?, &mut sample)?;
    let sample = String::from_utf8_lossy(sample.get(..filled).unwrap_or_default());
    if sample.trim().is_empty() {
        return Ok(Err(refused("empty_file", "The file is empty.")));
    }
    let format = match settings.format {
        Format::Auto => detect::format(&sample),
        format => format,
    };
    let mut source = ImportSource {
        format,
        encoding: encoding.name().to_owned(),
        delimiter: None,
        has_header: false,
        columns: Vec::new(),
        data_start: 0,
    };
    if plan::is_csv(&source) {
        let given = settings.delimiter.as_ref().and_then(|text| text.chars().next());
        source.delimiter = Some(given.unwrap_or_else(|| char::from(detect::delimiter(&sample))));
    }
    let text = opening.text(encoding, 0)?;
    let (found, bytes, rows) = read_through(Box::new(text), &mut source, settings, shape)?;
    if found.len() > MOST_COLUMNS {
        let message = format!("The file has more than {MOST_COLUMNS} columns.");
        return Ok(Err(refused("too_many_columns", &message)));
    }
    Ok(plan::columns(shape, settings, found).map(|columns| {
        source.columns = columns;
        Looked { source, bytes, rows }
    }))
}

type Found = Vec<(String, Option<FieldType>)>;

/// Counts, and finds out what the columns are called and look like.
fn read_through(
    text: Box<dyn Read + Send>,
    source: &mut ImportSource,
    settings: &ImportSettings,
    shape: &Shape,
) -> Result<(Found, i64, i64)> {
    let mut records = Records::new(text, source, 0);
    let mut columns: Vec<(String, Looks)> = Vec::new();
    let mut rows = 0_i64;
    while let Some(record) = records.next()? {
        if let Record::Cells(first) = &record
            && rows == 0
            && columns.is_empty()
        {
            let is_field =
                |cell: &str| settings.mapping.contains_key(cell) || plan::named(shape, cell).is_some();
            source.has_header = settings.has_header.unwrap_or_else(|| detect::is_header(first, is_field));
            columns = names(first, source.has_header);
            if source.has_header {
                source.data_start = records.place();
                continue;
            }
        }
        rows += 1;
        if rows <= SHOWN {
            show(&record, &mut columns);
        }
    }
    let found = columns.into_iter().map(|(name, looks)| (name, looks.like())).collect();
    Ok((found, records.place(), rows))
}

/// The names of columns: those of the header, each made one of its own, or their numbers.
fn names(first: &csv::StringRecord, has_header: bool) -> Vec<(String, Looks)> {
    let mut names: Vec<(String, Looks)> = Vec::with_capacity(first.len());
    for (place, cell) in first.iter().enumerate() {
        let cell = cell.trim();
        let number = place + 1;
        let mut name =
            if has_header && !cell.is_empty() { cell.to_owned() } else { format!("column_{number}") };
        if names.iter().any(|(other, _)| *other == name) {
            name = format!("{name} ({number})");
        }
        names.push((name, Looks::default()));
    }
    names
}

/// Takes a row into account for what columns look like. Each object of JSON Lines may bring new columns.
fn show(record: &Record, columns: &mut Vec<(String, Looks)>) {
    match record {
        Record::Cells(cells) => {
            for ((_, looks), cell) in columns.iter_mut().zip(cells) {
                looks.at(cell);
            }
        }
        Record::Line(line) => {
            let Ok(object) = serde_json::from_slice(line) else { return };
            for (name, value) in plan::flattened(object) {
                let place = columns.iter().position(|(other, _)| *other == name).unwrap_or_else(|| {
                    columns.push((name, Looks::default()));
                    columns.len() - 1
                });
                let Some((_, looks)) = columns.get_mut(place) else { continue };
                match value {
                    Value::Null => {}
                    Value::String(text) => looks.at(&text),
                    other => looks.at(&other.to_string()),
                }
            }
        }
        Record::TooLong => {}
    }
}
