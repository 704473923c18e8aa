//! Cursors of lists: the position after which a page begins.

use super::types::Query;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fields::key;
use fields::sort::{CutPlace, Sort};
use model::{Error, ItemId, Result};
use operation::Cursors;
use records::rows::{ItemRow, find, pick};
use records::shape::Shape;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use store::Read;

/// The position of a record in the order of a list, as sort bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListPosition(pub Vec<u8>);

/// The encoding used in cursors.
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

/// Returns the cursor for a position in a list.
pub fn cursor_at(cursors: &Cursors, place: &[u8]) -> String {
    cursors.encode(&ListPosition(place.to_vec()).to_string())
}

/// Returns the position after which a page begins: that of a record as it is now, or the one in a cursor.
///
/// # Errors
/// 400 `validation_error` if it is neither.
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
        return place_of(shape, query, &row);
    }
    let ListPosition(place) = cursors.decode(after)?.read()?;
    Ok(place)
}

/// Returns the current position of an item.
fn place_of(shape: &Shape, query: &Query, row: &ItemRow) -> Result<Vec<u8>> {
    let mut fields = BTreeSet::new();
    query.sort.fields(&mut fields);
    let of_the_order = shape.fields.iter().filter(|field| fields.contains(&field.id));
    let keys: Vec<&str> = of_the_order.map(|field| field.key.as_str()).collect();
    let data = pick(row.data.as_str(), &keys)?;
    Ok(query.sort.key(shape, row.record(&data)))
}

/// Truncates a position to what fits in a URL. [`whole_place`] restores it from the item, as long as that exists.
pub(crate) fn shorten(sort: &Sort, shape: &Shape, place: &mut Vec<u8>) {
    if place.len() > key::MOST_TEXT
        && let Some(short) = sort.cut(shape, place, key::MOST_TEXT).filter(CutPlace::is_cut)
    {
        *place = short.into_bytes();
    }
}

/// Restores a position that was truncated. If its item was deleted or moved, the truncated position is used: items
/// whose texts have the same beginning may then be returned again, but none is skipped.
pub(crate) fn whole_place(read: &mut Read, shape: &Shape, query: &Query, place: &[u8]) -> Result<Vec<u8>> {
    let short = query.sort.cut(shape, place, usize::MAX / 2).filter(CutPlace::is_cut);
    let (Some(short), Some((_, id))) = (short, query.sort.split(place)) else { return Ok(place.to_vec()) };
    if let Some(row) = find(read, shape, ItemId(id))? {
        let whole = place_of(shape, query, &row)?;
        let mut again = whole.clone();
        shorten(&query.sort, shape, &mut again);
        if again == place {
            return Ok(whole);
        }
    }
    Ok(short.before_all())
}
