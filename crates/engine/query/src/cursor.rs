//! Cursors of lists: where a page begins.

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
        return place_of(shape, query, &row);
    }
    let ListPosition(place) = cursors.decode(after)?.read()?;
    Ok(place)
}

/// The place of an item as it is now.
fn place_of(shape: &Shape, query: &Query, row: &ItemRow) -> Result<Vec<u8>> {
    let mut fields = BTreeSet::new();
    query.sort.fields(&mut fields);
    let of_the_order = shape.fields.iter().filter(|field| fields.contains(&field.id));
    let keys: Vec<&str> = of_the_order.map(|field| field.key.as_str()).collect();
    let data = pick(row.data.as_str(), &keys)?;
    Ok(query.sort.key(shape, row.record(&data)))
}

/// Shortens a place to what a cursor can carry: addresses must not be long. Behind a longer text the item itself tells where
/// it stands, as long as it is there.
pub(crate) fn shorten(sort: &Sort, shape: &Shape, place: &mut Vec<u8>) {
    if place.len() > key::MOST_TEXT
        && let Some(short) = sort.cut(shape, place, key::MOST_TEXT).filter(CutPlace::is_cut)
    {
        *place = short.into_bytes();
    }
}

/// The whole of a place that may have been shortened. Where the item is gone or stands elsewhere, items whose texts begin
/// alike come once more rather than not at all.
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
