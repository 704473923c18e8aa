//! Values as bytes whose order is the values' order, the same on every database (data-crm.md C.2).
//!
//! A part is a rank byte and the value: `01 …` for a value, `02` for none, so that records without a value come last. In
//! a descending part the value's bytes are inverted and the rank is not, so that they come last there too. Every
//! value's bytes have a fixed length or an end of their own, so that parts can follow each other.

use crate::field::Field;
use crate::kind::Family;
use crate::{text, value};
use chrono::{Datelike, Timelike};
use serde_json::{Number, Value};

/// Rank of a record that has a value.
pub const VALUE: u8 = 1;
/// Rank of a record that has none.
pub const NOTHING: u8 = 2;

/// Text is ordered by this many bytes of its folded form, a zero and its composed form.
pub const MOST_TEXT: usize = 256;

/// Appends the key of a field's value.
pub fn push_field(out: &mut Vec<u8>, field: &Field, value: Option<&Value>, desc: bool) {
    let start = out.len();
    out.push(VALUE);
    let known = value.is_some_and(|value| push_value(out, field, value));
    close(out, start, known, desc);
}

/// Appends the key of a text.
pub(crate) fn push_text(out: &mut Vec<u8>, value: Option<&str>, desc: bool) {
    let start = out.len();
    out.push(VALUE);
    if let Some(value) = value {
        text_bytes(out, value);
    }
    close(out, start, value.is_some(), desc);
}

/// Appends the key of a whole number: an id, a version, milliseconds since 1970.
pub fn push_integer(out: &mut Vec<u8>, value: i64, desc: bool) {
    let start = out.len();
    out.push(VALUE);
    integer_bytes(out, value);
    close(out, start, true, desc);
}

/// Appends an id, bare: it ends a composite key, so that equal values have an order too.
pub fn push_id(out: &mut Vec<u8>, id: i64, desc: bool) {
    let start = out.len();
    integer_bytes(out, id);
    if desc {
        invert(out, start);
    }
}

/// The id that [`push_id`] wrote.
pub fn id_of(bytes: &[u8], desc: bool) -> Option<i64> {
    let bytes: [u8; 8] = bytes.try_into().ok()?;
    let bytes = if desc { bytes.map(|byte| !byte) } else { bytes };
    Some(i64::from_be_bytes(bytes) ^ i64::MIN)
}

/// The whole number whose key these bytes are or begin with.
pub fn integer_of(key: &[u8]) -> Option<i64> {
    id_of(key.strip_prefix(&[VALUE])?.get(..8)?, false)
}

/// The number whose key this is.
pub(crate) fn number_of(key: &[u8]) -> Option<Number> {
    let bytes: [u8; 8] = key.strip_prefix(&[VALUE])?.try_into().ok()?;
    let sortable = u64::from_be_bytes(bytes);
    Number::from_f64(f64::from_bits(if sortable >> 63 == 1 { sortable & !(1 << 63) } else { !sortable }))
}

/// The keys of a set's elements.
pub fn elements(field: &Field, value: Option<&Value>) -> Vec<Vec<u8>> {
    let elements = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    elements.iter().filter_map(|element| element_key(field, element)).collect()
}

/// The key of one element of a set.
pub fn element_key(field: &Field, element: &Value) -> Option<Vec<u8>> {
    let mut key = vec![VALUE];
    match (field.family(), element) {
        (Family::Ids, Value::Number(id)) => integer_bytes(&mut key, id.as_i64()?),
        (Family::Choices, Value::String(choice)) => key.extend_from_slice(choice.as_bytes()),
        _ => return None,
    }
    Some(key)
}

/// The word whose key this is, in a set of words.
pub fn word_of(key: &[u8]) -> Option<String> {
    String::from_utf8(key.strip_prefix(&[VALUE])?.to_vec()).ok()
}

/// Appends the bytes of a value; `false` where it has none in this order.
fn push_value(out: &mut Vec<u8>, field: &Field, value: &Value) -> bool {
    match (field.family(), value) {
        (Family::Text, Value::String(text)) => text_bytes(out, text),
        (Family::Number, Value::Number(number)) => match number.as_f64() {
            Some(number) => number_bytes(out, number),
            None => return false,
        },
        (Family::Boolean, Value::Bool(value)) => out.push(u8::from(*value)),
        (Family::Date, Value::String(text)) => match value::date(text) {
            Some(day) => integer_bytes(out, i64::from(day.num_days_from_ce())),
            None => return false,
        },
        (Family::Datetime, Value::String(text)) => match value::datetime(text, None) {
            Some(moment) => integer_bytes(out, moment.millis()),
            None => return false,
        },
        (Family::Time, Value::String(text)) => match value::time(text) {
            Some(time) => integer_bytes(out, i64::from(time.num_seconds_from_midnight())),
            None => return false,
        },
        (Family::Select, Value::String(key)) => match field.options.choice(key) {
            Some((place, _)) => integer_bytes(out, i64::try_from(place).unwrap_or(i64::MAX)),
            None => return false,
        },
        _ => return false,
    }
    true
}

/// Ends the part that begins at `start`.
fn close(out: &mut Vec<u8>, start: usize, known: bool, desc: bool) {
    if !known {
        out.truncate(start);
        out.push(NOTHING);
    } else if desc {
        invert(out, start + 1);
    }
}

/// Turns bytes round, so that their order is the other one.
pub fn invert(out: &mut [u8], from: usize) {
    for byte in out.iter_mut().skip(from) {
        *byte = !*byte;
    }
}

fn text_bytes(out: &mut Vec<u8>, text: &str) {
    let start = out.len();
    out.extend_from_slice(text::fold(text).as_bytes());
    out.push(0);
    // Texts that are equal have one key, however they were composed.
    out.extend_from_slice(text::nfc(text).as_bytes());
    out.truncate(start + MOST_TEXT);
    out.push(0);
}

fn integer_bytes(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&(value ^ i64::MIN).to_be_bytes());
}

/// The sign turned round for numbers above zero, all bits for those below: then bytes are in the order of numbers.
fn number_bytes(out: &mut Vec<u8>, value: f64) {
    let bits = (value + 0.0).to_bits();
    let sortable = if bits >> 63 == 1 { !bits } else { bits | (1 << 63) };
    out.extend_from_slice(&sortable.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of_number(value: f64, desc: bool) -> Vec<u8> {
        let mut key = vec![VALUE];
        number_bytes(&mut key, value);
        close(&mut key, 0, true, desc);
        key
    }

    fn of_text(value: Option<&str>, desc: bool) -> Vec<u8> {
        let mut key = Vec::new();
        push_text(&mut key, value, desc);
        key
    }

    proptest! {
        #[test]
        fn numbers_keep_their_order(a in -1e15f64..1e15, b in -1e15f64..1e15) {
            prop_assert_eq!(a.partial_cmp(&b).unwrap(), of_number(a, false).cmp(&of_number(b, false)));
            prop_assert_eq!(b.partial_cmp(&a).unwrap(), of_number(a, true).cmp(&of_number(b, true)));
        }

        #[test]
        fn integers_keep_their_order(a: i64, b: i64) {
            let key = |value| { let mut key = Vec::new(); push_integer(&mut key, value, false); key };
            prop_assert_eq!(a.cmp(&b), key(a).cmp(&key(b)));
        }

        #[test]
        fn short_texts_keep_the_order_of_their_folded_forms(a in "[ -~äÖéß]{0,12}", b in "[ -~äÖéß]{0,12}") {
            let by_hand = (text::fold(&a), &a).cmp(&(text::fold(&b), &b));
            prop_assert_eq!(by_hand, of_text(Some(&a), false).cmp(&of_text(Some(&b), false)));
            prop_assert_eq!(by_hand.reverse(), of_text(Some(&a), true).cmp(&of_text(Some(&b), true)));
        }

        #[test]
        fn a_part_never_decides_for_the_next(a in "[a-c]{0,3}", b in "[a-c]{0,3}", x: i64, y: i64) {
            let key = |text: &str, number| { let mut key = of_text(Some(text), false); push_integer(&mut key, number, true); key };
            prop_assert_eq!((&a, y).cmp(&(&b, x)), key(&a, x).cmp(&key(&b, y)));
        }
    }

    #[test]
    fn nothing_comes_last_in_both_directions() {
        for desc in [false, true] {
            assert!(of_text(Some("\u{10ffff}"), desc) < of_text(None, desc));
            assert!(of_text(Some(""), desc) < of_text(None, desc));
        }
    }

    proptest! {
        #[test]
        fn numbers_read_back(value in -1e15f64..1e15, id: i64, desc: bool) {
            prop_assert_eq!(number_of(&of_number(value, false)), Number::from_f64(value + 0.0));
            let mut key = Vec::new();
            push_integer(&mut key, id, false);
            prop_assert_eq!(integer_of(&key), Some(id));
            let mut key = Vec::new();
            push_id(&mut key, id, desc);
            prop_assert_eq!(id_of(&key, desc), Some(id));
        }
    }

    #[test]
    fn zero_has_one_key() {
        assert_eq!(of_number(0.0, false), of_number(-0.0, false));
    }
}
