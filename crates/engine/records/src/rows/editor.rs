//! What all operations on items begin and end with: the collection, the author, and the item as an answer.

use super::values::Missing;
use super::write::Writer;
use crate::Author;
use crate::new_choices;
use crate::shape::{self, Shape, Shapes};
use fields::Data;
use fields::{Field, FieldType};
use model::{Caller, CollectionId, Error, Result};
use std::sync::Arc;
use store::Tx;

/// A collection that is open for writing, and who writes.
pub struct Editor<'a> {
    shapes: &'a Shapes,
    /// The collection's shape, held until the transaction ends.
    pub shape: Arc<Shape>,
    /// Who writes.
    pub author: Author,
}

impl<'a> Editor<'a> {
    /// An editor of the records of a set, whose shape is open for writing.
    pub fn new(shapes: &'a Shapes, shape: Arc<Shape>, author: Author) -> Self {
        Self { shapes, shape, author }
    }

    /// Opens a collection for a caller. Other sets of records are none that a caller can name.
    ///
    /// # Errors
    /// `not_found`, and `invalid_state` for an archived collection.
    pub fn open(tx: &mut Tx, caller: &Caller, shapes: &'a Shapes, collection: CollectionId) -> Result<Self> {
        if collection.0 < 0 {
            return Err(Error::not_found("collection"));
        }
        let shape = shape::for_write(tx, shapes, caller.workspace_id(), collection)?;
        Ok(Self::new(shapes, shape, Author::of(caller)))
    }

    /// Opens a collection for values that are read as text where `typecast` says so: choices that they name and that do
    /// not exist yet are made, before any item is touched.
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub fn open_for<'d>(
        tx: &mut Tx,
        caller: &Caller,
        shapes: &'a Shapes,
        collection: CollectionId,
        typecast: bool,
        inputs: impl Iterator<Item = &'d Data> + Clone,
    ) -> Result<Self> {
        if typecast {
            new_choices::add_missing(tx, shapes, &Author::of(caller), collection, inputs)?;
        }
        Self::open(tx, caller, shapes, collection)
    }

    /// The editor for a request that changes many records: their activity entries share an `operation_id`. It is the request's
    /// own id under another name, so that a transaction that is run again has the same.
    pub fn in_bulk(mut self, caller: &Caller) -> Self {
        let request = caller.request.as_str();
        self.author.operation = Some(format!("op_{}", request.strip_prefix("req_").unwrap_or(request)));
        self
    }

    /// Lets no other transaction do the same in the collection until this one ends. SQLite has one writer.
    ///
    /// # Errors
    /// When the database fails.
    pub fn alone(&self, tx: &mut Tx, what: &str) -> Result<()> {
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
    pub fn writer(&self) -> Writer<'_> {
        Writer { shapes: self.shapes, shape: &self.shape, author: &self.author }
    }
}
