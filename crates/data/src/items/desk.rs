//! What all operations on items begin and end with: the collection, the author, and the item as an answer.

use super::choices;
use super::row::{Item, ItemRow};
use super::values::Missing;
use super::write::Writer;
use crate::author::Author;
use crate::output::Printer;
use crate::shape::{self, Shape, Shapes};
use fields::Data;
use fields::{Field, FieldType};
use model::{Caller, CollectionId, Result};
use operation::{RawCreated, RawJson, With};
use std::sync::Arc;
use store::Tx;

/// A collection that is open for writing, and who writes.
pub(crate) struct Desk<'a> {
    shapes: &'a Shapes,
    pub(crate) shape: Arc<Shape>,
    pub(crate) author: Author,
}

impl<'a> Desk<'a> {
    /// Opens a collection for a caller.
    ///
    /// # Errors
    /// `not_found`, and `invalid_state` for an archived collection.
    pub(crate) fn open(
        tx: &mut Tx,
        caller: &Caller,
        shapes: &'a Shapes,
        collection: CollectionId,
    ) -> Result<Self> {
        let shape = shape::for_write(tx, shapes, caller.workspace_id(), collection)?;
        Ok(Self { shapes, shape, author: Author::of(caller) })
    }

    /// Opens a collection for values that are read as text where `typecast` says so: choices that they name and that do
    /// not exist yet are made, before any item is touched.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub(crate) fn open_for<'d>(
        tx: &mut Tx,
        caller: &Caller,
        shapes: &'a Shapes,
        collection: CollectionId,
        typecast: bool,
        inputs: impl Iterator<Item = &'d Data> + Clone,
    ) -> Result<Self> {
        let workspace = caller.workspace_id();
        if typecast {
            // Looked at first without holding anything, because a change of the shape has to begin with its own lock.
            let shape = shape::for_read(tx, shapes, workspace, collection)?;
            if !shape.archived && !choices::missing(&shape, inputs.clone()).is_empty() {
                shape::for_change(tx, workspace, collection)?;
                let shape = shape::for_read(tx, shapes, workspace, collection)?;
                let wanted = choices::missing(&shape, inputs);
                if !shape.archived && !wanted.is_empty() {
                    choices::make(tx, &shape, &Author::of(caller), wanted)?;
                }
            }
        }
        Self::open(tx, caller, shapes, collection)
    }

    /// Lets no other transaction do the same in the collection until this one ends. SQLite has one writer.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn alone(&self, tx: &mut Tx, what: &str) -> Result<()> {
        tx.lock(&format!("items {what} {}", self.shape.collection))
    }

    /// Whether a write may make or remove links.
    pub(crate) fn relates(&self, data: &Data, missing: Missing) -> bool {
        let is_written = |field: &Field| match missing {
            _ if data.contains_key(&field.key) => true,
            Missing::Default => field.default.is_some(),
            Missing::Clear => true,
            Missing::Keep => false,
        };
        self.shape.fields.iter().any(|field| field.kind == FieldType::Relation && is_written(field))
    }

    /// What writes there.
    pub(crate) fn writer(&self) -> Writer<'_> {
        Writer { shapes: self.shapes, shape: &self.shape, author: &self.author }
    }
}

/// An item as an answer, with its version as `ETag`.
pub(crate) type Shown = With<RawJson<Item>>;

/// The answer that shows an item.
///
/// # Errors
/// When what is stored is damaged.
pub(crate) fn shown(shape: &Shape, row: &ItemRow) -> Result<Shown> {
    Ok(With::etag(row.version, RawJson::new(printed(shape, row)?)))
}

/// The answer that shows an item that was created.
///
/// # Errors
/// When what is stored is damaged.
pub(crate) fn created(shape: &Shape, row: &ItemRow) -> Result<With<RawCreated<Item>>> {
    Ok(With::etag(row.version, RawCreated::new(printed(shape, row)?)))
}

fn printed(shape: &Shape, row: &ItemRow) -> Result<String> {
    let mut out = String::with_capacity(row.data.as_str().len() + 512);
    Printer::whole(shape).print(row, &mut out)?;
    Ok(out)
}
