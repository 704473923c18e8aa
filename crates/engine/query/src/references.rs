//! Replacement of ids in values, such as those of `contact` fields, after a record was merged into another.
//!
//! There is no reverse index of such values, so a background job searches for them. Until it is done, the old id
//! still resolves to the record that replaced it.

use crate::{Budget, PlacedRow, Planner, Query};
use ::jobs::{Job, JobContext, JobError};
use diesel::prelude::*;
use fields::filter::{Condition, Test};
use fields::sort::Sort;
use fields::{Data, FieldType, Filter, Subject};
use model::{CollectionId, ItemId, Result, WorkspaceId};
use records::Author;
use records::rows::{self, Draft, Editor};
use records::schema::{collection_fields, collections};
use records::shape::{self, Shape, Shapes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use store::{Read, Tx};

const JOB: &str = "data.references.replace";

/// Records changed per transaction.
const SLICE: usize = 50;

/// A record replaced by another.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Replacement {
    workspace: WorkspaceId,
    /// The type of the fields that refer to such records.
    kind: FieldType,
    from: i64,
    to: i64,
}

/// Enqueues the replacement of `from` by `to` in fields of a type, in the transaction that merges the records.
pub fn replace(tx: &mut Tx, workspace: WorkspaceId, kind: FieldType, from: ItemId, to: ItemId) -> Result<()> {
    let replacement = Replacement { workspace, kind, from: from.0, to: to.0 };
    let now = tx.now();
    tx.enqueue(workspace, JOB, None, &replacement, now)
}

/// Returns the job that replaces the ids.
pub(crate) fn job(shapes: &Arc<Shapes>) -> Job {
    let shapes = shapes.clone();
    Job::after(JOB, "a contact is merged into another", "makes values of items name the other", move |job| {
        run(job, shapes.clone())
    })
}

async fn run(job: JobContext, shapes: Arc<Shapes>) -> Result<(), JobError> {
    let mut replacement: Replacement = job.payload.parse().map_err(JobError::give_up)?;
    let mut replaced = vec![replacement.from];
    let mut done = None;
    loop {
        // Jobs run concurrently and in any order, and `to` may have been merged into a third record meanwhile. Read
        // the current target after each pass, and repeat the pass if it has changed.
        let (named, known) = (replacement.clone(), shapes.clone());
        let to = job.db.read(move |read| latest(read, &known, &named)).await?;
        if done == Some(to) {
            return Ok(());
        }
        if to != replacement.to {
            replaced.push(replacement.to);
            replacement.to = to;
        }
        for from in &replaced {
            replace_everywhere(&job, &shapes, &Replacement { from: *from, ..replacement.clone() }).await?;
        }
        done = Some(to);
    }
}

/// Returns the current target: the record that `to` was merged into, or `to` itself.
fn latest(read: &mut Read, shapes: &Shapes, wanted: &Replacement) -> Result<i64> {
    let to = ItemId(wanted.to);
    let survivors = shapes.merged().survivors(read, wanted.kind, wanted.workspace, &[to])?;
    Ok(survivors.get(&to).unwrap_or(&to).0)
}

async fn replace_everywhere(
    job: &JobContext,
    shapes: &Arc<Shapes>,
    replacement: &Replacement,
) -> Result<(), JobError> {
    let planner = Planner::new(job.db.clone());
    planner.set_budget(Budget { rows: usize::MAX, bytes: usize::MAX, timeout: Duration::from_secs(3600) });
    let planner = Arc::new(planner);
    let (wanted, known) = (replacement.clone(), shapes.clone());
    let sets = job.db.read(move |read| sets(read, &known, &wanted)).await?;
    for set in sets {
        // Each record is tried once. A record that cannot be changed, such as a locked item, keeps the old id.
        let mut after = None;
        loop {
            let (wanted, known, planner) = (replacement.clone(), shapes.clone(), planner.clone());
            let found = job
                .db
                .read(move |read| naming(read, &known, &planner, (&wanted, set), after.as_deref()))
                .await?;
            let Some(last) = found.last() else { break };
            after = Some(last.place.clone());
            let ids: BTreeSet<ItemId> = found.into_iter().map(|found| found.row.id).collect();
            let (wanted, known) = (replacement.clone(), shapes.clone());
            job.db.write(move |tx| rename(tx, &known, &wanted, set, &ids)).await?;
        }
    }
    Ok(())
}

/// Returns the collections that have fields of the type.
fn sets(read: &mut Read, shapes: &Shapes, wanted: &Replacement) -> Result<BTreeSet<CollectionId>> {
    let custom: Vec<CollectionId> = collection_fields::table
        .inner_join(collections::table.on(collections::id.eq(collection_fields::collection_id)))
        .filter(collection_fields::workspace_id.eq(wanted.workspace))
        .filter(collection_fields::kind.eq(wanted.kind.as_str()))
        .filter(collections::trashed_at.is_null())
        .select(collection_fields::collection_id)
        .distinct()
        .load(read.connection())?;
    Ok(custom.into_iter().chain(shapes.sets_with(wanted.kind, wanted.workspace)).collect())
}

/// Returns the next live records of a collection that refer to the replaced record.
fn naming(
    read: &mut Read,
    shapes: &Shapes,
    planner: &Planner,
    (wanted, set): (&Replacement, CollectionId),
    after: Option<&[u8]>,
) -> Result<Vec<PlacedRow>> {
    let Some(shape) = live_shape(shape::for_read(read, shapes, wanted.workspace, set))? else {
        return Ok(Vec::new());
    };
    let fields = shape.fields.iter().filter(|field| field.kind == wanted.kind);
    let names = |field: &fields::Field| {
        let test = Test::Has(vec![wanted.from.into()]);
        Filter::One(Condition { subject: Subject::Field(field.id), family: field.family(), test })
    };
    let query = Query::new(Filter::Any(fields.map(names).collect()), Sort::of(&[]), false);
    Ok(query.page(read, planner, &shape, after, SLICE)?.found)
}

/// Replaces the id in some records.
fn rename(
    tx: &mut Tx,
    shapes: &Shapes,
    wanted: &Replacement,
    set: CollectionId,
    ids: &BTreeSet<ItemId>,
) -> Result<()> {
    let Some(shape) = live_shape(shape::for_write(tx, shapes, wanted.workspace, set))? else { return Ok(()) };
    let editor = Editor::new(shapes, shape, Author::system(wanted.workspace, "references"));
    for id in ids {
        let found = rows::find_locked(tx, &editor.shape, *id)?;
        let Some(row) = found.filter(|row| row.trashed_at.is_none()) else { continue };
        let mut data = row.values()?;
        replace_in(&editor.shape, &mut data, wanted);
        let draft = Draft { data, external_key: row.external_key.clone(), position: row.position.clone() };
        let written = tx.savepoint(|tx| editor.writer().update(tx, row, draft));
        if let Err(error) = written
            && error.code().status() >= 500
        {
            return Err(error);
        }
    }
    Ok(())
}

fn replace_in(shape: &Shape, data: &mut Data, wanted: &Replacement) {
    for field in shape.fields.iter().filter(|field| field.kind == wanted.kind) {
        let Some(Value::Array(ids)) = data.get_mut(&field.key) else { continue };
        let has_other = ids.iter().any(|id| id.as_i64() == Some(wanted.to));
        if has_other {
            ids.retain(|id| id.as_i64() != Some(wanted.from));
        }
        for id in ids.iter_mut().filter(|id| id.as_i64() == Some(wanted.from)) {
            *id = wanted.to.into();
        }
    }
}

/// Returns a shape, or `None` if its collection is deleted or archived.
fn live_shape(shape: Result<Arc<Shape>>) -> Result<Option<Arc<Shape>>> {
    match shape {
        Ok(shape) if shape.archived => Ok(None),
        Ok(shape) => Ok(Some(shape)),
        Err(error) if error.code().status() < 500 => Ok(None),
        Err(error) => Err(error),
    }
}
