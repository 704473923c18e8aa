//! Upserts: rows that update the record that they match, or create one.

use super::model::{BulkMode, BulkReport, BulkStatus};
use super::outcome::{Done, row_by_row};
use super::{IN_BULK, ROWS, Row, done};
use crate::links::{self, LockSet};
use crate::rows::matching::{Lookup, Match, Matcher, OnMatch};
use crate::rows::values::{self, Missing};
use crate::rows::write::Draft;
use crate::rows::{self, Editor, ItemChange, ItemRow, Written};
use crate::shape::{Shape, Shapes};
use ::model::{Code, CollectionId, Error, ItemId, Patch, Result, WorkspaceId};
use fields::Data;
use fields::value::Mode;
use operation::ExpectedVersion;
use serde_json::json;
use store::Tx;

/// Creates or changes records: a row is for the record that has the same external key, or the same values in the fields
/// of `match_on`.
///
/// # Errors
/// `validation_error` for what cannot be matched by; else those of [`create`](super::create).
pub fn upsert(
    tx: &mut Tx,
    editor: &Editor<'_>,
    bulk_mode: BulkMode,
    mode: Mode,
    match_on: &[String],
    on_match: OnMatch,
    rows: &[Row<'_>],
) -> Result<BulkReport> {
    editor.alone(tx, IN_BULK)?;
    let matcher = Matcher::new(&editor.shape, match_on)?;
    let mut upsert = Upsert { editor, matcher, on_match, mode };
    if rows.iter().any(|row| editor.relates(row.data, Missing::Default)) {
        links::hold(tx, editor.shape.workspace, |tx| upsert.plan_locks(tx, rows))?;
    }
    upsert.look_ahead(tx, rows)?;
    row_by_row(tx, editor, bulk_mode, ROWS, rows, |tx, row| upsert.put(tx, *row))
}

/// Creates or changes one record. It is the record that has the same external key, or the same values in the fields of
/// `match_on`.
///
/// # Errors
/// `validation_error`, `ambiguous_match` where several records match, and those of writing it.
pub fn upsert_one(
    tx: &mut Tx,
    editor: &Editor<'_>,
    mode: Mode,
    match_on: &[String],
    on_match: OnMatch,
    row: Row<'_>,
    prepared: Option<PreparedMatch>,
) -> Result<(BulkStatus, ItemRow)> {
    let shape = &editor.shape;
    let matcher = Matcher::new(shape, match_on)?;
    let mut upsert = Upsert { editor, matcher, on_match, mode };
    let wanted = match prepared.filter(|prepared| prepared.shape_version == shape.version) {
        Some(prepared) => prepared.wanted,
        None => upsert.wanted(&row)?,
    };
    match upsert.put_wanted(tx, row, &wanted)? {
        Put::Skipped(id) => Ok((BulkStatus::Skipped, rows::live(tx, shape, id)?)),
        Put::Created(row) => Ok((BulkStatus::Created, row)),
        Put::Changed(written) => Ok((done(&written).0, written.row)),
    }
}

/// What a row says of the record that it is for, read before the transaction by the shape that its set had then.
#[derive(Debug)]
pub struct PreparedMatch {
    shape_version: i64,
    wanted: Lookup,
}

impl PreparedMatch {
    /// Reads it by the latest shape of a workspace's set. `None` if that is not known, or the row says nothing; the
    /// transaction says why.
    pub fn of(
        shapes: &Shapes,
        workspace: WorkspaceId,
        set: CollectionId,
        (match_on, mode): (&[String], Mode),
        row: Row<'_>,
    ) -> Option<Self> {
        let shape = shapes.latest(set).filter(|shape| shape.workspace == workspace)?;
        let matcher = Matcher::new(&shape, match_on).ok()?;
        let wanted = matcher.wanted(&shape, row.data, row.external_key, mode).ok()?;
        Some(Self { shape_version: shape.version, wanted })
    }
}

/// What became of a row.
enum Put {
    Created(ItemRow),
    Changed(Written),
    Skipped(ItemId),
}

/// Rows that are matched with records.
struct Upsert<'a> {
    editor: &'a Editor<'a>,
    matcher: Matcher,
    on_match: OnMatch,
    mode: Mode,
}

impl Upsert<'_> {
    /// Finds the records that rows are for, as far as that can be done for all of them at once.
    fn look_ahead(&mut self, tx: &mut Tx, rows: &[Row<'_>]) -> Result<()> {
        // What is wrong with a row is told when it is done.
        let wanted: Vec<Lookup> = rows.iter().filter_map(|row| self.wanted(row).ok()).collect();
        self.matcher.look_ahead(tx, &self.editor.shape, &wanted.iter().collect::<Vec<_>>())
    }

    /// The items that the rows will change, as far as can be told before, with those at the other ends of their links.
    fn plan_locks(&mut self, tx: &mut Tx, rows: &[Row<'_>]) -> Result<LockSet> {
        let (editor, mut locks) = (self.editor, LockSet::default());
        for row in rows {
            // What is wrong with a row is told when it is done.
            let Ok(wanted) = self.wanted(row) else { continue };
            let found = match self.matcher.find(tx, &editor.shape, &wanted) {
                Err(error) if error.code() == Code::InternalError => return Err(error),
                Err(_) => continue,
                Ok(found) => found,
            };
            match found {
                Match::One(id) if self.on_match == OnMatch::Update => {
                    self.change(*row).plan_locks(tx, editor, id, &mut locks)?;
                }
                Match::None => {
                    if let Ok(data) = self.fresh(row.data) {
                        links::plan_locks(tx, &editor.writer(), None, &data, &mut locks)?;
                    }
                }
                Match::One(_) | Match::Several(_) => {}
            }
        }
        Ok(locks)
    }

    /// What a row says of the record that it is for.
    fn wanted(&self, row: &Row<'_>) -> Result<Lookup> {
        self.matcher.wanted(&self.editor.shape, row.data, row.external_key, self.mode)
    }

    /// Does one row.
    fn put(&mut self, tx: &mut Tx, given: Row<'_>) -> Result<Done> {
        let wanted = self.wanted(&given)?;
        Ok(match self.put_wanted(tx, given, &wanted)? {
            Put::Created(row) => (BulkStatus::Created, row.id),
            Put::Changed(written) => done(&written),
            Put::Skipped(id) => (BulkStatus::Skipped, id),
        })
    }

    /// Does one row, which says this of its record.
    fn put_wanted(&mut self, tx: &mut Tx, given: Row<'_>, wanted: &Lookup) -> Result<Put> {
        let found = match self.matcher.find(tx, &self.editor.shape, wanted)? {
            Match::One(id) => id,
            Match::Several(ids) => return Err(ambiguous(&self.editor.shape, &ids)),
            Match::None => match self.create(tx, given) {
                Ok(row) => {
                    self.matcher.note_created(&self.editor.shape, &row, Some(wanted))?;
                    return Ok(Put::Created(row));
                }
                // Another transaction has created it since we looked.
                Err(error) if error.code() == Code::DuplicateValue && tx.is_postgres() => {
                    self.matcher.forget();
                    match self.matcher.find(tx, &self.editor.shape, wanted)? {
                        Match::One(id) => id,
                        _ => return Err(error),
                    }
                }
                Err(error) => return Err(error),
            },
        };
        match self.on_match {
            OnMatch::Skip => Ok(Put::Skipped(found)),
            OnMatch::Error => {
                let message = format!("The {} exists already.", self.editor.shape.kind.noun);
                Err(Error::duplicate("match_on", message, found))
            }
            OnMatch::Update => self.update(tx, found, given, wanted).map(Put::Changed),
        }
    }

    /// Creates an item. On PostgreSQL another transaction may do so at the same time, so the attempt is one that can be
    /// undone; on SQLite, where there is one writer, a savepoint would only slow it down.
    fn create(&self, tx: &mut Tx, given: Row<'_>) -> Result<ItemRow> {
        let data = self.fresh(given.data)?;
        let draft = Draft { data, external_key: given.external_key.map(str::to_owned), position: None };
        let insert = |tx: &mut Tx| self.editor.writer().insert(tx, draft);
        if tx.is_postgres() { tx.savepoint(insert) } else { insert(tx) }
    }

    /// The values of a new item.
    fn fresh(&self, given: &Data) -> Result<Data> {
        values::merge(&self.editor.shape, None, given, Missing::Default, self.mode, "")
    }

    fn update(&mut self, tx: &mut Tx, id: ItemId, given: Row<'_>, wanted: &Lookup) -> Result<Written> {
        let item = rows::locked(tx, &self.editor.shape, id)?;
        wanted.expect_key_of(&self.editor.shape, &item)?;
        let old = item.clone();
        let written = self.change(given).make(tx, self.editor, item)?;
        self.matcher.note_changed(&self.editor.shape, &old, &written.row)?;
        Ok(written)
    }

    fn change<'c>(&self, given: Row<'c>) -> ItemChange<'c> {
        ItemChange {
            data: given.data,
            missing: Missing::Keep,
            mode: self.mode,
            external_key: given.external_key.map_or(Patch::Keep, |key| Patch::Set(key.to_owned())),
            expected: ExpectedVersion::default(),
            path: "",
        }
    }
}

fn ambiguous(shape: &Shape, ids: &[ItemId]) -> Error {
    Error::new(Code::AmbiguousMatch, format!("Several {}s match these values.", shape.kind.noun))
        .with("details", json!({ "existing_ids": ids }))
}
