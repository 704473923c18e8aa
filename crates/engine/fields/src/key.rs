//! Values as bytes whose order is the values' order, the same on every database (data-crm.md C.2).
//!
//! A part is a rank byte and the value: `01 …` for a value, `02` for none, so that records without a value come last. In
//! a descending part the value's bytes are inverted and the rank is not, so that they come last there too. Every
//! value's bytes have a fixed length or an end of their own, so that parts can follow each other.

use crate::checking::value;
use crate::definitions::field::Field;
use crate::values::kind::Family;
use chrono::{Datelike, Timelike};
use expressions::text;
use memchr::memchr;
use serde_json::{Number, Value};

/// Rank of a record that has a value.
pub const VALUE: u8 = 1;
/// Rank of a record that has none.
pub const NOTHING: u8 = 2;

/// The most bytes of a text in the key of an index. In the order of a list texts are compared to their ends, so who reads
/// an index puts entries in order whose keys were cut ([`is_cut`]).
pub const MOST_TEXT: usize = 256;

/// The end of a text that was cut, which no UTF-8 contains: it is behind all texts that end there.
const CUT: u8 = u8::MAX;

/// The forms of a text in its key, each with a zero behind it.
const FORMS: usize = 3;

/// Appends the key of a field's value, of a text all of it.
pub fn push_field(out: &mut Vec<u8>, field: &Field, value: Option<&Value>, desc: bool) {
    let start = out.len();
    out.push(VALUE);
    let known = value.is_some_and(|value| push_value(out, field, value));
    close(out, start, known, desc);
}

/// Appends the key of a field's value as indexes hold it, where long texts are cut. `true` tells that this one was.
pub fn push_indexed_field(out: &mut Vec<u8>, field: &Field, value: Option<&Value>, desc: bool) -> bool {
    let start = out.len();
    push_field(out, field, value, desc);
    field.family() == Family::Text && cut_text(out, start, MOST_TEXT, desc)
}

/// Appends the key of a text, all of it.
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

/// A text by its letters, by its accents where it has some, and as it is (NFC), so that texts that are equal have one key.
fn text_bytes(out: &mut Vec<u8>, text: &str) {
    // Most text is plain, and its key is made with every write and for every test.
    if text.is_ascii() {
        out.extend(text.bytes().map(|byte| byte.to_ascii_lowercase()));
        out.extend_from_slice(&[0, 0]);
        out.extend_from_slice(text.as_bytes());
        out.push(0);
        return;
    }
    let folded = text::fold(text);
    let base = text::base(&folded);
    out.extend_from_slice(base.as_bytes());
    out.push(0);
    if folded != base {
        out.extend_from_slice(folded.as_bytes());
    }
    out.push(0);
    out.extend_from_slice(text::nfc(text).as_bytes());
    out.push(0);
}

/// Shortens the part that begins at `start` to `most` bytes of text. `false` leaves it, because it is not longer.
pub(crate) fn cut_text(out: &mut Vec<u8>, start: usize, most: usize, desc: bool) -> bool {
    if out.len() <= start + most + 2 {
        return false;
    }
    out.truncate(start + 1 + most);
    out.push(if desc { !CUT } else { CUT });
    true
}

/// Whether the key of one text in an index holds only its beginning.
pub fn is_cut(key: &[u8]) -> bool {
    key.last() == Some(&CUT) && key.len() == MOST_TEXT + 2
}

/// The folded form and the text itself (NFC), as UTF-8, of the text that has this key; `None` where that was cut.
pub(crate) fn text_forms(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let forms = key.strip_prefix(&[VALUE])?.strip_suffix(&[0])?;
    let (base, forms) = forms.split_at_checked(memchr(0, forms)?)?;
    let forms = forms.strip_prefix(&[0])?;
    let (accented, text) = forms.split_at_checked(memchr(0, forms)?)?;
    let folded = if accented.is_empty() { base } else { accented };
    Some((folded, text.strip_prefix(&[0])?))
}

/// The length of the part that some bytes begin with, and whether it is a text that was cut. `None` where it has no end.
pub(crate) fn first_part(bytes: &[u8], family: Family, desc: bool) -> Option<(usize, bool)> {
    if bytes.first() == Some(&NOTHING) {
        return Some((1, false));
    }
    let length = match family {
        Family::Text => return first_text(bytes, if desc { u8::MAX } else { 0 }),
        Family::Boolean => 2,
        _ => 9,
    };
    (bytes.len() >= length).then_some((length, false))
}

fn first_text(bytes: &[u8], zero: u8) -> Option<(usize, bool)> {
    let mut forms = 0;
    for (place, byte) in bytes.iter().enumerate().skip(1) {
        if *byte == !zero {
            return Some((place + 1, true));
        }
        forms += usize::from(*byte == zero);
        if forms == FORMS {
            return Some((place + 1, false));
        }
    }
    None
}

/// Makes the cut text that ends a key one that is before all texts that begin so.
pub(crate) fn close_cut(out: &mut Vec<u8>, start: usize, desc: bool) {
    let zero = if desc { u8::MAX } else { 0 };
    out.pop();
    let forms = out.iter().skip(start + 1).filter(|byte| **byte == zero).count();
    if desc {
        // Longer texts come before their beginnings, so it goes on with what is behind all letters.
        out.extend("\u{10ffff}".bytes().map(|byte| !byte));
    }
    out.extend(std::iter::repeat_n(zero, FORMS.saturating_sub(forms)));
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
        fn texts_keep_their_order(
            beginning in prop_oneof![Just(String::new()), "[aé語]{250,270}"],
            a in "[ -~äÖéßñΣς\u{301}]{0,12}",
            b in "[ -~äÖéßñΣς\u{301}]{0,12}",
        ) {
            let (a, b) = (beginning.clone() + &a, beginning + &b);
            let by_hand = text::order(&a, &b);
            prop_assert_eq!(by_hand, of_text(Some(&a), false).cmp(&of_text(Some(&b), false)));
            prop_assert_eq!(by_hand.reverse(), of_text(Some(&a), true).cmp(&of_text(Some(&b), true)));
            for desc in [false, true] {
                let cut = |text: &str| { let mut key = of_text(Some(text), desc); let cut = cut_text(&mut key, 0, MOST_TEXT, desc); (key, cut) };
                let ((one, is_one), (other, is_other)) = (cut(&a), cut(&b));
                let order = if desc { by_hand.reverse() } else { by_hand };
                // What was cut is in order with all but what is cut alike.
                prop_assert!(one.cmp(&other) == order || (one == other && is_one && is_other));
                let whole = of_text(Some(&a), desc);
                prop_assert_eq!(first_part(&whole, Family::Text, desc), Some((whole.len(), false)));
                prop_assert_eq!(first_part(&one, Family::Text, desc), Some((one.len(), is_one)));
                prop_assert_eq!(is_cut(&one), is_one && !desc);
                if is_one {
                    let mut before = one.clone();
                    close_cut(&mut before, 0, desc);
                    prop_assert!(before < whole);
                    prop_assert_eq!(first_part(&before, Family::Text, desc), Some((before.len(), false)));
                }
            }
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
        fn keys_sort_as_numbers_do(one in "-?(0|[1-9][0-9]{0,9})[.][0-9]{1,5}", other in "-?[1-9][.][0-9]{0,13}[1-9]e-?[1-9][0-9]?") {
            let field = crate::sample::field(1, "f", crate::FieldType::Number, crate::FieldOptions::default());
            let exact = |text: &str| expressions::decimal::parse(text).unwrap().unwrap();
            let key = |text: &str| {
                let mut key = Vec::new();
                push_field(&mut key, &field, Some(&expressions::decimal::kept(&exact(text)).unwrap()), false);
                key
            };
            prop_assert_eq!(exact(&one).cmp(&exact(&other)), key(&one).cmp(&key(&other)));
        }

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
