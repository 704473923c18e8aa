//! The job `data.import`. It imports a file in batches and resumes where it stopped.

use super::begin::{begin, index_to_wait_for};
use super::inspect::inspect;
use super::model::{ImportError, ImportRow, ImportSettings, ImportSource, ImportStatus};
use super::prepare::{Batch, Task};
use super::reader::{self, Opening, Records};
use super::report;
use super::rows::{self, AttemptEnd, Attempts, BatchOutcome, SeenDigests, ended};
use super::target::Target;
use super::wait::ImportEnds;
use super::{plan, queries};
use encoding_rs::Encoding;
use files::{self, Files, NewFile, Stored};
use jobs::{Job, JobContext, JobError};
use model::{CollectionId, Error, FileId, ImportId, JsonText, Result, WorkspaceId};
use records::Author;
use records::activity::{self, Action, Changes, change};
use records::indexes;
use records::shape::{self, Shape, Shapes};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};
use store::{Db, Read, Tx};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

/// The name of the job.
const KIND: &str = "data.import";

/// The maximum number of attempts. Includes attempts of servers that were killed.
const ATTEMPTS: i64 = 50;

/// The maximum number of rows per transaction, to keep the writer of SQLite free for others.
const ROWS: usize = 1_000;

/// The approximate number of bytes per transaction.
const BYTES: i64 = 1 << 20;

/// The maximum size of an error file, in bytes.
const MOST_REPORTED: u64 = 256 << 20;

/// The payload of the job.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Payload {
    pub(super) import_id: ImportId,
}

/// The service that runs imports.
pub struct Importer {
    files: Arc<Files>,
    shapes: Arc<Shapes>,
    targets: Vec<Arc<dyn Target>>,
    ends: Arc<ImportEnds>,
}

/// The end of a run of the job.
enum Progress {
    End,
    /// The service is shutting down, or another runner has continued the import.
    Stopped,
}

/// Returns the job that runs imports.
pub fn job(importer: Arc<Importer>) -> Job {
    Job::after(KIND, "an import is confirmed", "imports", move |job| run(job, importer.clone()))
        .up_to(ATTEMPTS)
}

/// Starts or resumes an import.
///
/// # Errors
/// Errors after which the job is retried.
async fn run(job: JobContext, importer: Arc<Importer>) -> Result<(), JobError> {
    let payload: Payload = job.payload.parse().map_err(JobError::give_up)?;
    match importer.go_on(&job, &payload.import_id).await {
        Ok(Progress::End) => Ok(()),
        Ok(Progress::Stopped) => Err(JobError::hand_back()),
        Err(error) if job.attempts >= ATTEMPTS => {
            let message = "The import failed repeatedly because of an internal error. Rows that are counted were imported.";
            let reason = ImportError::new("internal_error", message);
            importer.end_early(&job.db, &payload.import_id, ImportStatus::Failed, reason).await?;
            Err(JobError::give_up(error))
        }
        Err(error) => Err(error.into()),
    }
}

impl Importer {
    /// Creates an importer for the kinds of records that have a target.
    pub fn new(files: Arc<Files>, shapes: Arc<Shapes>, targets: Vec<Arc<dyn Target>>) -> Self {
        Self { files, shapes, targets, ends: Arc::default() }
    }

    /// Returns the notifications about imports that end in this process.
    pub fn ends(&self) -> Arc<ImportEnds> {
        self.ends.clone()
    }

    fn target(&self, set: CollectionId) -> Result<Arc<dyn Target>> {
        let target = self.targets.iter().find(|target| target.kind().has(set));
        target.cloned().ok_or_else(|| Error::internal(format!("no target takes imports into set {set}")))
    }

    async fn go_on(&self, job: &JobContext, id: &ImportId) -> Result<Progress> {
        let wanted = id.clone();
        let Some(mut row) = job.db.read(move |read| queries::by_id(read, &wanted)).await? else {
            return Ok(Progress::End);
        };
        if row.status.is_final() {
            return Ok(Progress::End);
        }
        let Some(opening) = self.opening(&job.db, row.workspace_id, row.file_id).await? else {
            let reason = ImportError::new("file_missing", "The file was deleted.");
            self.end_early(&job.db, id, ImportStatus::Failed, reason).await?;
            return Ok(Progress::End);
        };
        // A running import was inspected before the job was interrupted.
        if row.status != ImportStatus::Running {
            match self.validate(&job.db, &row, &opening).await? {
                Ok(begun) if begun.status.is_final() => return Ok(Progress::End),
                Ok(begun) => row = begun,
                Err((status, reason)) => {
                    self.end_early(&job.db, id, status, reason).await?;
                    return Ok(Progress::End);
                }
            }
        }
        // If the last batch had too many errors, the import is over and only its end remains to be published.
        if row.error.is_none() {
            if let Progress::Stopped = self.wait_for_index(job, &row).await? {
                return Ok(Progress::Stopped);
            }
            if let Progress::Stopped = self.take_rows(job, &row, opening).await? {
                return Ok(Progress::Stopped);
            }
        }
        self.finish(&job.db, id).await?;
        Ok(Progress::End)
    }

    async fn opening(&self, db: &Db, workspace: WorkspaceId, file: FileId) -> Result<Option<Opening>> {
        let row = db.read(move |read| files::find(read, workspace, file)).await?;
        let ready = row.filter(files::FileRow::is_ready);
        Ok(ready.map(|row| Opening { files: self.files.clone(), row, handle: Handle::current() }))
    }

    /// Inspects the file, assigns its columns and creates missing fields. The inner error is the caller's to fix.
    async fn validate(
        &self,
        db: &Db,
        row: &ImportRow,
        opening: &Opening,
    ) -> Result<Result<ImportRow, (ImportStatus, ImportError)>> {
        let id = row.id.clone();
        db.write(move |tx| queries::begin(tx, &id)).await?;
        let (shapes, workspace, collection) = (self.shapes.clone(), row.workspace_id, row.collection_id);
        let found = db.read(move |read| {
            let country = shapes.country(read, workspace)?;
            Ok((shape::for_read(read, &shapes, workspace, collection)?, country))
        });
        let (shape, country) = match found.await {
            Ok(found) => found,
            Err(error) => return ended(error).map(Err),
        };
        let settings: ImportSettings = row.settings.parse()?;
        let (opening, wanted) = (opening.clone(), settings.clone());
        let target = self.target(collection)?;
        let takes = target.takes();
        let inspecting = move || inspect(&opening, &wanted, &shape, takes, country.as_deref());
        let summary = match tokio::task::spawn_blocking(inspecting).await.map_err(Error::internal)?? {
            Ok(summary) => summary,
            Err(reason) => return Ok(Err((ImportStatus::Failed, reason))),
        };
        let (shapes, id) = (self.shapes.clone(), row.id.clone());
        match db.write(move |tx| begin(tx, &shapes, &*target, &id, &settings, &summary)).await {
            Ok(begun) => Ok(begun.map_err(|reason| (ImportStatus::Failed, reason))),
            Err(error) => ended(error).map(Err),
        }
    }

    /// Builds the index for finding items, if the import needs one that is not ready.
    async fn wait_for_index(&self, job: &JobContext, row: &ImportRow) -> Result<Progress> {
        let on = row.settings.parse::<ImportSettings>()?.match_on;
        if on.is_empty() {
            return Ok(Progress::End);
        }
        let (shapes, row) = (self.shapes.clone(), row.clone());
        let wanted = job.db.write(move |tx| index_to_wait_for(tx, &shapes, &row, &on)).await?;
        match wanted {
            Some(index) if !indexes::build(job, &self.shapes, index).await? => Ok(Progress::Stopped),
            _ => Ok(Progress::End),
        }
    }

    /// Imports the rows. A separate thread reads and prepares the next batch while the current one is written.
    async fn take_rows(&self, job: &JobContext, row: &ImportRow, opening: Opening) -> Result<Progress> {
        let damaged = || Error::internal("a running import does not say what its file is");
        let source: ImportSource = row.source.as_ref().ok_or_else(damaged)?.parse()?;
        let settings: ImportSettings = row.settings.parse()?;
        let mut from = row.bytes_done;
        if settings.dry_run {
            // The items of a dry run were rolled back, so it cannot resume.
            from = source.data_start;
            let id = row.id.clone();
            job.db.write(move |tx| queries::rewind(tx, &id, from)).await?;
        }
        let author = Author::import(row.workspace_id, &row.id, settings.emit_events);
        let target = self.target(row.collection_id)?;
        let task = Arc::new(Task::new(row, settings, source.clone(), author, target));
        let (shapes, workspace, collection) = (self.shapes.clone(), row.workspace_id, row.collection_id);
        // Preparation is optional: without a shape the transactions do all of it.
        if let Ok(shape) =
            job.db.read(move |read| shape::for_read(read, &shapes, workspace, collection)).await
        {
            task.prepare_for(&shape);
        }
        let (preparing, shapes) = (task.clone(), self.shapes.clone());
        // With a capacity of one, a batch waits while the previous one is written and the next one is read.
        let (sender, mut batches) = mpsc::channel::<Batch>(1);
        let reading = tokio::task::spawn_blocking(move || {
            let text = opening.text(encoding_of(&source), from)?;
            let records = Records::new(Box::new(text), &source, from);
            reader::batches(records, ROWS, BYTES, |read| {
                sender.blocking_send(Batch::of(&preparing, &shapes, read)).is_ok()
            })
        });
        let mut seen = SeenDigests::new();
        let mut attempts = Attempts::default();
        while let Some(batch) = batches.recv().await {
            if job.soft.is_cancelled() {
                return Ok(Progress::Stopped);
            }
            let known = Arc::new(seen);
            let taken = self.take_batch(&job.db, &task, batch, &known, attempts).await?;
            // A retried transaction can leave a clone behind. Then copy the digests.
            seen = Arc::try_unwrap(known).unwrap_or_else(|known| SeenDigests::clone(&known));
            match taken {
                Ok(BatchOutcome::On(fresh, learned)) => {
                    seen.extend(fresh);
                    attempts = Attempts::with(learned);
                }
                Ok(BatchOutcome::Enough) => return Ok(Progress::End),
                Ok(BatchOutcome::Lost) => return Ok(Progress::Stopped),
                Err((status, reason)) => {
                    self.end_early(&job.db, &row.id, status, reason).await?;
                    return Ok(Progress::End);
                }
            }
        }
        reading.await.map_err(Error::internal)??;
        Ok(Progress::End)
    }

    /// Writes a batch. The inner error ends the import.
    async fn take_batch(
        &self,
        db: &Db,
        task: &Arc<Task>,
        batch: Batch,
        seen: &Arc<SeenDigests>,
        attempts: Attempts,
    ) -> Result<Result<BatchOutcome, (ImportStatus, ImportError)>> {
        let (batch, attempts) = (Arc::new(batch), Arc::new(Mutex::new(attempts)));
        loop {
            let (shapes, task, written) = (self.shapes.clone(), task.clone(), batch.clone());
            let (seen, left) = (seen.clone(), attempts.clone());
            let take = move |tx: &mut Tx| rows::take(tx, &shapes, &task, &written, &seen, &left);
            let error = match db.write(take).await {
                Ok(outcome) => return Ok(Ok(outcome)),
                Err(error) => error,
            };
            match attempts.lock().unwrap_or_else(PoisonError::into_inner).take_end() {
                None => return Err(error),
                Some(AttemptEnd::Repeat) => {}
                Some(AttemptEnd::Over(status, reason)) => return Ok(Err((status, reason))),
            }
        }
    }

    /// Writes the error file and publishes the end.
    async fn finish(&self, db: &Db, id: &ImportId) -> Result<()> {
        let wanted = id.clone();
        let row = db.read(move |read| queries::by_id(read, &wanted)).await?;
        let Some(row) = row else { return Ok(()) };
        if row.status.is_final() {
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
            Some(row) if !row.status.is_final() => self.end(db, row, status, Some(reason)).await,
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
                workspace: author.workspace,
                uploaded_by: author.cause.actor.clone(),
            };
            let text = report::file(db.clone(), row.id.clone(), columns);
            Some(self.files.put(db, new, text).await?)
        } else {
            None
        };
        let target = self.target(row.collection_id)?;
        db.write(move |tx| {
            // Another runner may have ended the import while this one wrote the error file.
            let Some(now) = queries::locked(tx, &row.id)? else { return Ok(()) };
            if now.status.is_final() {
                return Ok(());
            }
            let file = report.as_ref().map(|report| files::finish(tx, report)).transpose()?;
            queries::end(tx, &row.id, status, error.as_ref(), file.map(|file| file.id))?;
            queries::forget(tx, &row.id)?;
            publish_end(tx, &*target, &author, &row.id)
        })
        .await?;
        self.ends.notify();
        Ok(())
    }
}

/// Writes the activity entry and publishes the event of an import that has ended.
fn publish_end(tx: &mut Tx, target: &dyn Target, author: &Author, id: &ImportId) -> Result<()> {
    let Some(row) = queries::by_id(tx, id)? else { return Ok(()) };
    let dry_run = row.settings.parse::<ImportSettings>()?.dry_run;
    if !dry_run && row.processed()?.rows > 0 {
        let counts = serde_json::to_value(row.counts()).map_err(Error::internal)?;
        let changes: Changes = [("counts".to_owned(), change(None, Some(&counts)))].into_iter().collect();
        activity::record(tx, author, row.collection_id, None, Action::Imported, &changes)?;
    }
    target.publish_end(tx, author, row)
}

/// The source of an import's rows.
#[derive(Clone)]
pub enum Origin {
    /// A file of the workspace.
    File(FileId),
    /// Content that was sent with the request and stored.
    Content(Box<Stored>),
}

/// Checks that a request contains either a file or content.
///
/// # Errors
/// `validation_error`.
pub fn check_origin(has_content: bool, file: Option<FileId>) -> Result<()> {
    match file {
        Some(_) if has_content => Err(Error::invalid("content", "cannot be combined with `file_id`")),
        None if !has_content => Err(Error::invalid("file_id", "is required without `content`")),
        _ => Ok(()),
    }
}

/// Creates an import and enqueues its job.
///
/// # Errors
/// `validation_error`; `not_found` at `file_id`.
pub fn start(
    tx: &mut Tx,
    target: &dyn Target,
    shape: &Shape,
    author: &Author,
    origin: &Origin,
    settings: &ImportSettings,
) -> Result<ImportRow> {
    let settings = &plan::with_keys(shape, settings.clone());
    plan::check(target, shape, settings)?;
    let file = match origin {
        Origin::File(file) => {
            importable(tx, author.workspace, *file)?;
            *file
        }
        Origin::Content(stored) => files::finish(tx, stored)?.id,
    };
    let row = queries::insert(tx, author, shape.collection, file, settings)?;
    ask(tx, &row)?;
    Ok(row)
}

/// Returns an error if a file does not exist.
///
/// # Errors
/// `not_found` at `file_id`.
pub fn importable(read: &mut Read, workspace: WorkspaceId, file: FileId) -> Result<()> {
    let found = files::live(read, workspace, file);
    found.map(drop).map_err(|error| error.param("file_id"))
}

/// Enqueues the job of an import.
fn ask(tx: &mut Tx, row: &ImportRow) -> Result<()> {
    let now = tx.now();
    let payload = Payload { import_id: row.id.clone() };
    tx.enqueue(row.workspace_id, KIND, Some(row.id.as_str()), &payload, now)
}

fn encoding_of(source: &ImportSource) -> &'static Encoding {
    Encoding::for_label(source.encoding.as_bytes()).unwrap_or(encoding_rs::UTF_8)
}
