//! One field of an item: setting it, clearing it, adding to it.

use super::desk::{self, Desk, Shown};
use super::find;
use super::model::{Increment, NewFieldValue, expected, mode};
use super::operations::Change;
use super::row::Data;
use super::values::{self, Missing};
use crate::shape::{Field, FieldType, Shapes};
use crate::value::{self, Mode, Problem};
use model::{Caller, Code, CollectionId, Error, ItemId, Patch, Result};
use operation::{Body, IfMatch, Path, State, operation};
use serde_json::{Value, json};
use store::Tx;

/// Set one field
#[operation(patch "/collections/{collectionId}/items/{itemId}/fields/{fieldKey}", scope = "items:write")]
#[expect(clippy::too_many_arguments, reason = "the address has three parameters")]
pub fn set_item_field(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Path(field_key): Path<String>,
    Body(new): Body<NewFieldValue>,
    IfMatch(version): IfMatch,
    shapes: State<Shapes>,
) -> Result<Shown> {
    let version = expected(new.version, version)?;
    let input = Data::from_iter([(field_key.clone(), new.value.clone())]);
    let inputs = std::iter::once(&input);
    let desk = Desk::open_for(tx, caller, &shapes.0, collection_id, new.typecast, inputs)?;
    let row = change_of(&input, mode(new.typecast), None).locked(tx, &desk, item_id)?;
    let field = field_of(&desk, &field_key)?;
    let checked = values::checked(field, &new.value, row.values()?.get(&field_key), mode(new.typecast));
    let value = checked.map_err(|problem| refused(problem, "value"))?.unwrap_or_default();
    let row = set(tx, &desk, row, &field_key, value, version)?;
    desk::shown(&desk.shape, &row)
}

/// Clear one field
#[operation(delete "/collections/{collectionId}/items/{itemId}/fields/{fieldKey}", scope = "items:write")]
pub fn clear_item_field(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Path(field_key): Path<String>,
    IfMatch(version): IfMatch,
    shapes: State<Shapes>,
) -> Result<Shown> {
    let desk = Desk::open(tx, caller, &shapes.0, collection_id)?;
    let input = Data::from_iter([(field_key.clone(), Value::Null)]);
    let row = change_of(&input, Mode::Strict, None).locked(tx, &desk, item_id)?;
    field_of(&desk, &field_key)?;
    let row = set(tx, &desk, row, &field_key, Value::Null, version)?;
    desk::shown(&desk.shape, &row)
}

/// Add to a number field atomically
///
/// A field without a value counts as 0. Where the sum would leave the bounds, of the request or of the field, nothing
/// changes and the answer is 409 `invalid_state` with the value as it is.
#[operation(post "/collections/{collectionId}/items/{itemId}/increment", scope = "items:write")]
pub fn increment_item_field(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(increment): Body<Increment>,
    IfMatch(version): IfMatch,
    shapes: State<Shapes>,
) -> Result<Shown> {
    let desk = Desk::open(tx, caller, &shapes.0, collection_id)?;
    let row = find::locked(tx, &desk.shape, item_id)?;
    let field = desk.shape.field(&increment.field).ok_or_else(|| {
        let near = desk.shape.nearest(&increment.field).map(|near| format!("; did you mean `{near}`?"));
        refused(
            Problem::new(
                "unknown_field",
                format!("is not a field of this collection{}", near.unwrap_or_default()),
            ),
            "field",
        )
    })?;
    let sum = sum(field, row.values()?.get(&field.key), &increment)?;
    let row = set(tx, &desk, row, &increment.field, sum, version)?;
    desk::shown(&desk.shape, &row)
}

fn field_of<'a>(desk: &'a Desk<'_>, key: &str) -> Result<&'a Field> {
    desk.shape.field(key).ok_or_else(|| Error::not_found("field"))
}

fn set(
    tx: &mut Tx,
    desk: &Desk<'_>,
    row: super::ItemRow,
    key: &str,
    value: Value,
    version: Option<i64>,
) -> Result<super::ItemRow> {
    let data = Data::from_iter([(key.to_owned(), value)]);
    Ok(change_of(&data, Mode::Strict, version).make(tx, desk, row)?.row)
}

fn change_of(data: &Data, mode: Mode, version: Option<i64>) -> Change<'_> {
    Change { data, missing: Missing::Keep, mode, external_key: Patch::Keep, version, path: "" }
}

fn refused(problem: Problem, param: &str) -> Error {
    // One error always makes one.
    Error::all_invalid(vec![problem.at(param)]).unwrap_or_else(|| Error::invalid(param, "is not valid"))
}

/// What a field holds after an increment, within all bounds.
fn sum(field: &Field, stored: Option<&Value>, increment: &Increment) -> Result<Value> {
    let whole = field.kind == FieldType::Integer || field.kind == FieldType::Rating;
    let decimal = matches!(
        field.kind,
        FieldType::Number | FieldType::Currency | FieldType::Percent | FieldType::Duration
    );
    if !whole && !decimal {
        return Err(Error::invalid("field", "must be a field of numbers that can be written"));
    }
    let zero = Value::from(0);
    let (stored, by) = (stored.unwrap_or(&zero), increment.by);
    if whole && by.fract() != 0.0 {
        return Err(Error::invalid("by", "must be a whole number"));
    }
    let sum = if whole { whole_sum(stored, by) } else { decimal_sum(stored, by) };
    let crossed = || {
        let details = json!({
            "state": "out_of_bounds", "value": stored, "by": by, "min": increment.min, "max": increment.max,
        });
        let message = format!("The value of `{}` would leave its bounds.", field.key);
        Error::new(Code::InvalidState, message).param("by").with("details", details)
    };
    let number = sum.as_f64().unwrap_or(f64::NAN);
    let inside =
        increment.min.is_none_or(|min| number >= min) && increment.max.is_none_or(|max| number <= max);
    if !inside {
        return Err(crossed());
    }
    match value::check(field, &sum, Mode::Strict) {
        Ok(value) => Ok(value.unwrap_or_default()),
        Err(problem) if problem.code == "out_of_range" => Err(crossed()),
        Err(problem) => Err(refused(problem, "by")),
    }
}

/// What leaves the range of whole numbers stays at its end, which no field holds.
fn whole_sum(stored: &Value, by: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    stored.as_i64().unwrap_or_default().saturating_add(by as i64).into()
}

/// To 15 significant digits, which is what a field holds: 0.1 and 0.2 make 0.3.
fn decimal_sum(stored: &Value, by: f64) -> Value {
    let sum = stored.as_f64().unwrap_or_default() + by;
    value::json_of(format!("{sum:.14e}").parse().unwrap_or(sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_add_up_as_people_expect() {
        for (stored, by, sum) in [
            (0.1, 0.2, json!(0.3)),
            (1.1, -1.1, json!(0)),
            (19.99, 0.01, json!(20)),
            (99_999_999_999_999.9, 0.1, json!(100_000_000_000_000_i64)),
        ] {
            assert_eq!(decimal_sum(&json!(stored), by), sum, "{stored} + {by}");
        }
        assert_eq!(whole_sum(&json!(7), -9.0), json!(-2));
        assert_eq!(whole_sum(&json!(7), f64::MAX), json!(i64::MAX));
    }
}
