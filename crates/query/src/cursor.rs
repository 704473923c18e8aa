//! Cursors of lists: where a page begins.

use super::types::Query;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{Error, ItemId, Result};
use operation::Cursors;
use records::rows::{find, pick};
use records::shape::Shape;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use store::Read;

/// Where a record stands in the order of a list: the bytes that it is sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPosition(pub Vec<u8>);

/// As cursors carry it.
impl fmt::Display for ListPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(&self.0))
    }
}

impl FromStr for ListPosition {
    type Err = base64::DecodeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        URL_SAFE_NO_PAD.decode(text).map(Self)
    }
}

/// The cursor of a place in a list.
pub fn cursor_at(cursors: &Cursors, place: &[u8]) -> String {
    cursors.encode(&ListPosition(place.to_vec()).to_string())
}

/// The place that a page goes on behind: that of a record as it is now, or the one in a cursor.
///
/// # Errors
/// 400 `validation_error` for what is neither.
pub fn place_behind(
    read: &mut Read,
    shape: &Shape,
    query: &Query,
    cursors: &Cursors,
    after: &str,
) -> Result<Vec<u8>> {
    if let Ok(id) = after.parse::<ItemId>() {
        let row = find(read, shape, id)?.ok_or_else(|| {
            let rule = format!("is not one of the {}s of this {}", shape.kind.noun, shape.noun());
            Error::invalid("starting_after", rule)
        })?;
        let mut fields = BTreeSet::new();
        query.sort.fields(&mut fields);
        let of_the_order = shape.fields.iter().filter(|field| fields.contains(&field.id));
        let keys: Vec<&str> = of_the_order.map(|field| field.key.as_str()).collect();
        let data = pick(row.data.as_str(), &keys)?;
        return Ok(query.sort.key(shape, row.record(&data)));
    }
    let ListPosition(place) = cursors.decode(after)?.read()?;
    Ok(place)
}
