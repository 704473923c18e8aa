//! Choices that values name and that a select field does not have yet.

use super::change::stored;
use super::define::{self, Definition};
use super::events::publish_change;
use super::model::seen_field;
use crate::Author;
use crate::shape::{self, Shape, Shapes};
use fields::Choice;
use fields::option_rules::{MOST_CHOICES, settle_choices};
use model::{Error, FieldId, OptionId, Result};
use store::Tx;

/// Adds choices with these labels, which no choice has, to a field of a collection that this transaction holds for a
/// change. Those that the field has no room for are left out.
///
/// # Errors
/// The database's.
pub(crate) fn add_choices(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    shape: &Shape,
    id: FieldId,
    labels: Vec<String>,
) -> Result<()> {
    let row = stored(tx, shape, id)?;
    let field = row.clone().field()?;
    let mut next = Definition::of(&field, row.next_number);
    let choices = next.options.choices.get_or_insert_default();
    let room = MOST_CHOICES.saturating_sub(choices.len());
    choices.extend(labels.into_iter().take(room).map(|label| Choice {
        id: OptionId(0),
        key: String::new(),
        label,
        color: None,
        archived: false,
    }));
    if choices.len() == field.options.choices().len() {
        return Ok(());
    }
    settle_choices(choices, field.options.choices(), &mut next.next_number, "options")
        .map_err(|mistake| Error::internal(mistake.message))?;
    let before = seen_field(shape, id, None)?;
    define::store(tx, shape, id, &next, field.version + 1)?;
    shape::bump(tx, shape.collection)?;
    publish_change(tx, shapes, author, shape.collection, &before)
}
