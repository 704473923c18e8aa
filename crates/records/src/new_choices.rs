//! Choices that values name and that do not exist yet: where text is read as what fields want, they are made.

use crate::Author;
use crate::definitions;
use crate::shape::{Shape, Shapes};
use fields::Data;
use fields::text;
use fields::{Choice, Field, FieldType};
use model::{FieldId, Result};
use serde_json::Value;
use store::Tx;

/// Longer texts are not made choices.
const LONGEST: usize = 120;

/// What is to become choices of a field.
pub(crate) type NewChoices = Vec<(FieldId, Vec<String>)>;

/// The texts that name no choice of their field, by field.
pub fn missing<'a>(shape: &Shape, inputs: impl Iterator<Item = &'a Data>) -> NewChoices {
    let mut wanted = NewChoices::new();
    let fields: Vec<&Field> = shape
        .fields
        .iter()
        .filter(|field| {
            matches!(field.kind, FieldType::Select | FieldType::MultiSelect) && !field.is_built_in()
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

/// Makes choices of a collection that this transaction holds for a change, and tells of them. What is more than a field
/// may have is left out, and refused as unknown when the values are checked.
///
/// # Errors
/// The database's.
pub fn make(tx: &mut Tx, shapes: &Shapes, shape: &Shape, author: &Author, wanted: NewChoices) -> Result<()> {
    wanted
        .into_iter()
        .try_for_each(|(field, labels)| definitions::add_choices(tx, shapes, author, shape, field, labels))
}
