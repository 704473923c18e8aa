//! Sample sets of fields, for unit tests.

use crate::{Choice, Field, FieldOptions, FieldSet, FieldType};
use model::{FieldId, OptionId};

/// A field of a sample, with the number `id`.
pub fn field(id: i64, key: &str, kind: FieldType, options: FieldOptions) -> Field {
    Field {
        id: FieldId(id),
        label: key.to_owned(),
        position: id,
        version: 1,
        ..Field::draft(key, kind, options)
    }
}

/// A set of these fields, numbered from 1.
pub fn fields(fields: Vec<(&str, FieldType, FieldOptions)>) -> FieldSet {
    let numbered = (1..).zip(fields);
    numbered.map(|(id, (key, kind, options))| field(id, key, kind, options)).collect()
}

/// Choices whose keys are `keys`, and whose labels are the same with a capital.
pub fn choices(keys: &[&str]) -> FieldOptions {
    let choice = |(id, key): (i64, &&str)| Choice {
        id: OptionId(id),
        key: (*key).to_owned(),
        label: key.split_at(1).0.to_uppercase() + key.split_at(1).1,
        color: None,
        archived: false,
    };
    FieldOptions { choices: Some((1..).zip(keys).map(choice).collect()), ..FieldOptions::default() }
}
