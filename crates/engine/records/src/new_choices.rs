//! Choices that values name and that do not exist yet: where text is read as what fields want, they are made.

use crate::Author;
use crate::definitions;
use crate::shape::{self, Shape, Shapes};
use fields::Data;
use fields::option_rules::MOST_CHOICES;
use fields::text;
use fields::{Choice, Field, FieldType};
use model::{CollectionId, FieldId, OptionId, Result};
use serde_json::Value;
use store::Tx;

/// Longer texts are not made choices.
const LONGEST: usize = 120;

/// What is to become choices of a field.
type NewChoices = Vec<(FieldId, Vec<String>)>;

/// The texts that name no choice of their field, by field.
fn missing<'a>(shape: &Shape, inputs: impl Iterator<Item = &'a Data>) -> NewChoices {
    let mut wanted = NewChoices::new();
    let fields: Vec<&Field> = shape
        .fields
        .iter()
        .filter(|field| {
            matches!(field.kind, FieldType::Select | FieldType::MultiSelect) && field.is_changeable()
        })
        .collect();
    if fields.is_empty() {
        return wanted;
    }
    for input in inputs {
        for field in &fields {
            for name in input.get(&field.key).map(|value| names(field, value)).unwrap_or_default() {
                if is_known(field.options.choices(), &name) {
                    continue;
                }
                let place = wanted.iter().position(|(id, _)| *id == field.id).unwrap_or_else(|| {
                    wanted.push((field.id, Vec::new()));
                    wanted.len() - 1
                });
                let Some((_, names)) = wanted.get_mut(place) else { continue };
                if !names.iter().any(|other| text::fold(other) == text::fold(&name)) {
                    names.push(name);
                }
            }
        }
    }
    wanted
}

/// What a value says, one text for each choice.
fn names(field: &Field, value: &Value) -> Vec<String> {
    let one = |value: &Value| match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    let names: Vec<String> = match (field.kind, value) {
        (FieldType::MultiSelect, Value::Array(values)) => values.iter().filter_map(one).collect(),
        (FieldType::MultiSelect, Value::String(text)) => {
            text.split([',', ';']).map(|part| part.trim().to_owned()).collect()
        }
        (FieldType::Select, value) => one(value).into_iter().collect(),
        _ => Vec::new(),
    };
    names.into_iter().filter(|name| !name.is_empty() && name.chars().count() <= LONGEST).collect()
}

fn is_known(choices: &[Choice], name: &str) -> bool {
    let folded = text::fold(name);
    choices.iter().any(|choice| choice.key == name || text::fold(&choice.label) == folded)
}

/// Adds the choices to the fields of a collection that values name and that do not exist yet, and publishes that. What is more
/// than a field may have is left out, and refused as unknown when the values are checked. Nothing of the collection may be
/// locked before.
///
/// # Errors
/// `not_found`.
pub fn add_missing<'a>(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    collection: CollectionId,
    inputs: impl Iterator<Item = &'a Data> + Clone,
) -> Result<()> {
    // Looked at first without holding anything, because a change of the shape has to begin with its own lock.
    let shape = shape::for_read(tx, shapes, author.workspace, collection)?;
    if shape.archived || missing(&shape, inputs.clone()).is_empty() {
        return Ok(());
    }
    shape::for_change(tx, author.workspace, collection)?;
    let shape = shape::for_read(tx, shapes, author.workspace, collection)?;
    if shape.archived {
        return Ok(());
    }
    missing(&shape, inputs)
        .into_iter()
        .try_for_each(|(field, labels)| definitions::add_choices(tx, shapes, author, &shape, field, labels))
}

/// Gives a shape the choices that [`add_missing`] would add, for values that are checked and never stored.
pub fn suppose_missing<'a>(shape: &mut Shape, inputs: impl Iterator<Item = &'a Data>) {
    for (id, labels) in missing(shape, inputs) {
        let known = shape.field_by_id(id).map_or(0, |field| field.options.choices().len());
        let supposed =
            (0..).zip(labels).take(MOST_CHOICES.saturating_sub(known)).map(|(place, label)| Choice {
                // No choice that is stored has such an id.
                id: OptionId(i64::MIN + place),
                key: label.clone(),
                label,
                color: None,
                archived: false,
            });
        shape.fields.add_choices(id, supposed);
    }
}
