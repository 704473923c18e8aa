//! The manual order of records: moving one between two others.

use super::editor::Editor;
use super::find::live;
use super::place;
use super::row::{ItemRow, natural_place};
use super::write::Draft;
use crate::schema::items;
use diesel::dsl::{max, min};
use diesel::prelude::*;
use model::{Code, Error, ItemId, Result};
use store::Tx;

/// Places are ordered by their first 256 bytes; longer ones than this are not given out.
const LONGEST: usize = 200;

/// What such moves do one at a time in a set of records.
pub const IN_ORDER: &str = "in order";

/// A spot in the manual order.
#[derive(Debug, Clone, Copy)]
pub enum Spot {
    /// Before all others.
    First,
    /// After all others.
    Last,
    /// Right before another record.
    Before(ItemId),
    /// Right after another record.
    After(ItemId),
}

/// Moves a live, locked record to a spot, unless it stands there already. No other record is changed.
///
/// # Errors
/// `validation_error` and `not_found` at the neighbour; `limit_reached` where two neighbours have no room between them.
pub fn put(tx: &mut Tx, editor: &Editor<'_>, row: ItemRow, spot: Spot) -> Result<ItemRow> {
    let (low, high) = spot.neighbours(tx, editor, row.id)?;
    let now = row.place();
    let is_there = low.as_ref().is_none_or(|low| *low < now) && high.as_ref().is_none_or(|high| now < *high);
    if is_there {
        return Ok(row);
    }
    let place = place::between(low.as_deref(), high.as_deref());
    if place.len() > LONGEST {
        let message = format!(
            "There is no position left between the two {}s. Move one of them first.",
            editor.shape.kind.noun
        );
        return Err(Error::new(Code::LimitReached, message));
    }
    let draft = Draft { data: row.values()?, external_key: row.external_key.clone(), position: Some(place) };
    Ok(editor.writer().update(tx, row, draft)?.row)
}

impl Spot {
    /// The places between which the spot is, with no other item's between them. Items in the trash keep the places that
    /// they were given, so that they come back to them.
    fn neighbours(
        &self,
        tx: &mut Tx,
        editor: &Editor<'_>,
        item: ItemId,
    ) -> Result<(Option<String>, Option<String>)> {
        match self {
            Self::First => Ok((None, first_behind(tx, editor, item, None)?)),
            Self::Last => Ok((last_before(tx, editor, item, None)?, None)),
            Self::Before(other) => {
                let high = place_of(tx, editor, item, *other, "before")?;
                Ok((last_before(tx, editor, item, Some(&high))?, Some(high)))
            }
            Self::After(other) => {
                let low = place_of(tx, editor, item, *other, "after")?;
                let high = first_behind(tx, editor, item, Some(&low))?;
                Ok((Some(low), high))
            }
        }
    }
}

fn place_of(tx: &mut Tx, editor: &Editor<'_>, item: ItemId, other: ItemId, param: &str) -> Result<String> {
    if other == item {
        return Err(Error::invalid(param, format_args!("must be another {}", editor.shape.kind.noun)));
    }
    let row = live(tx, &editor.shape, other).map_err(|error| error.param(param))?;
    Ok(row.place())
}

/// The last place before `high`, or of all, but the item's own. An item that was moved away leaves its natural place
/// behind: it is nobody's then, and as good a neighbour.
fn last_before(tx: &mut Tx, editor: &Editor<'_>, item: ItemId, high: Option<&str>) -> Result<Option<String>> {
    let mut placed = items::table
        .filter(items::collection_id.eq(editor.shape.collection))
        .filter(items::position.is_not_null())
        .filter(items::id.ne(item))
        .select(max(items::position))
        .into_boxed();
    let mut born = items::table
        .filter(items::collection_id.eq(editor.shape.collection))
        .filter(items::trashed_at.is_null())
        .filter(items::id.ne(item))
        .select(max(items::id))
        .into_boxed();
    if let Some(high) = high {
        placed = placed.filter(items::position.lt(high.to_owned()));
        born = born.filter(items::id.lt(place::first_born_from(high)));
    }
    let placed: Option<String> = placed.get_result(tx.connection())?;
    let born: Option<ItemId> = born.get_result(tx.connection())?;
    Ok(placed.into_iter().chain(born.map(natural_place)).max())
}

/// The first place behind `low`, or of all, but the item's own.
fn first_behind(tx: &mut Tx, editor: &Editor<'_>, item: ItemId, low: Option<&str>) -> Result<Option<String>> {
    let mut placed = items::table
        .filter(items::collection_id.eq(editor.shape.collection))
        .filter(items::position.is_not_null())
        .filter(items::id.ne(item))
        .select(min(items::position))
        .into_boxed();
    let mut born = items::table
        .filter(items::collection_id.eq(editor.shape.collection))
        .filter(items::trashed_at.is_null())
        .filter(items::id.ne(item))
        .select(min(items::id))
        .into_boxed();
    if let Some(low) = low {
        placed = placed.filter(items::position.gt(low.to_owned()));
        born = born.filter(items::id.gt(place::last_born_to(low)));
    }
    let placed: Option<String> = placed.get_result(tx.connection())?;
    let born: Option<ItemId> = born.get_result(tx.connection())?;
    Ok(placed.into_iter().chain(born.map(natural_place)).min())
}
