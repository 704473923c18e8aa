//! The order of a list.

use crate::definitions::column::SystemColumn;
use crate::definitions::set::FieldSet;
use crate::definitions::subject::{Part, Subject};
use crate::filter::{Filter, name_of, subject};
use crate::key;
use crate::record::Record;
use crate::values::kind::Family;
use input::comma_list;
use model::{Error, FieldId, Result};
use std::collections::BTreeSet;

/// The most fields to sort by.
pub(crate) const MOST_PARTS: usize = 4;

/// An order. Items without a value come last in both directions, equal ones go by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sort {
    /// What is compared, the most important first. Never the id, which is always last.
    pub parts: Vec<Part>,
    /// Whether greater ids come first among equal records: the direction of the last part.
    pub newest_first: bool,
}

/// A place in an order whose texts have a greatest length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CutPlace {
    /// What is compared, up to the first text that was cut.
    pub parts: Vec<u8>,
    /// Where the text begins that was cut, and whether its direction is downwards.
    cut_at: Option<(usize, bool)>,
    id: Vec<u8>,
}

impl CutPlace {
    /// Whether other places can have the same parts that stand elsewhere in the order.
    pub fn is_cut(&self) -> bool {
        self.cut_at.is_some()
    }

    /// The place as bytes.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.parts.append(&mut self.id);
        self.parts
    }

    /// The place before all that have the same parts.
    pub fn before_all(mut self) -> Vec<u8> {
        if let Some((start, desc)) = self.cut_at {
            key::close_cut(&mut self.parts, start, desc);
        }
        self.into_bytes()
    }
}

impl Sort {
    /// The order by these parts; by none, the newest come first.
    pub fn of(parts: &[Part]) -> Self {
        let is_id = |part: &&Part| part.subject == Subject::System(SystemColumn::Id);
        // Behind the id nothing is equal.
        let by_id = parts.iter().find(is_id);
        let parts: Vec<Part> = parts.iter().take_while(|part| !is_id(part)).copied().collect();
        let newest_first = by_id.or(parts.last()).is_none_or(|part| part.desc);
        Self { parts, newest_first }
    }

    /// A record's place in this order, as bytes, with all of its texts.
    pub fn key(&self, fields: &FieldSet, record: Record<'_>) -> Vec<u8> {
        let mut key = Vec::with_capacity(16 * self.parts.len() + 8);
        for part in &self.parts {
            record.push_part(fields, *part, &mut key);
        }
        key::push_id(&mut key, record.id(), self.newest_first);
        key
    }

    /// A place with at most so many bytes of each text. What stands behind a text that was cut is left out, but for the id.
    /// `None` for what is no place in this order.
    pub fn cut(&self, fields: &FieldSet, place: &[u8], most: usize) -> Option<CutPlace> {
        let (mut rest, id) = place.split_at_checked(place.len().checked_sub(8)?)?;
        let mut parts = Vec::with_capacity(place.len().min(1_024));
        for part in &self.parts {
            let family = part.subject.family(fields)?;
            let (length, mut is_cut) = key::first_part(rest, family, part.desc)?;
            let (bytes, behind) = rest.split_at_checked(length)?;
            let start = parts.len();
            parts.extend_from_slice(bytes);
            is_cut |= family == Family::Text && key::cut_text(&mut parts, start, most, part.desc);
            if is_cut {
                return Some(CutPlace { parts, cut_at: Some((start, part.desc)), id: id.to_vec() });
            }
            rest = behind;
        }
        rest.is_empty().then(|| CutPlace { parts, cut_at: None, id: id.to_vec() })
    }

    /// The parts of a place in this order, and the id that it ends in.
    pub fn split<'a>(&self, place: &'a [u8]) -> Option<(&'a [u8], i64)> {
        let (parts, id) = place.split_at_checked(place.len().checked_sub(8)?)?;
        Some((parts, key::id_of(id, self.newest_first)?))
    }

    /// The same order without what a filter lets have one value only.
    #[must_use]
    pub fn under(mut self, filter: &Filter) -> Self {
        let musts = filter.musts();
        let is_fixed = |part: &Part| {
            musts.iter().any(|condition| condition.subject == part.subject && condition.only_key().is_some())
        };
        self.parts.retain(|part| !is_fixed(part));
        self
    }

    /// The fields that it looks at.
    pub fn fields(&self, into: &mut BTreeSet<FieldId>) {
        into.extend(self.parts.iter().filter_map(|part| match part.subject {
            Subject::Field(id) => Some(id),
            Subject::System(_) => None,
        }));
    }
}

/// Reads `-price,name`.
///
/// # Errors
/// 400 `validation_error` about `param`.
pub fn read_list(fields: &FieldSet, text: &str, param: &str) -> Result<Vec<Part>> {
    let parts = comma_list(text, param)?;
    if parts.len() > MOST_PARTS {
        return Err(Error::invalid(param, format_args!("must have at most {MOST_PARTS} fields")));
    }
    parts.into_iter().map(|part| read(fields, part, param)).collect()
}

/// Reads `-price`.
///
/// # Errors
/// 400 `validation_error` about `param`.
pub fn read(fields: &FieldSet, text: &str, param: &str) -> Result<Part> {
    let (desc, name) = match text.strip_prefix('-') {
        Some(name) => (true, name),
        None => (false, text),
    };
    let subject = subject(fields, name, param)?;
    if !subject.family(fields).is_some_and(Family::is_ordered) {
        return Err(Error::invalid(param, format_args!("contains `{name}`, whose values have no order")));
    }
    Ok(Part { subject, desc })
}

/// Prints `-price`.
pub fn print(part: Part, fields: &FieldSet) -> String {
    format!("{}{}", if part.desc { "-" } else { "" }, name_of(part.subject, fields))
}
