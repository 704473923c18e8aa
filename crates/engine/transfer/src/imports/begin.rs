//! The start of an import after its file was inspected: assigns columns to fields, creates missing fields, and
//! requests an index for finding items.

use super::model::{Column, FileSummary, ImportError, ImportRow, ImportSettings, ImportStatus};
use super::target::Target;
use super::{columns, queries};
use model::{CollectionId, Error, ImportId, IndexId, Result};
use query::IndexRequest;
use records::Author;
use records::definitions::{self, NewField};
use records::rows::matching::Matcher;
use records::shape::{self, Shapes};
use store::Tx;

/// Assigns the columns, creates the fields that they need, and sets the import to running. This is one transaction,
/// so another runner that continues the import creates nothing twice. The inner error is the caller's to fix.
///
/// # Errors
/// Errors of creating a field; `not_found` or `invalid_state` if the collection is deleted or archived.
pub(super) fn begin(
    tx: &mut Tx,
    shapes: &Shapes,
    target: &dyn Target,
    id: &ImportId,
    settings: &ImportSettings,
    summary: &FileSummary,
) -> Result<Result<ImportRow, ImportError>> {
    let Some(row) = queries::by_id(tx, id)? else { return Err(Error::not_found("import")) };
    let (workspace, collection) = (row.workspace_id, row.collection_id);
    if settings.create_fields {
        // Lock the collection, so that the chosen keys are still free when the fields are created.
        shape::for_change(tx, workspace, collection)?;
    }
    let shape = shape::for_write(tx, shapes, workspace, collection)?;
    let Some(row) = queries::locked(tx, id)? else { return Err(Error::not_found("import")) };
    if row.status != ImportStatus::Validating {
        // Another runner has begun the import.
        return Ok(Ok(row));
    }
    let found = match columns::columns(&shape, target.takes(), settings, summary) {
        Ok(found) => found,
        Err(reason) => return Ok(Err(reason)),
    };
    if !settings.dry_run {
        make_fields(tx, shapes, &Author::import(workspace, id, settings.emit_events), collection, &found)?;
    }
    let mut source = summary.source.clone();
    source.warnings.extend(columns::warnings(&found));
    source.columns = found;
    queries::run(tx, id, &source, summary.bytes, summary.rows)?;
    queries::by_id(tx, id)?.map(Ok).ok_or_else(|| Error::not_found("import"))
}

/// Creates the fields for columns.
fn make_fields(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    collection: CollectionId,
    columns: &[Column],
) -> Result<()> {
    for made in columns.iter().filter_map(|column| column.creates.clone()) {
        let new = NewField {
            field_key: Some(made.field_key),
            label: Some(made.label),
            kind: made.kind,
            description: None,
            required: false,
            unique: false,
            default: None,
            options: None,
        };
        // The field is neither required nor computed, so existing items remain valid.
        definitions::create(tx, shapes, author, collection, new)?;
    }
    Ok(())
}

/// Requests an index before rows are imported. Needed if rows are matched with items by fields without an index and
/// the collection is large.
pub(super) fn index_to_wait_for(
    tx: &mut Tx,
    shapes: &Shapes,
    row: &ImportRow,
    match_on: &[String],
) -> Result<Option<IndexId>> {
    let shape = match shape::for_read(tx, shapes, row.workspace_id, row.collection_id) {
        Ok(shape) => shape,
        // The import of the rows will report this error.
        Err(error) if error.code().status() < 500 => return Ok(None),
        Err(error) => return Err(error),
    };
    // In a dry run, a field to match on may not exist yet. Then no item has a value of it.
    let Ok(matcher) = Matcher::new(&shape, match_on) else { return Ok(None) };
    let Some(parts) = matcher.missing_index() else { return Ok(None) };
    let request = IndexRequest { workspace_id: row.workspace_id, collection_id: row.collection_id, parts };
    query::grant_index(tx, shapes, &request)
}
