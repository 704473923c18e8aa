//! Bulk writes: many records in one request, which is one transaction.

mod model;
mod outcome;
mod upsert;

pub use self::model::BulkResult;
pub use self::model::BulkSummary;
pub use self::model::{BulkMode, BulkReport, BulkStatus};
pub use outcome::{Done, each_row};
pub use upsert::{PreparedMatch, upsert, upsert_one};

use self::outcome::together;
use crate::links::{self, LockSet};
use crate::rows::values::{self, Missing};
use crate::rows::write::{Draft, Written};
use crate::rows::{self, Creation, Editor, ItemChange, ItemRow};
use crate::shape::{IndexKind, Shapes};
use ::model::{Error, ItemId, Patch, Result};
use fields::Data;
use fields::value::Mode;
use store::{LockMode, Tx};

/// A record that a bulk request gives.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    /// The values by field key.
    pub data: &'a Data,
    /// The caller's own key.
    pub external_key: Option<&'a str>,
}

/// The name of the list of rows in the body of a bulk request.
pub const ROWS: &str = "rows";

/// What such requests do one at a time in a set of records.
const IN_BULK: &str = "in bulk";

/// Creates records.
///
/// # Errors
/// In atomic mode `validation_error` with all mistakes. Failures of the service end the request in both.
pub fn create(
    tx: &mut Tx,
    editor: &Editor<'_>,
    bulk_mode: BulkMode,
    mode: Mode,
    rows: &[Row<'_>],
) -> Result<BulkReport> {
    alone_if_unique(tx, editor, rows.iter().any(|row| row.external_key.is_some()))?;
    let merge = |row: &Row<'_>| values::merge(&editor.shape, None, row.data, Missing::Default, mode, "");
    links::hold(tx, editor.shape.workspace, |tx| {
        let mut locks = LockSet::default();
        for row in rows.iter().filter(|row| editor.relates(row.data, Missing::Default)) {
            if let Ok(data) = merge(row) {
                links::plan_locks(tx, &editor.writer(), None, &data, &mut locks)?;
            }
        }
        Ok(locks)
    })?;
    let draft = |row: &Row<'_>| {
        let external_key = row.external_key.map(str::to_owned);
        Ok(Draft { data: merge(row)?, external_key, position: None })
    };
    let created = |row: ItemRow| (BulkStatus::Created, row.id);
    let all = |tx: &mut Tx| {
        let drafts = rows.iter().map(|row| draft(row).map(Creation::Draft)).collect::<Result<_>>()?;
        Ok(editor.writer().create_all(tx, drafts)?.into_iter().map(created).collect())
    };
    together(tx, editor, bulk_mode, ROWS, rows, all, |tx, row| {
        Ok(created(editor.writer().insert(tx, draft(row)?)?))
    })
}

/// Makes changes to records, in order, so that one may change what another has changed before.
///
/// # Errors
/// Those of [`create`].
pub fn update(
    tx: &mut Tx,
    editor: &Editor<'_>,
    bulk_mode: BulkMode,
    changes: &[(ItemId, ItemChange<'_>)],
) -> Result<BulkReport> {
    alone_if_unique(tx, editor, changes.iter().any(|(_, change)| change.external_key != Patch::Keep))?;
    links::hold(tx, editor.shape.workspace, |tx| {
        let mut locks = LockSet::default();
        for (id, change) in changes {
            if editor.relates(change.data, change.missing) {
                change.plan_locks(tx, editor, *id, &mut locks)?;
            } else {
                locks.add([*id], LockMode::Exclusive);
            }
        }
        Ok(locks)
    })?;
    each_row(tx, editor, bulk_mode, ROWS, changes, |tx, (id, change)| {
        let row = rows::live(tx, &editor.shape, *id).map_err(|error| error.param("id"))?;
        Ok(done(&change.clone().make(tx, editor, row)?))
    })
}

/// Moves records to the trash, or deletes them for good, also out of the trash.
///
/// # Errors
/// Those of [`create`].
pub fn delete(
    tx: &mut Tx,
    shapes: &Shapes,
    editor: &Editor<'_>,
    bulk_mode: BulkMode,
    ids: &[ItemId],
    permanent: bool,
) -> Result<BulkReport> {
    if permanent {
        links::hold_purged(tx, shapes, editor.shape.workspace, ids)?;
    } else {
        links::hold_leaving(tx, shapes, editor.shape.workspace, ids)?;
    }
    each_row(tx, editor, bulk_mode, "ids", ids, |tx, id| {
        let row = rows::find(tx, &editor.shape, *id)?
            .filter(|row| permanent || row.trashed_at.is_none())
            .ok_or_else(|| Error::not_found(editor.shape.kind.noun))?;
        if permanent {
            editor.writer().destroy(tx, &row)?;
        } else {
            editor.writer().trash(tx, &row)?;
        }
        Ok((BulkStatus::Deleted, *id))
    })
}

/// Lets one request at a time write what must be unique in a set of records, because each writes many such values, and
/// two that write the same in another order would wait for each other.
fn alone_if_unique(tx: &mut Tx, editor: &Editor<'_>, has_keys: bool) -> Result<()> {
    let has_unique = editor.shape.indexes.iter().any(|index| index.kind == IndexKind::Unique);
    if has_unique || has_keys { editor.alone(tx, IN_BULK) } else { Ok(()) }
}

fn done(written: &Written) -> Done {
    let status = if written.changed { BulkStatus::Updated } else { BulkStatus::Unchanged };
    (status, written.row.id)
}
