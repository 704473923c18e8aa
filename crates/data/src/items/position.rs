//! Where items stand in the manual order of their collection.

use super::answer::{self, Shown};
use super::model::{End, ItemPosition};
use diesel::dsl::{max, min};
use diesel::prelude::*;
use model::{Caller, Code, CollectionId, Error, ItemId, Result};
use operation::{Body, IfMatch, Path, State, operation};
use records::rows;
use records::rows::Editor;
use records::rows::natural_place;
use records::rows::place;
use records::rows::write::Draft;
use records::schema::items;
use records::shape::Shapes;
use store::Tx;

/// Places are ordered by their first 256 bytes; longer ones than this are not given out.
const LONGEST: usize = 200;

/// Place an item in the manual order
///
/// `before` or `after` another item, or `position: "first"` or `"last"`. No other item is changed: `position` is a text
/// that stands between those of its neighbours. Items that were never moved stand in the order of their birth.
#[operation(put "/collections/{collectionId}/items/{itemId}/position", scope = "items:write")]
pub fn set_item_position(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(wanted): Body<ItemPosition>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<Shown> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    editor.alone(tx, "in order")?;
    let row = rows::locked(tx, &editor.shape, item_id)?;
    let spot = Spot::of(&wanted)?;
    rows::refuse_locked(&row)?;
    rows::expect_version(&editor.shape, &row, if_match.into())?;
    let (low, high) = spot.neighbours(tx, &editor, item_id)?;
    let now = row.place();
    let is_there = low.as_ref().is_none_or(|low| *low < now) && high.as_ref().is_none_or(|high| now < *high);
    if is_there {
        return answer::shown(&editor.shape, &row);
    }
    let place = place::between(low.as_deref(), high.as_deref());
    if place.len() > LONGEST {
        let message = "There is no room left between the two items; move one of them.";
        return Err(Error::new(Code::LimitReached, message));
    }
    let draft = Draft { data: row.values()?, external_key: row.external_key.clone(), position: Some(place) };
    let row = editor.writer().update(tx, row, draft)?.row;
    answer::shown(&editor.shape, &row)
}

/// A spot in the order.
enum Spot {
    First,
    Last,
    Before(ItemId),
    After(ItemId),
}

impl Spot {
    fn of(wanted: &ItemPosition) -> Result<Self> {
        match (wanted.before, wanted.after, wanted.position) {
            (Some(id), None, None) => Ok(Self::Before(id)),
            (None, Some(id), None) => Ok(Self::After(id)),
            (None, None, Some(End::First)) => Ok(Self::First),
            (None, None, Some(End::Last)) => Ok(Self::Last),
            _ => Err(Error::invalid("position", "is needed, or `before`, or `after`; and one of them only")),
        }
    }

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
        return Err(Error::invalid(param, "must be another item"));
    }
    let row = rows::live(tx, &editor.shape, other).map_err(|error| error.param(param))?;
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
