//! Conditions, ready to be tested on items.

use super::words::Words;
use super::{Node, Pattern, operand};
use crate::decimal;
use crate::items::Facts;
use crate::key;
use crate::shape::{Family, Part, Shape, Subject};
use crate::text;
use model::{FieldId, Result, Timestamp};
use serde_json::Value;
use std::collections::BTreeSet;

/// A tree of conditions.
#[derive(Debug, Clone)]
pub enum Filter {
    /// All of them hold.
    All(Vec<Filter>),
    /// One of them holds.
    Any(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
    /// A condition.
    One(Condition),
    /// It contains these words.
    Finds(Words),
}

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
    /// The value's key lies in one of these ranges, which are in order and apart.
    Within(Vec<Range>),
    /// There is no value, or its key lies in none of these.
    Outside(Vec<Range>),
    /// The text is one of these, which are composed (NFC).
    Text(Vec<String>),
    /// There is no text, or it is not this one.
    NotText(String),
    /// The text fits.
    Like(Pattern),
    /// The list has one of these elements.
    Has(Vec<Value>),
    /// The list has not this element.
    HasNot(Value),
    /// The JSON is equal.
    Json(Value),
    /// There is no JSON, or it is not equal.
    NotJson(Value),
}

/// Keys from `from` up to, and without, `to`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Range {
    /// The first.
    pub from: Vec<u8>,
    /// The first behind.
    pub to: Vec<u8>,
}

impl Range {
    /// All keys of values.
    pub fn values() -> Self {
        Self { from: vec![key::VALUE], to: vec![key::NOTHING] }
    }

    /// The keys of items without a value.
    pub fn nothing() -> Self {
        Self { from: vec![key::NOTHING], to: vec![key::NOTHING + 1] }
    }

    /// One key.
    pub fn of(key: Vec<u8>) -> Self {
        let to = behind(&key);
        Self { from: key, to }
    }

    /// All keys that begin so.
    pub fn under(prefix: Vec<u8>) -> Self {
        let mut to = prefix.clone();
        while let Some(last) = to.pop() {
            if last < u8::MAX {
                to.push(last + 1);
                break;
            }
        }
        Self { from: prefix, to }
    }

    /// Whether a key is one of them.
    pub fn has(&self, key: &[u8]) -> bool {
        self.from.as_slice() <= key && key < self.to.as_slice()
    }

    /// Whether it is one key.
    pub fn is_one(&self) -> bool {
        self.to.strip_suffix(&[0]) == Some(self.from.as_slice())
    }

    /// Whether there can be none.
    pub fn is_empty(&self) -> bool {
        self.from >= self.to
    }

    /// What is in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self { from: self.from.clone().max(other.from.clone()), to: self.to.clone().min(other.to.clone()) }
    }
}

/// The least key behind `key`.
pub fn behind(key: &[u8]) -> Vec<u8> {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next
}

/// Puts ranges in order and joins those that touch.
pub fn joined(mut ranges: Vec<Range>) -> Vec<Range> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable();
    let mut joined: Vec<Range> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.from <= last.to => last.to = last.to.clone().max(range.to),
            _ => joined.push(range),
        }
    }
    joined
}

impl Filter {
    /// Reads what a tree compares with. Days are those of `now`.
    ///
    /// # Errors
    /// 400 `validation_error` with the path of what is wrong.
    pub fn of(shape: &Shape, node: &Node, now: Timestamp) -> Result<Self> {
        let all = |nodes: &[Node]| -> Result<Vec<Self>> {
            nodes.iter().map(|node| Self::of(shape, node, now)).collect()
        };
        Ok(match node {
            Node::And(nodes) => Self::All(all(nodes)?),
            Node::Or(nodes) => Self::Any(all(nodes)?),
            Node::Not(node) => Self::Not(Box::new(Self::of(shape, node, now)?)),
            Node::Is(comparison) => Self::One(operand::read(shape, comparison, now)?),
        })
    }

    /// Whether an item fits. `links` tells whether a relation field points to one of some ids where the item's own
    /// values do not say, because they hold the first few only.
    ///
    /// # Errors
    /// What `links` fails with.
    pub fn fits(
        &self,
        shape: &Shape,
        facts: Facts<'_>,
        links: &mut dyn FnMut(FieldId, &[Value]) -> Result<bool>,
    ) -> Result<bool> {
        match self {
            Self::All(filters) => {
                for filter in filters {
                    if !filter.fits(shape, facts, links)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Self::Any(filters) => {
                for filter in filters {
                    if filter.fits(shape, facts, links)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Self::Not(filter) => Ok(!filter.fits(shape, facts, links)?),
            Self::One(condition) => condition.fits(shape, facts, links),
            Self::Finds(words) => Ok(words.fit(shape, facts)),
        }
    }

    /// The conditions that must all hold, whatever else must.
    pub fn musts(&self) -> Vec<&Condition> {
        match self {
            Self::All(filters) => filters.iter().flat_map(Self::musts).collect(),
            Self::Any(filters) => match filters.as_slice() {
                [one] => one.musts(),
                _ => Vec::new(),
            },
            Self::Not(_) | Self::Finds(_) => Vec::new(),
            Self::One(condition) => vec![condition],
        }
    }

    /// Whether every item fits.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::All(filters) if filters.iter().all(Self::is_empty))
    }

    /// Whether it is nothing but conditions that must all hold.
    pub fn is_conjunction(&self) -> bool {
        match self {
            Self::All(filters) => filters.iter().all(Self::is_conjunction),
            Self::One(_) => true,
            Self::Any(_) | Self::Not(_) | Self::Finds(_) => false,
        }
    }

    /// Everything that it looks at.
    pub fn subjects(&self, shape: &Shape, into: &mut BTreeSet<FieldId>) {
        match self {
            Self::All(filters) | Self::Any(filters) => {
                filters.iter().for_each(|filter| filter.subjects(shape, into));
            }
            Self::Not(filter) => filter.subjects(shape, into),
            Self::Finds(_) => into.extend(super::words::searchable(shape).map(|field| field.id)),
            Self::One(condition) => {
                if let Subject::Field(id) = condition.subject {
                    into.insert(id);
                }
            }
        }
    }
}

impl Condition {
    fn fits(
        &self,
        shape: &Shape,
        facts: Facts<'_>,
        links: &mut dyn FnMut(FieldId, &[Value]) -> Result<bool>,
    ) -> Result<bool> {
        Ok(match &self.test {
            Test::Within(ranges) => {
                let key = self.key(shape, facts);
                ranges.iter().any(|range| range.has(&key))
            }
            Test::Outside(ranges) => {
                let key = self.key(shape, facts);
                !ranges.iter().any(|range| range.has(&key))
            }
            Test::Empty => self.is_empty(shape, facts),
            Test::Filled => !self.is_empty(shape, facts),
            Test::Text(texts) => self.with_text(shape, facts, |text| {
                text.is_some_and(|text| texts.iter().any(|other| *other == text::nfc(text)))
            }),
            Test::NotText(other) => {
                self.with_text(shape, facts, |text| text.is_none_or(|text| *other != text::nfc(text)))
            }
            Test::Like(pattern) => {
                self.with_text(shape, facts, |text| text.is_some_and(|text| pattern.fits(text)))
            }
            Test::Has(elements) => self.has(shape, facts, elements, links)?,
            Test::HasNot(element) => !self.has(shape, facts, std::slice::from_ref(element), links)?,
            Test::Json(other) => {
                self.value(shape, facts).is_some_and(|value| operand::same_json(value, other))
            }
            Test::NotJson(other) => {
                !self.value(shape, facts).is_some_and(|value| operand::same_json(value, other))
            }
        })
    }

    fn key(&self, shape: &Shape, facts: Facts<'_>) -> Vec<u8> {
        let mut key = Vec::with_capacity(16);
        facts.push_part(shape, Part { subject: self.subject, desc: false }, &mut key);
        key
    }

    fn value<'a>(&self, shape: &Shape, facts: Facts<'a>) -> Option<&'a Value> {
        match self.subject {
            Subject::Field(id) => facts.data.get(&shape.field_by_id(id)?.key),
            Subject::System(_) => None,
        }
    }

    fn with_text(&self, shape: &Shape, facts: Facts<'_>, ask: impl FnOnce(Option<&str>) -> bool) -> bool {
        match self.subject {
            Subject::Field(_) => ask(self.value(shape, facts).and_then(Value::as_str)),
            Subject::System(system) => ask(facts.system_text(system).as_deref()),
        }
    }

    /// Whether there is no value or an empty text. What no longer compares, such as a choice that is gone, is none.
    fn is_empty(&self, shape: &Shape, facts: Facts<'_>) -> bool {
        if !self.family.is_ordered() {
            return self.value(shape, facts).is_none();
        }
        let key = self.key(shape, facts);
        key == [key::NOTHING] || (self.family == Family::Text && key == empty_text())
    }

    fn has(
        &self,
        shape: &Shape,
        facts: Facts<'_>,
        elements: &[Value],
        links: &mut dyn FnMut(FieldId, &[Value]) -> Result<bool>,
    ) -> Result<bool> {
        let values = self.value(shape, facts).and_then(Value::as_array);
        if values.is_some_and(|values| values.iter().any(|value| elements.contains(value))) {
            return Ok(true);
        }
        match (self.subject, &facts.row.more) {
            (Subject::Field(id), Some(_)) => links(id, elements),
            _ => Ok(false),
        }
    }
}

/// The key of an empty text.
fn empty_text() -> Vec<u8> {
    let mut key = Vec::new();
    key::push_text(&mut key, Some(""), false);
    key
}

impl Condition {
    /// The ranges in which the keys of all values that fit lie; `None` where they may lie anywhere.
    pub fn ranges(&self) -> Option<Vec<Range>> {
        let of_text = |text: &String| {
            let mut key = Vec::new();
            key::push_text(&mut key, Some(text), false);
            Range::of(key)
        };
        match &self.test {
            Test::Empty => Some(vec![Range::of(empty_text()), Range::nothing()]),
            Test::Filled => Some(vec![Range::values()]),
            Test::Within(ranges) => Some(ranges.clone()),
            Test::Text(texts) => Some(joined(texts.iter().map(of_text).collect())),
            Test::Like(pattern) if self.family == Family::Text => {
                let prefix = pattern.folded_prefix();
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

    /// The one key that all values that fit have.
    pub fn only_key(&self) -> Option<Vec<u8>> {
        match self.ranges()?.as_slice() {
            [range] if range.is_one() => Some(range.from.clone()),
            _ => None,
        }
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
