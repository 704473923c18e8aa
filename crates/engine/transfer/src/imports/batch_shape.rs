//! The fields and options used to write a batch of rows.

use super::model::FieldToMake;
use super::prepare::{Batch, Task};
use fields::{Field, FieldOptions};
use model::{Error, FieldId, Result};
use records::new_choices;
use records::shape::{self, Shape, Shapes};
use std::sync::Arc;
use store::Tx;

/// Adds missing options for the values of the rows, if the import's settings ask for it.
pub(super) fn make_options(tx: &mut Tx, shapes: &Shapes, task: &Task, batch: &Batch) -> Result<()> {
    if !task.settings.create_options || task.settings.dry_run {
        return Ok(());
    }
    new_choices::add_missing(tx, shapes, &task.author, task.collection, batch.values())
}

/// Returns the shape used to write rows. In a dry run it includes the fields and options that would be created.
pub(super) fn shape_for(tx: &mut Tx, shapes: &Shapes, task: &Task, batch: &Batch) -> Result<Arc<Shape>> {
    let shape = shape::for_write(tx, shapes, task.author.workspace, task.collection)?;
    let columns = task.source.columns.iter();
    let made: Vec<&FieldToMake> = columns.filter_map(|column| column.creates.as_ref()).collect();
    let has_new = !made.is_empty() || task.settings.create_options;
    if !has_new || !task.settings.dry_run {
        return Ok(shape);
    }
    let own = shape::within_change(tx, shapes, task.author.workspace, task.collection)?;
    let mut shape = Arc::into_inner(own).ok_or_else(|| Error::internal("a shape of our own is shared"))?;
    for (place, made) in (0..).zip(made) {
        let mut field = Field::draft(&made.field_key, made.kind, FieldOptions::default());
        // No stored or built-in field has such an id.
        field.id = FieldId(i64::MIN + place);
        shape.fields.push(field);
    }
    if task.settings.create_options {
        new_choices::suppose_missing(&mut shape, batch.values());
    }
    Ok(Arc::new(shape))
}
