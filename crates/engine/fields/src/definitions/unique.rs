//! When two values of a unique field are the same.

use crate::definitions::field::Field;
use crate::values::kind::FieldType;
use crate::values::phone;
use expressions::text;
use serde_json::Value;

/// What is the same for all values of a field that count as one; `None` for an empty text, which is no value.
///
/// Of the fields that the service defines, e-mail addresses are the same whatever their case, and telephone numbers in
/// whatever form their country writes them.
pub fn identity(field: &Field, value: &Value) -> Option<Value> {
    let Value::String(text) = value else { return Some(value.clone()) };
    if text.is_empty() {
        return None;
    }
    let text = match field.kind {
        FieldType::Email if field.is_built_in() => text::name_key(text),
        FieldType::Phone if field.is_built_in() => phone::identity(text),
        _ => text::nfc(text).into_owned(),
    };
    Some(text.into())
}
