//! What follows from a change: items that look at the changed one through rollups and lookups are brought up to date,
//! and those that look at them in turn.
//!
//! It is a queue and no recursion, because chains can be long. What a field looks at has no cycles, and an item that did
//! not change lets nothing follow, so it ends.

use super::enqueue;
use super::extent::Extent;
use crate::activity::{Action, Changes};
use crate::links::table;
use crate::rows::Writer;
use crate::shape::{self, Shape};
use fields::FieldType;
use model::{Code, CollectionId, FieldId, ItemId, Result};
use std::collections::VecDeque;
use std::sync::Arc;
use store::Tx;

/// As many items are brought up to date in the transaction of the change that they look at; the rest in a job.
const AT_ONCE: usize = 100;

/// What is still to be brought up to date in this transaction.
struct Queue<'a> {
    writer: &'a Writer<'a>,
    open: VecDeque<(CollectionId, ItemId)>,
    /// How many more items it may take on.
    left: usize,
}

impl Writer<'_> {
    /// Brings items up to date, all of them, and then what looks at them. `true` where there were any.
    ///
    /// # Errors
    /// The database's, and `duplicate_value` where a computed value that must be unique is taken.
    pub fn renew_all(&self, tx: &mut Tx, items: Vec<(CollectionId, ItemId)>, action: Action) -> Result<bool> {
        let any = !items.is_empty();
        let mut queue = Queue { writer: self, open: VecDeque::new(), left: AT_ONCE };
        for (collection, item) in items {
            queue.renew(tx, collection, item, Some(action))?;
        }
        queue.run(tx)?;
        Ok(any)
    }

    /// Brings up to date what looks at an item whose values `changed`. `true` where anything did.
    ///
    /// # Errors
    /// As for [`Self::renew_all`].
    pub(crate) fn spread(&self, tx: &mut Tx, item: ItemId, changed: &Changes) -> Result<bool> {
        let mut queue = Queue { writer: self, open: VecDeque::new(), left: AT_ONCE };
        queue.add_dependents(tx, self.shape, item, changed, true)?;
        let any = !queue.open.is_empty();
        queue.run(tx)?;
        Ok(any)
    }
}

impl Queue<'_> {
    fn run(&mut self, tx: &mut Tx) -> Result<()> {
        while let Some((collection, item)) = self.open.pop_front() {
            self.renew(tx, collection, item, Some(Action::Updated))?;
        }
        Ok(())
    }

    /// Brings one item up to date and remembers what looks at it, where it changed.
    fn renew(
        &mut self,
        tx: &mut Tx,
        collection: CollectionId,
        item: ItemId,
        action: Option<Action>,
    ) -> Result<()> {
        let Writer { shapes, author, .. } = *self.writer;
        let shape = match shape::held(tx, shapes, author.workspace, collection) {
            Ok(shape) => shape,
            Err(error) if error.code() == Code::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let writer = Writer { shapes, shape: &shape, author };
        match writer.renew(tx, item, Extent::Bounded, action)? {
            Some(changed) => self.add_dependents(tx, &shape, item, &changed, false),
            None => Ok(()),
        }
    }

    /// Remembers what looks at an item whose values `changed`; `touched` tells that its time of change did too.
    fn add_dependents(
        &mut self,
        tx: &mut Tx,
        shape: &Shape,
        item: ItemId,
        changed: &Changes,
        touched: bool,
    ) -> Result<()> {
        if changed.is_empty() && !touched {
            return Ok(());
        }
        let workspace = shape.workspace;
        for field in table::pointing_fields(tx, workspace, item)? {
            let Some(home) = looking(tx, self.writer, shape, field, changed, touched)? else { continue };
            let mut found = table::pointing(tx, workspace, item, field, ItemId(0), self.left + 1)?;
            if found.len() > self.left {
                found.truncate(self.left);
                let after = found.last().copied().unwrap_or(ItemId(0));
                enqueue::enqueue_pointing(tx, workspace, field, item, after)?;
            }
            for item in found {
                let entry = (home.collection, item);
                if !self.open.contains(&entry) {
                    self.left = self.left.saturating_sub(1);
                    self.open.push_back(entry);
                }
            }
        }
        Ok(())
    }
}

/// The shape of the collection that a relation field belongs to, where a rollup or lookup of it looks, along that
/// field, at something that changed.
fn looking(
    tx: &mut Tx,
    writer: &Writer<'_>,
    looked_at: &Shape,
    field: FieldId,
    changed: &Changes,
    touched: bool,
) -> Result<Option<Arc<Shape>>> {
    let workspace = looked_at.workspace;
    let Some(home) = table::home(tx, workspace, field)? else { return Ok(None) };
    let shape = match shape::for_read(tx, writer.shapes, workspace, home) {
        Ok(shape) => shape,
        Err(error) if error.code() == Code::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(relation) = shape.field_by_id(field) else { return Ok(None) };
    let is_stale = |key: &str| {
        changed.contains_key(key)
            || (touched && looked_at.field(key).is_some_and(|field| field.kind == FieldType::UpdatedAt))
    };
    let looks = shape.fields.iter().any(|field| {
        matches!(field.kind, FieldType::Rollup | FieldType::Lookup)
            && field.options.relation.as_deref() == Some(relation.key.as_str())
            && field.options.field.as_deref().is_some_and(is_stale)
    });
    Ok(looks.then_some(shape))
}
