//! Choices that values name and that do not exist yet: where text is read as what fields want, they are made.

use super::activity::{self, Action, Changes, change};
use super::row::Data;
use crate::author::Author;
use crate::shape::{self, Choice, Field, FieldOptions, FieldType, Shape};
use crate::text;
use diesel::prelude::*;
use model::{FieldId, JsonText, OptionId, Result};
use serde_json::{Value, json};
use store::Tx;
use store::schema::collection_fields;

/// The most choices of a field.
const MOST: usize = 200;

/// Longer texts are not made choices.
const LONGEST: usize = 120;

/// What is to become choices of a field.
pub(super) type Wanted = Vec<(FieldId, Vec<String>)>;

/// The texts that name no choice of their field, by field.
pub(super) fn missing<'a>(shape: &Shape, inputs: impl Iterator<Item = &'a Data>) -> Wanted {
    let mut wanted = Wanted::new();
    let fields: Vec<&Field> = shape
        .fields
        .iter()
        .filter(|field| matches!(field.kind, FieldType::Select | FieldType::MultiSelect))
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

/// Makes choices of a collection that this transaction holds for a change. What is more than a field may have is left
/// out, and refused as unknown when the values are checked.
///
/// # Errors
/// The database's.
pub(super) fn make(tx: &mut Tx, shape: &Shape, author: &Author, wanted: Wanted) -> Result<()> {
    let mut changes = Changes::new();
    for (id, names) in wanted {
        let Some(field) = shape.field_by_id(id) else { continue };
        let mut options: FieldOptions = field.options.clone();
        let mut next: i64 = collection_fields::table
            .find(id)
            .select(collection_fields::next_number)
            .get_result(tx.connection())?;
        let choices = options.choices.get_or_insert_default();
        // Numbers that were given to choices by other means count too.
        next = choices.iter().map(|choice| choice.id.0 + 1).max().unwrap_or(1).max(next);
        let before: Vec<String> = choices.iter().map(|choice| choice.key.clone()).collect();
        for label in names {
            if choices.len() >= MOST {
                break;
            }
            let key = free_key(choices, &label);
            choices.push(Choice { id: OptionId(next), key, label, color: None, archived: false });
            next += 1;
        }
        let after: Vec<String> = choices.iter().map(|choice| choice.key.clone()).collect();
        let now = tx.now();
        diesel::update(collection_fields::table.find(id))
            .set((
                collection_fields::options.eq(JsonText::of(&options)),
                collection_fields::next_number.eq(next),
                collection_fields::version.eq(field.version + 1),
                collection_fields::updated_at.eq(now),
            ))
            .execute(tx.connection())?;
        let path = format!("fields.{}.options.choices", field.key);
        changes.insert(path, change(Some(&json!(before)), Some(&json!(after))));
    }
    shape::bump(tx, shape.collection)?;
    activity::record(tx, author, shape.collection, None, Action::SchemaChanged, &changes)
}

/// A key made of a label: lower-case letters, digits and underscores, with a number behind where it is taken.
fn free_key(choices: &[Choice], label: &str) -> String {
    let mut key = String::new();
    for letter in text::fold(label).chars() {
        if letter.is_ascii_alphanumeric() {
            key.push(letter);
        } else if !key.is_empty() && !key.ends_with('_') {
            key.push('_');
        }
    }
    let key: String = key.trim_end_matches('_').chars().take(50).collect();
    let base = if key.is_empty() { "choice".to_owned() } else { key };
    let taken = |key: &str| choices.iter().any(|choice| choice.key == key);
    if !taken(&base) {
        return base;
    }
    (2..).map(|number| format!("{base}_{number}")).find(|key| !taken(key)).unwrap_or(base)
}
