//! From a file that was looked through to rows that can be taken: the columns are settled, the fields that they need are
//! there, and so is the index that rows find their items by.

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

/// Says what becomes of the columns, makes the fields that they need, and lets the rows be taken: all of it is one
/// transaction, so whoever goes on with the import makes nothing twice. The inner error is the caller's to mend.
///
/// # Errors
/// What a field is refused with, and `not_found`, `invalid_state` for a collection that takes no items any more.
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
        // What free keys there are must stay true until the fields are there.
        shape::for_change(tx, workspace, collection)?;
    }
    let shape = shape::for_write(tx, shapes, workspace, collection)?;
    let Some(row) = queries::locked(tx, id)? else { return Err(Error::not_found("import")) };
    if row.status != ImportStatus::Validating {
        // Somebody else was quicker.
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

/// Makes the fields that columns are to have.
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
        // It is neither required nor computed, so items that are there lack nothing.
        definitions::create(tx, shapes, author, collection, new)?;
    }
    Ok(())
}

/// The index that is to be built before rows are taken: where they find their items by fields that no index knows, and
/// there are so many items that looking at each is too much.
///
/// # Errors
/// When the database fails.
pub(super) fn index_to_wait_for(
    tx: &mut Tx,
    shapes: &Shapes,
    row: &ImportRow,
    match_on: &[String],
) -> Result<Option<IndexId>> {
    let shape = match shape::for_read(tx, shapes, row.workspace_id, row.collection_id) {
        Ok(shape) => shape,
        // Whoever takes the rows tells.
        Err(error) if error.code().status() < 500 => return Ok(None),
        Err(error) => return Err(error),
    };
    // In a dry run a field may be missing that is to be made: no item has a value of it.
    let Ok(matcher) = Matcher::new(&shape, match_on) else { return Ok(None) };
    let Some(parts) = matcher.missing_index() else { return Ok(None) };
    let request = IndexRequest { workspace_id: row.workspace_id, collection_id: row.collection_id, parts };
    query::grant_index(tx, shapes, &request)
}
