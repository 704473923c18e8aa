//! Bringing many items up to date in the background, in slices that hold the writer for a moment each.

use super::enqueue::{Of, Work};
use super::extent::Extent;
use crate::Author;
use crate::activity::Action;
use crate::links::table;
use crate::rows::Writer;
use crate::schema::items;
use crate::shape::{self, Shape, Shapes};
use ::jobs::JobContext;
use diesel::prelude::*;
use model::{Code, ItemId, Result};
use std::sync::Arc;
use store::Tx;

/// Items of one transaction.
const SLICE: usize = 50;

/// Slices of one job. What is left is a job of its own, so that no more than this is done again after a crash.
const SLICES: usize = 20;

/// Does the job [`super::RECOMPUTE`].
///
/// # Errors
/// The database's.
pub(crate) async fn recompute(shapes: &Arc<Shapes>, job: JobContext) -> Result<()> {
    let mut work: Work = job.payload.parse()?;
    for number in 1.. {
        let is_last = number >= SLICES || job.soft.is_cancelled();
        let (shapes, slice) = (shapes.clone(), work.clone());
        let done = job.db.write(move |tx| {
            let next = slice.slice(tx, &shapes)?;
            if let Some(after) = next.filter(|_| is_last) {
                Work { after, ..slice.clone() }.enqueue(tx)?;
            }
            Ok(next)
        });
        match done.await? {
            Some(after) if !is_last => work.after = after,
            _ => break,
        }
    }
    Ok(())
}

impl Work {
    /// Does a slice; gives where to go on.
    fn slice(&self, tx: &mut Tx, shapes: &Shapes) -> Result<Option<ItemId>> {
        let home = match self.of {
            Of::Collection(collection) | Of::Item { collection, .. } => Some(collection),
            Of::Pointing { field, .. } => table::home(tx, self.workspace, field)?,
        };
        let Some(home) = home else { return Ok(None) };
        let shape = match shape::held(tx, shapes, self.workspace, home) {
            Ok(shape) => shape,
            Err(error) if error.code() == Code::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let author = Author::system(self.workspace, "recompute");
        let writer = Writer { shapes, shape: &shape, author: &author };
        let ids = self.items(tx, &shape)?;
        for id in &ids {
            let action = (!matches!(self.of, Of::Collection(_))).then_some(Action::Updated);
            let extent = if matches!(self.of, Of::Item { .. }) { Extent::Full } else { Extent::Bounded };
            if let Some(changed) = writer.renew(tx, *id, extent, action)? {
                writer.spread(tx, *id, &changed)?;
            }
        }
        let is_full = ids.len() == SLICE && !matches!(self.of, Of::Item { .. });
        Ok(ids.last().copied().filter(|_| is_full))
    }

    fn items(&self, tx: &mut Tx, shape: &Shape) -> Result<Vec<ItemId>> {
        match self.of {
            Of::Item { item, .. } => Ok(vec![item]),
            Of::Pointing { field, item } => {
                table::pointing(tx, self.workspace, item, field, self.after, SLICE)
            }
            Of::Collection(collection) => {
                let ids = items::table
                    .filter(items::workspace_id.eq(shape.workspace))
                    .filter(items::collection_id.eq(collection))
                    .filter(items::id.gt(self.after))
                    .filter(items::trashed_at.is_null())
                    .order(items::id)
                    .select(items::id)
                    .limit(i64::try_from(SLICE).unwrap_or(i64::MAX));
                Ok(ids.load(tx.connection())?)
            }
        }
    }
}
