//! Contacts as a target of imports, and as a source of exports.

use super::model::{ContactImport, ContactImportEnded, ContactImportEvent};
use crate::consents::{self, NewConsent};
use crate::lists::list::ContactFilters;
use crate::record::consent::{ConsentSource, ConsentState};
use crate::record::kind::CONTACTS;
use fields::value::{self, Mode};
use fields::{Data, Field, FieldOptions, FieldType};
use model::{Error, Result};
use query::{ParsedQuery, RelatedRecords};
use records::Author;
use records::rows::{Editor, ItemRow};
use records::shape::{Kind, Shape, Shapes};
use serde_json::Value;
use std::sync::Arc;
use store::{Read, Tx};
use transfer::imports::{self, ImportRow, ImportStatus, Target};

/// The column that opts contacts out of broadcasts.
const OPTED_OUT: &str = "$opted_out";

/// Contacts as a target of imports and a source of exports.
pub struct ContactImports;

impl Target for ContactImports {
    fn kind(&self) -> &'static Kind {
        &CONTACTS
    }

    fn takes(&self) -> &'static [&'static str] {
        &[OPTED_OUT]
    }

    fn check(&self, shape: &Shape, statements: &Data) -> Result<()> {
        is_opted_out(shape, statements).map(drop)
    }

    /// Opts a contact out. An import never opts contacts in, because it could undo an opt-out that is newer than the
    /// file.
    fn state(
        &self,
        tx: &mut Tx,
        shapes: &Shapes,
        shape: &Arc<Shape>,
        author: &Author,
        row: ItemRow,
        statements: &Data,
    ) -> Result<ItemRow> {
        let is_already = |data: &Data| data.get(OPTED_OUT).and_then(Value::as_bool).unwrap_or_default();
        if !is_opted_out(shape, statements)? || is_already(&row.values()?) {
            return Ok(row);
        }
        let editor = Editor::new(shapes, shape.clone(), author.clone());
        let consent = NewConsent { source: ConsentSource::Import, proof: None };
        consents::store(tx, &editor, row, ConsentState::OptedOut, consent)
    }

    fn query(
        &self,
        read: &mut Read,
        shape: &Shape,
        params: Vec<(String, String)>,
        related: &RelatedRecords,
    ) -> Result<ParsedQuery> {
        ContactFilters::of(params, related)?.parsed(read, shape)
    }

    fn publish_end(&self, tx: &mut Tx, author: &Author, import: ImportRow) -> Result<()> {
        let status = import.status;
        let faults = imports::faults(tx, &import.id)?;
        let data = ContactImportEnded { import: ContactImport::of(import, faults)? };
        let event = match status {
            ImportStatus::Completed | ImportStatus::CompletedWithErrors => {
                ContactImportEvent::Completed(data)
            }
            _ => ContactImportEvent::Failed(data),
        };
        tx.emit(author.workspace, &author.cause, author.livemode, &event)?;
        Ok(())
    }
}

/// Returns whether a row opts its contact out.
fn is_opted_out(shape: &Shape, statements: &Data) -> Result<bool> {
    // A draft of the field parses the value, because the real field is read-only and rejects values.
    let field = Field::draft(OPTED_OUT, FieldType::Boolean, FieldOptions::default());
    let given = statements.get(OPTED_OUT).unwrap_or(&Value::Null);
    let value = value::check(&field, given, Mode::Typecast).map_err(|problem| {
        Error::all_invalid(vec![problem.at(shape.param(OPTED_OUT))])
            .unwrap_or_else(|| Error::internal("a mistake is none"))
    })?;
    Ok(value.as_ref().and_then(Value::as_bool).unwrap_or_default())
}
