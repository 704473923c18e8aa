//! What each kind of records adds to imports and exports.

use super::model::ImportRow;
use fields::Data;
use model::Result;
use query::{ParsedQuery, QueryParams, RelatedRecords};
use records::Author;
use records::rows::ItemRow;
use records::shape::{Kind, Shape, Shapes};
use std::sync::Arc;
use store::{Read, Tx};

/// What a kind of records adds to imports and exports.
pub trait Target: Send + Sync {
    /// Whose records its imports write.
    fn kind(&self) -> &'static Kind;

    /// Which records an export gives, by what the query string of its request said.
    ///
    /// # Errors
    /// 400 `validation_error` for what no longer fits.
    fn query(
        &self,
        read: &mut Read,
        shape: &Shape,
        params: Vec<(String, String)>,
        related: &RelatedRecords,
    ) -> Result<ParsedQuery> {
        QueryParams::of(params).with_related(related.clone()).read(read, shape, false)
    }

    /// The keys of fields that only the service sets, and whose values imports take all the same.
    fn takes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Checks what a row says in those fields.
    ///
    /// # Errors
    /// `validation_error` for values that do not fit.
    fn check(&self, shape: &Shape, statements: &Data) -> Result<()> {
        let _ = (shape, statements);
        Ok(())
    }

    /// Records what a row says in those fields of a record that was just written in this transaction. Returns the record as
    /// it is then.
    ///
    /// # Errors
    /// `validation_error` for values that do not fit, and those of the writer.
    fn state(
        &self,
        tx: &mut Tx,
        shapes: &Shapes,
        shape: &Arc<Shape>,
        author: &Author,
        row: ItemRow,
        statements: &Data,
    ) -> Result<ItemRow> {
        let _ = (tx, shapes, shape, author, statements);
        Ok(row)
    }

    /// Publishes the event of an import that has ended, in the transaction of its end.
    ///
    /// # Errors
    /// When the database fails.
    fn publish_end(&self, tx: &mut Tx, author: &Author, import: ImportRow) -> Result<()>;
}
