//! Imports in the database.

use super::model::{
    Faults, ImportError, ImportRow, ImportSettings, ImportSource, ImportStatus, MOST_SHOWN, RowError,
};
use crate::schema::{item_import_errors, item_imports};
use diesel::prelude::*;
use model::{CollectionId, Error, FileId, ImportId, JsonText, Result, WorkspaceId};
use records::Author;
use store::{LockLevel, LockMode, OptInPage, Read, Rows, Tx, lock_row};

pub(super) fn insert(
    tx: &mut Tx,
    author: &Author,
    collection: CollectionId,
    file: FileId,
    settings: &ImportSettings,
) -> Result<ImportRow> {
    let now = tx.now();
    let id = ImportId::new(now, &*tx.random());
    Ok(diesel::insert_into(item_imports::table)
        .values((
            item_imports::id.eq(id),
            item_imports::workspace_id.eq(author.workspace),
            item_imports::collection_id.eq(collection),
            item_imports::status.eq(ImportStatus::Queued),
            item_imports::file_id.eq(file),
            item_imports::settings.eq(JsonText::of(settings)),
            (
                item_imports::bytes_done.eq(0),
                item_imports::rows_done.eq(0),
                item_imports::created_count.eq(0),
                item_imports::updated_count.eq(0),
                item_imports::unchanged_count.eq(0),
                item_imports::skipped_count.eq(0),
                item_imports::failed_count.eq(0),
                item_imports::skipped_value_count.eq(0),
            ),
            item_imports::created_by.eq(&author.cause.actor),
            item_imports::created_at.eq(now),
        ))
        .returning(item_imports::all_columns)
        .get_result(tx.connection())?)
}

/// Returns an import of the collection.
///
/// # Errors
/// `not_found`.
pub fn one(
    read: &mut Read,
    workspace: WorkspaceId,
    collection: CollectionId,
    id: &ImportId,
) -> Result<ImportRow> {
    by_id(read, id)?
        .filter(|row| row.workspace_id == workspace && row.collection_id == collection)
        .ok_or_else(|| Error::not_found("import"))
}

/// Returns an import by id, for the job. The operation that enqueued the job has checked the access.
pub(super) fn by_id(read: &mut Read, id: &ImportId) -> Result<Option<ImportRow>> {
    let found = item_imports::table.find(id).select(ImportRow::as_select()).get_result(read.connection());
    Ok(found.optional()?)
}

/// Locks an import until the transaction ends.
pub(super) fn locked(tx: &mut Tx, id: &ImportId) -> Result<Option<ImportRow>> {
    // A transaction never locks more than one import, so no order among them is needed.
    tx.expect_lock_order(LockLevel::Progress, 0, LockMode::Exclusive)?;
    lock_row!(tx, item_imports::table.find(id).select(item_imports::id), for_update);
    by_id(tx, id)
}

/// Returns a page of imports, newest first.
pub fn list(
    read: &mut Read,
    workspace: WorkspaceId,
    collection: CollectionId,
    page: &OptInPage,
) -> Result<Vec<ImportRow>> {
    let mut query = item_imports::table
        .filter(item_imports::collection_id.eq(collection))
        .filter(item_imports::workspace_id.eq(workspace))
        .order(item_imports::id.desc())
        .limit(page.fetch())
        .select(ImportRow::as_select())
        .into_boxed();
    if let Some(after) = page.after::<ImportId>()? {
        query = query.filter(item_imports::id.lt(after));
    }
    Ok(query.load(read.connection())?)
}

/// Marks an import as being inspected, unless another runner is further already.
pub(super) fn begin(tx: &mut Tx, id: &ImportId) -> Result<()> {
    let open = [ImportStatus::Queued, ImportStatus::Validating].map(ImportStatus::as_str);
    diesel::update(item_imports::table.find(id).filter(item_imports::status.eq_any(open)))
        .set((item_imports::status.eq(ImportStatus::Validating), item_imports::started_at.eq(tx.now())))
        .execute(tx.connection())?;
    Ok(())
}

/// Marks an import as running, after its inspection.
pub(super) fn run(tx: &mut Tx, id: &ImportId, source: &ImportSource, bytes: i64, rows: i64) -> Result<()> {
    diesel::update(item_imports::table.find(id))
        .set((
            item_imports::status.eq(ImportStatus::Running),
            item_imports::source.eq(JsonText::of(source)),
            item_imports::bytes_total.eq(bytes),
            item_imports::rows_total.eq(rows),
            item_imports::bytes_done.eq(source.data_start),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Resets the progress of a dry run. Its items were rolled back, so it cannot resume and starts again.
pub(super) fn rewind(tx: &mut Tx, id: &ImportId, data_start: i64) -> Result<()> {
    diesel::delete(item_import_errors::table.filter(item_import_errors::import_id.eq(id)))
        .execute(tx.connection())?;
    diesel::update(item_imports::table.find(id))
        .set((
            item_imports::bytes_done.eq(data_start),
            item_imports::rows_done.eq(0),
            item_imports::created_count.eq(0),
            item_imports::updated_count.eq(0),
            item_imports::unchanged_count.eq(0),
            item_imports::skipped_count.eq(0),
            item_imports::failed_count.eq(0),
            item_imports::skipped_value_count.eq(0),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Stores the progress, in the transaction that writes the rows.
pub(super) fn advance(tx: &mut Tx, row: &ImportRow) -> Result<()> {
    diesel::update(item_imports::table.find(&row.id))
        .set((
            item_imports::bytes_done.eq(row.bytes_done),
            item_imports::rows_done.eq(row.rows_done),
            item_imports::created_count.eq(row.created_count),
            item_imports::updated_count.eq(row.updated_count),
            item_imports::unchanged_count.eq(row.unchanged_count),
            item_imports::skipped_count.eq(row.skipped_count),
            item_imports::failed_count.eq(row.failed_count),
            item_imports::skipped_value_count.eq(row.skipped_value_count),
            item_imports::error.eq(row.error.as_ref()),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// Stores the end of an import.
pub(super) fn end(
    tx: &mut Tx,
    id: &ImportId,
    status: ImportStatus,
    error: Option<&ImportError>,
    error_file: Option<FileId>,
) -> Result<()> {
    diesel::update(item_imports::table.find(id))
        .set((
            item_imports::status.eq(status.as_str()),
            item_imports::error.eq(error.map(JsonText::of)),
            item_imports::error_file_id.eq(error_file),
            item_imports::finished_at.eq(tx.now()),
        ))
        .execute(tx.connection())?;
    Ok(())
}

/// A row with errors: its original values, with the errors that led to its rejection or to skipped values.
#[derive(Debug, Clone, Queryable)]
pub(super) struct FaultyRow {
    pub(super) import_id: ImportId,
    pub(super) row_number: i64,
    pub(super) record: JsonText,
    pub(super) errors: JsonText,
    /// Whether the row was rejected. Otherwise it was imported without some values.
    pub(super) is_rejected: bool,
}

pub(super) fn note(tx: &mut Tx, rows: &[FaultyRow]) -> Result<()> {
    Rows::of(rows)
        .text("import_id", |row| &row.import_id)
        .big_int("row_number", |row| row.row_number)
        .text("record", |row| &row.record)
        .text("errors", |row| &row.errors)
        .bool("is_rejected", |row| row.is_rejected)
        .insert(tx, "item_import_errors")
}

/// Returns the rejected rows after a row number, in order.
pub(super) fn rejected(read: &mut Read, id: &ImportId, after: i64, limit: i64) -> Result<Vec<FaultyRow>> {
    faulty(read, id, true, after, limit)
}

fn faulty(
    read: &mut Read,
    id: &ImportId,
    is_rejected: bool,
    after: i64,
    limit: i64,
) -> Result<Vec<FaultyRow>> {
    Ok(item_import_errors::table
        .filter(item_import_errors::import_id.eq(id))
        .filter(item_import_errors::is_rejected.eq(is_rejected))
        .filter(item_import_errors::row_number.gt(after))
        .order(item_import_errors::row_number)
        .limit(limit)
        .load(read.connection())?)
}

/// Returns the first errors of rejected rows, and the first skipped values.
pub fn faults(read: &mut Read, id: &ImportId) -> Result<Faults> {
    let mut first = |is_rejected| {
        let mut errors = Vec::new();
        for row in faulty(read, id, is_rejected, 0, MOST_SHOWN)? {
            errors.extend(row.errors.parse::<Vec<RowError>>()?);
        }
        errors.truncate(usize::try_from(MOST_SHOWN).unwrap_or_default());
        Ok::<_, Error>(errors)
    };
    Ok(Faults { errors: first(true)?, skipped_values: first(false)? })
}

/// Deletes all faulty rows except those that responses show. Called after the error file was written.
pub(super) fn forget(tx: &mut Tx, id: &ImportId) -> Result<()> {
    for is_rejected in [true, false] {
        let last: Option<i64> = item_import_errors::table
            .filter(item_import_errors::import_id.eq(id))
            .filter(item_import_errors::is_rejected.eq(is_rejected))
            .order(item_import_errors::row_number)
            .offset(MOST_SHOWN)
            .limit(1)
            .select(item_import_errors::row_number)
            .get_result(tx.connection())
            .optional()?;
        let Some(last) = last else { continue };
        diesel::delete(
            item_import_errors::table
                .filter(item_import_errors::import_id.eq(id))
                .filter(item_import_errors::is_rejected.eq(is_rejected))
                .filter(item_import_errors::row_number.ge(last)),
        )
        .execute(tx.connection())?;
    }
    Ok(())
}
