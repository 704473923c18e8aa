//! Operations on a single field of an item: set, clear, increment.

use super::answer::{self, ItemAnswer};
use super::model::{Increment, NewFieldValue, mode};
use fields::Data;
use fields::Problem;
use fields::decimal::{self, Decimal, Loss};
use fields::value::{self, Mode};
use fields::{Field, FieldType};
use model::{Caller, Code, CollectionId, Error, ItemId, Patch, Result};
use operation::{Body, ExpectedVersion, IfMatch, Path, State, operation};
use records::rows;
use records::rows::Editor;
use records::rows::ItemChange;
use records::rows::values::{self, Missing};
use records::shape::Shapes;
use serde_json::{Value, json};
use store::Tx;

/// Set one field
///
/// Sets the value of the field and returns the item. `null` clears the field. A computed or system field cannot be set.
#[operation(patch "/collections/{collectionId}/items/{itemId}/fields/{fieldKey}", scope = "items:write")]
#[expect(clippy::too_many_arguments, reason = "the address has three parameters")]
pub fn set_item_field(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Path(field_key): Path<String>,
    Body(new): Body<NewFieldValue>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<ItemAnswer> {
    let expected = ExpectedVersion::new(if_match, new.version)?;
    let input = Data::from_iter([(field_key.clone(), new.value.clone())]);
    let inputs = std::iter::once(&input);
    let editor = Editor::open_for(tx, caller, &shapes.0, collection_id, new.typecast, inputs)?;
    let row =
        change_of(&input, mode(new.typecast), ExpectedVersion::default()).locked(tx, &editor, item_id)?;
    let field = field_of(&editor, &field_key)?;
    let checked = values::checked(field, &new.value, row.values()?.get(&field_key), mode(new.typecast));
    let value = checked.map_err(|problem| refused(problem, "value"))?.unwrap_or_default();
    let row = set(tx, &editor, row, &field_key, value, expected)?;
    answer::shown(&editor.shape, &row)
}

/// Clear one field
///
/// Removes the value of the field and returns the item. A required field cannot be cleared.
#[operation(delete "/collections/{collectionId}/items/{itemId}/fields/{fieldKey}", scope = "items:write")]
pub fn clear_item_field(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Path(field_key): Path<String>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<ItemAnswer> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let input = Data::from_iter([(field_key.clone(), Value::Null)]);
    let row = change_of(&input, Mode::Strict, ExpectedVersion::default()).locked(tx, &editor, item_id)?;
    field_of(&editor, &field_key)?;
    let row = set(tx, &editor, row, &field_key, Value::Null, if_match.into())?;
    answer::shown(&editor.shape, &row)
}

/// Add to a number field atomically
///
/// Adds `by` to the field and returns the item. A field without a value counts as 0, and the sum is exact. If the sum
/// exceeds a limit of the request or the field, nothing changes and the response is 409 `invalid_state` with the
/// present value; `details.state` is `out_of_bounds`, `too_precise` or `out_of_range`.
#[operation(post "/collections/{collectionId}/items/{itemId}/increment", scope = "items:write")]
pub fn increment_item_field(
    tx: &mut Tx,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    Path(item_id): Path<ItemId>,
    Body(increment): Body<Increment>,
    if_match: IfMatch,
    shapes: State<Shapes>,
) -> Result<ItemAnswer> {
    let editor = Editor::open(tx, caller, &shapes.0, collection_id)?;
    let row = rows::locked(tx, &editor.shape, item_id)?;
    let field = editor.shape.field(&increment.field).ok_or_else(|| {
        let near = editor.shape.nearest(&increment.field).map(|near| format!("; did you mean `{near}`?"));
        refused(
            Problem::new(
                "unknown_field",
                format!("is not a field of this collection{}", near.unwrap_or_default()),
            ),
            "field",
        )
    })?;
    let sum = sum(field, row.values()?.get(&field.key), &increment)?;
    let row = set(tx, &editor, row, &increment.field, sum, if_match.into())?;
    answer::shown(&editor.shape, &row)
}

fn field_of<'a>(editor: &'a Editor<'_>, key: &str) -> Result<&'a Field> {
    editor.shape.field(key).ok_or_else(|| Error::not_found("field"))
}

fn set(
    tx: &mut Tx,
    editor: &Editor<'_>,
    row: records::rows::ItemRow,
    key: &str,
    value: Value,
    expected: ExpectedVersion,
) -> Result<records::rows::ItemRow> {
    let data = Data::from_iter([(key.to_owned(), value)]);
    Ok(change_of(&data, Mode::Strict, expected).make(tx, editor, row)?.row)
}

fn change_of(data: &Data, mode: Mode, expected: ExpectedVersion) -> ItemChange<'_> {
    ItemChange { data, missing: Missing::Keep, mode, external_key: Patch::Keep, expected, path: "" }
}

fn refused(problem: Problem, param: &str) -> Error {
    // `all_invalid` returns an error for every non-empty list; the alternative satisfies the compiler.
    Error::all_invalid(vec![problem.at(param)]).unwrap_or_else(|| Error::invalid(param, "is not valid"))
}

/// Returns the value of a field after an increment. A sum outside of the bounds is an error.
fn sum(field: &Field, stored: Option<&Value>, increment: &Increment) -> Result<Value> {
    let whole = field.kind == FieldType::Integer || field.kind == FieldType::Rating;
    let decimal = matches!(
        field.kind,
        FieldType::Number | FieldType::Currency | FieldType::Percent | FieldType::Duration
    );
    if !whole && !decimal {
        return Err(Error::invalid("field", "must be a number field that is not computed"));
    }
    let by = decimal::of(&increment.by);
    if whole && !by.is_integer() {
        return Err(Error::invalid("by", "must be a whole number"));
    }
    if let Some(precision) = field.options.precision.filter(|precision| decimal::places(&by) > *precision) {
        return Err(Error::invalid("by", format_args!("must have at most {precision} decimal places")));
    }
    let sum = stored.and_then(Value::as_number).map_or_else(Decimal::default, decimal::of) + by;
    let refused = |state: &str, rule: &str| {
        let details = json!({
            "state": state, "field": field.key, "value": stored.unwrap_or(&Value::from(0)), "by": increment.by,
            "min": increment.min, "max": increment.max,
        });
        let message = format!("The value of `{}` {rule}.", field.key);
        Error::new(Code::InvalidState, message).param("by").with("details", details)
    };
    let crossed = || refused("out_of_bounds", "would leave its bounds");
    let is_inside = increment.min.as_ref().is_none_or(|min| sum >= decimal::of(min))
        && increment.max.as_ref().is_none_or(|max| sum <= decimal::of(max));
    if !is_inside {
        return Err(crossed());
    }
    let sum = decimal::kept(&sum).map_err(|loss| match loss {
        _ if whole => crossed(),
        Loss::TooPrecise => refused(loss.code(), "would have more digits than can be kept"),
        Loss::OutOfRange => refused(loss.code(), "would be greater or smaller than can be kept"),
    })?;
    value::check(field, &sum, Mode::Strict).map(Option::unwrap_or_default).map_err(|_| crossed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fields::FieldOptions;
    use proptest::prelude::*;

    fn added(kind: FieldType, stored: &str, by: &str) -> std::result::Result<Value, Code> {
        let stored: Value = serde_json::from_str(stored).unwrap();
        let by = serde_json::from_str(by).unwrap();
        let increment = Increment { field: "f".to_owned(), by, min: None, max: None };
        let field = Field::draft("f", kind, FieldOptions::default());
        sum(&field, Some(&stored), &increment).map_err(|error| error.code())
    }

    #[test]
    fn decimals_add_up_as_people_expect() {
        let lost = Err(Code::InvalidState);
        for (stored, by, expected) in [
            ("0.1", "0.2", Ok(json!(0.3))),
            ("1.1", "-1.1", Ok(json!(0))),
            ("19.99", "0.01", Ok(json!(20))),
            ("99999999999999.9", "0.1", Ok(json!(100_000_000_000_000_i64))),
            ("1e308", "-1e308", Ok(json!(0))),
            ("1e300", "2e300", Ok(json!(3e300))),
            ("1e308", "1e308", lost.clone()),
            ("1e308", "1", lost.clone()),
            ("999999999999.99", "1e15", lost.clone()),
            ("1001000000000000.0", "0.1", lost.clone()),
            ("999999999999999", "0.01", lost.clone()),
            ("1e-307", "-0.9e-307", lost.clone()),
            ("9007199254740992", "1", lost),
        ] {
            assert_eq!(added(FieldType::Number, stored, by), expected, "{stored} + {by}");
        }
        assert_eq!(added(FieldType::Integer, "7", "-9"), Ok(json!(-2)));
        assert_eq!(added(FieldType::Integer, "9007199254740992", "1"), Err(Code::InvalidState));
        assert_eq!(added(FieldType::Integer, "7", "1e300"), Err(Code::InvalidState));
    }

    proptest! {
        #[test]
        fn a_sum_is_exact_or_refused(
            stored in "-?(0|[1-9][0-9]{0,9})[.][0-9]{1,5}|-?[1-9]e-?[1-9][0-9]?",
            by in "-?(0|[1-9][0-9]{0,8})[.][0-9]{1,6}|-?[1-9][0-9]{0,14}|-?[1-9]e-?[1-9][0-9]?",
        ) {
            let number = |text: &str| decimal::parse(text).unwrap().unwrap();
            match added(FieldType::Number, &stored, &by) {
                Ok(sum) => prop_assert_eq!(decimal::of(sum.as_number().unwrap()), number(&stored) + number(&by)),
                Err(code) => prop_assert_eq!(code, Code::InvalidState),
            }
        }
    }
}
