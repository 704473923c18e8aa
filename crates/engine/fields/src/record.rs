//! A record as filters, sorts and keys see it: its values by field, and the columns that every record has.

use crate::definitions::column::SystemColumn;
use crate::definitions::field::Field;
use crate::definitions::set::FieldSet;
use crate::definitions::subject::{Part, Subject};
use crate::key;
use crate::values::kind::Family;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// The values of a record, by the key of their field. Fields without a value are absent.
pub type Data = Map<String, Value>;

/// What a record has beside the values of its fields, wherever it is kept.
pub trait Columns {
    /// The record's id.
    fn id(&self) -> i64;

    /// What stands in a column.
    fn column(&self, column: SystemColumn) -> ColumnValue<'_>;

    /// Whether `data` holds only the first of the ids that a relation field points to.
    fn has_cut_relations(&self) -> bool;
}

/// What stands in a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnValue<'a> {
    /// A number: an id, a version, milliseconds since 1970.
    Integer(i64),
    /// A text.
    Text(Cow<'a, str>),
    /// Nothing.
    Empty,
}

/// A record with its values parsed.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    /// Its columns.
    pub columns: &'a dyn Columns,
    /// Its values.
    pub data: &'a Data,
}

impl<'a> Record<'a> {
    /// The record's id.
    pub fn id(&self) -> i64 {
        self.columns.id()
    }

    /// The value of a field; `None` where it has none.
    pub fn value(&self, field: &Field) -> Option<&'a Value> {
        self.data.get(&field.key)
    }

    /// The text of a system column; `None` where it has none, and for columns that hold no text.
    pub(crate) fn column_text(&self, column: SystemColumn) -> Option<Cow<'a, str>> {
        match self.columns.column(column) {
            ColumnValue::Text(text) => Some(text),
            ColumnValue::Integer(_) | ColumnValue::Empty => None,
        }
    }

    /// Appends one part as indexes hold it, where long texts are cut. `true` tells that this one was.
    pub fn push_indexed_part(&self, fields: &FieldSet, part: Part, out: &mut Vec<u8>) -> bool {
        let start = out.len();
        self.push_part(fields, part, out);
        let is_text = part.subject.family(fields) == Some(Family::Text);
        is_text && key::cut_text(out, start, key::MOST_TEXT, part.desc)
    }

    /// Appends the key of one part, of texts all of it.
    pub fn push_part(&self, fields: &FieldSet, part: Part, out: &mut Vec<u8>) {
        match part.subject {
            Subject::Field(id) => match fields.field_by_id(id) {
                Some(field) => key::push_field(out, field, self.value(field), part.desc),
                None => out.push(key::NOTHING),
            },
            Subject::System(column) => match self.columns.column(column) {
                ColumnValue::Integer(number) => key::push_integer(out, number, part.desc),
                ColumnValue::Text(text) => key::push_text(out, Some(&text), part.desc),
                ColumnValue::Empty => key::push_text(out, None, part.desc),
            },
        }
    }
}
