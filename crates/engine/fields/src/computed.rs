//! Values that a record's own values decide: formulas.

use crate::definitions::field::Field;
use crate::definitions::set::FieldSet;
use crate::record::Data;
use crate::values::computed_error::{ComputedError, ComputedErrors};
use serde_json::Value;

/// Keeps the result of a computed field, or why there is none.
pub fn keep(
    key: &str,
    result: Result<Option<Value>, ComputedError>,
    data: &mut Data,
    errors: &mut ComputedErrors,
) {
    errors.remove(key);
    match result {
        Ok(Some(value)) => data.insert(key.to_owned(), value),
        Ok(None) => data.shift_remove(key),
        Err(error) => {
            errors.insert(key.to_owned(), error);
            data.shift_remove(key)
        }
    };
}

/// Computes what a record's own values decide, and puts them in the order of the fields.
pub fn derive(fields: &FieldSet, data: &mut Data, errors: &mut ComputedErrors) {
    formulas(fields, data, errors);
    if fields.iter().any(|field| field.kind.is_read_only()) {
        order(fields, data);
    }
}

/// Puts the values in the order of the fields; those of no field go.
pub fn order(fields: &FieldSet, data: &mut Data) {
    let mut unordered = std::mem::take(data);
    let of = |field: &Field| unordered.remove(&field.key).map(|value| (field.key.clone(), value));
    *data = fields.iter().filter_map(of).collect();
}

/// Computes the formulas of a record, each after those that it reads.
pub fn formulas(fields: &FieldSet, data: &mut Data, errors: &mut ComputedErrors) {
    for field in fields.formulas() {
        let read = |field: &Field| {
            errors.get(&field.key).map_or(Ok(data.get(&field.key).cloned()), |error| Err(*error))
        };
        let result = match field.options.result_error {
            Some(error) => Err(error),
            None => field.formula().map_or(Ok(None), |formula| formula.value(fields, &read)),
        };
        keep(&field.key, result, data, errors);
    }
}
