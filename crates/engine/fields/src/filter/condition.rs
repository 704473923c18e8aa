//! Conditions, ready to be tested on records.

use super::like::Pattern;
use super::range::{Range, joined};
use crate::checking::value;
use crate::definitions::set::FieldSet;
use crate::definitions::subject::{Part, Subject};
use crate::key;
use crate::record::Record;
use crate::values::kind::Family;
use expressions::decimal;
use expressions::text;
use model::{FieldId, Result};
use serde_json::Value;
use std::sync::Arc;

/// One condition.
#[derive(Debug, Clone)]
pub struct Condition {
    /// What is looked at.
    pub subject: Subject,
    /// How its values compare.
    pub family: Family,
    /// What must be so.
    pub test: Test,
}

/// What must be so.
#[derive(Debug, Clone)]
pub enum Test {
    /// There is no value, or an empty text.
    Empty,
    /// There is a value, and no empty text.
    Filled,
    /// The value's key lies in one of these ranges, which are in order and apart. Those of texts have whole texts as their
    /// bounds.
    Within(Vec<Range>),
    /// There is no value, or its key lies in none of these.
    Outside(Vec<Range>),
    /// The text is one of these, which are composed (NFC).
    Text(Vec<String>),
    /// There is no text, or it is not this one.
    NotText(String),
    /// The text fits.
    Like(Box<Pattern>),
    /// The list has one of these elements.
    Has(Vec<Value>),
    /// The list has not this element.
    HasNot(Value),
    /// The list has one of these ids, which are in ascending order and can be many.
    PointsTo(Arc<[Value]>),
    /// The JSON is equal.
    Json(Value),
    /// There is no JSON, or it is not equal.
    NotJson(Value),
    /// The JSON, or an element of the list that it is, is this text (NFC).
    Says(String),
    /// There is no JSON, or it is not this text.
    SaysNot(String),
}

impl Condition {
    pub(super) fn fits(
        &self,
        fields: &FieldSet,
        record: Record<'_>,
        links: &mut dyn FnMut(FieldId, &[Value]) -> Result<bool>,
    ) -> Result<bool> {
        Ok(match &self.test {
            Test::Within(ranges) => {
                let key = self.key(fields, record);
                ranges.iter().any(|range| range.has(&key))
            }
            Test::Outside(ranges) => {
                let key = self.key(fields, record);
                !ranges.iter().any(|range| range.has(&key))
            }
            Test::Empty => self.is_empty(fields, record),
            Test::Filled => !self.is_empty(fields, record),
            Test::Text(texts) => self.with_text(fields, record, |text| {
                text.is_some_and(|text| texts.iter().any(|other| *other == text::nfc(text)))
            }),
            Test::NotText(other) => {
                self.with_text(fields, record, |text| text.is_none_or(|text| *other != text::nfc(text)))
            }
            Test::Like(pattern) => {
                self.with_text(fields, record, |text| text.is_some_and(|text| pattern.fits(text)))
            }
            Test::Has(elements) => {
                self.has(fields, record, elements, |value| elements.contains(value), links)?
            }
            Test::HasNot(element) => {
                !self.has(fields, record, std::slice::from_ref(element), |value| value == element, links)?
            }
            Test::PointsTo(ids) => {
                let is_one = |id: &Value| ids.binary_search_by_key(&id.as_i64(), Value::as_i64).is_ok();
                self.has(fields, record, ids, is_one, links)?
            }
            Test::Json(other) => {
                self.value(fields, record).is_some_and(|value| value::same_json(value, other))
            }
            Test::NotJson(other) => {
                !self.value(fields, record).is_some_and(|value| value::same_json(value, other))
            }
            Test::Says(text) => self.value(fields, record).is_some_and(|value| value::json_says(value, text)),
            Test::SaysNot(text) => {
                !self.value(fields, record).is_some_and(|value| value::json_says(value, text))
            }
        })
    }

    fn key(&self, fields: &FieldSet, record: Record<'_>) -> Vec<u8> {
        let mut key = Vec::with_capacity(16);
        record.push_part(fields, Part { subject: self.subject, desc: false }, &mut key);
        key
    }

    fn value<'a>(&self, fields: &FieldSet, record: Record<'a>) -> Option<&'a Value> {
        match self.subject {
            Subject::Field(id) => record.data.get(&fields.field_by_id(id)?.key),
            Subject::System(_) => None,
        }
    }

    fn with_text(
        &self,
        fields: &FieldSet,
        record: Record<'_>,
        ask: impl FnOnce(Option<&str>) -> bool,
    ) -> bool {
        match self.subject {
            Subject::Field(_) => ask(self.value(fields, record).and_then(Value::as_str)),
            Subject::System(system) => ask(record.column_text(system).as_deref()),
        }
    }

    /// Whether there is no value or an empty text. What no longer compares, such as a choice that is gone, is none.
    fn is_empty(&self, fields: &FieldSet, record: Record<'_>) -> bool {
        if !self.family.is_ordered() {
            return self.value(fields, record).is_none();
        }
        let key = self.key(fields, record);
        key == [key::NOTHING] || (self.family == Family::Text && key == empty_text())
    }

    fn has(
        &self,
        fields: &FieldSet,
        record: Record<'_>,
        elements: &[Value],
        is_one: impl Fn(&Value) -> bool,
        links: &mut dyn FnMut(FieldId, &[Value]) -> Result<bool>,
    ) -> Result<bool> {
        let values = self.value(fields, record).and_then(Value::as_array);
        if values.is_some_and(|values| values.iter().any(is_one)) {
            return Ok(true);
        }
        match self.subject {
            Subject::Field(id) if record.columns.has_cut_relations() => links(id, elements),
            _ => Ok(false),
        }
    }
}

/// The key of an empty text.
pub(crate) fn empty_text() -> Vec<u8> {
    text_key("")
}

fn text_key(text: &str) -> Vec<u8> {
    let mut key = Vec::new();
    key::push_text(&mut key, Some(text), false);
    key
}

impl Condition {
    /// The ranges in which the keys lie that an index has of all values that fit; `None` where they may lie anywhere.
    pub fn ranges(&self) -> Option<Vec<Range>> {
        match &self.test {
            Test::Empty => Some(vec![Range::of(empty_text()), Range::nothing()]),
            Test::Filled => Some(vec![Range::values()]),
            Test::Within(ranges) if self.family == Family::Text => {
                Some(joined(ranges.iter().map(Range::of_cut_texts).collect()))
            }
            Test::Within(ranges) => Some(ranges.clone()),
            Test::Text(texts) => {
                Some(joined(texts.iter().map(|text| Range::of(text_key(text)).of_cut_texts()).collect()))
            }
            Test::Like(pattern) if self.family == Family::Text => {
                let prefix = pattern.base_prefix();
                if prefix.is_empty() {
                    return Some(vec![Range::values()]);
                }
                let bytes = prefix.as_bytes();
                let known = bytes.get(..key::MOST_TEXT).unwrap_or(bytes);
                Some(vec![Range::under([&[key::VALUE], known].concat())])
            }
            Test::Like(_) => Some(vec![Range::values()]),
            _ => None,
        }
    }

    /// Whether nearly all values fit that an index finds for it.
    pub fn is_met_by_index(&self) -> bool {
        match &self.test {
            Test::Empty
            | Test::Filled
            | Test::Within(_)
            | Test::Text(_)
            | Test::Has(_)
            | Test::PointsTo(_) => true,
            Test::Like(pattern) => pattern.is_folded_prefix(),
            _ => false,
        }
    }

    /// Whether the values that fit are those whose keys in an index lie in its [ranges](Self::ranges).
    pub fn is_told_by_keys(&self) -> bool {
        match &self.test {
            Test::Within(ranges) if self.family == Family::Text => !ranges.iter().any(Range::has_long_texts),
            Test::Within(_) => true,
            Test::Text(texts) => !texts.iter().any(|text| Range::of(text_key(text)).has_long_texts()),
            _ => false,
        }
    }

    /// The elements of which a list must have one.
    pub fn elements(&self) -> Option<&[Value]> {
        match &self.test {
            Test::Has(elements) => Some(elements),
            Test::PointsTo(ids) => Some(ids),
            _ => None,
        }
    }

    /// The one key that all values that fit have.
    pub fn only_key(&self) -> Option<Vec<u8>> {
        match &self.test {
            Test::Within(ranges) => match ranges.as_slice() {
                [range] if range.is_one() => Some(range.from.clone()),
                _ => None,
            },
            Test::Text(texts) => match texts.as_slice() {
                [text] => Some(text_key(text)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The same, where an index has it whole: what stands behind it in a composite index is known only then.
    pub fn only_index_key(&self) -> Option<Vec<u8>> {
        self.only_key().filter(|_| self.is_told_by_keys())
    }

    /// The one value that all values that fit have, where it can be told from the condition.
    pub fn only_value(&self) -> Option<Value> {
        match &self.test {
            Test::Text(texts) => match texts.as_slice() {
                [text] => Some(text.as_str().into()),
                _ => None,
            },
            Test::Within(_) if self.family == Family::Number => {
                decimal::kept(&decimal::of(&key::number_of(&self.only_key()?)?)).ok()
            }
            _ => None,
        }
    }
}
