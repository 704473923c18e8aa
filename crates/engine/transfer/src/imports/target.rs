//! The interface that each kind of records implements for imports and exports.

use super::model::ImportRow;
use fields::Data;
use model::Result;
use query::{ParsedQuery, QueryParams, RelatedRecords};
use records::Author;
use records::rows::ItemRow;
use records::shape::{Kind, Shape, Shapes};
use std::sync::Arc;
use store::{Read, Tx};

/// A kind of records that can be imported and exported.
pub trait Target: Send + Sync {
    /// Returns the kind of records.
    fn kind(&self) -> &'static Kind;

    /// Parses the query parameters of an export.
    ///
    /// # Errors
    /// 400 `validation_error` if they are no longer valid.
    fn query(
        &self,
        read: &mut Read,
        shape: &Shape,
        params: Vec<(String, String)>,
        related: &RelatedRecords,
    ) -> Result<ParsedQuery> {
        QueryParams::of(params).with_related(related.clone()).read(read, shape, false)
    }

    /// Returns the keys of read-only fields whose values imports may set.
    fn takes(&self) -> &'static [&'static str] {
        &[]
    }

    /// Checks a row's values of those fields.
    ///
    /// # Errors
    /// `validation_error` for invalid values.
    fn check(&self, shape: &Shape, statements: &Data) -> Result<()> {
        let _ = (shape, statements);
        Ok(())
    }

    /// Stores a row's values of those fields in a record that this transaction has just written. Returns the
    /// resulting record.
    ///
    /// # Errors
    /// `validation_error` for invalid values, and errors of the writer.
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

    /// Publishes the event of an import that has ended, in the same transaction.
    fn publish_end(&self, tx: &mut Tx, author: &Author, import: ImportRow) -> Result<()>;
}
