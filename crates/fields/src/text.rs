//! Text as the data engine compares and finds it, the same on both databases.

use model::{Error, Result};
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

/// The form by which text is ordered and compared without regard to case: compatibility forms composed, lower case,
/// accents kept.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    text.nfkc().flat_map(char::to_lowercase).nfkc().collect()
}

/// The form in which equal texts have equal code points.
pub fn nfc(text: &str) -> std::borrow::Cow<'_, str> {
    if text.is_ascii() || unicode_normalization::is_nfc(text) {
        text.into()
    } else {
        text.nfc().collect::<String>().into()
    }
}

/// The letters of a text without their accents; what is no Latin letter stays.
pub fn ascii(text: &str) -> String {
    text.nfkd().filter(|letter| !unicode_normalization::char::is_combining_mark(*letter)).collect()
}

/// A value as people read it in a message. Objects have no text.
pub fn of_value(value: &Value) -> Option<String> {
    match value {
        Value::Null | Value::Object(_) => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(values) => Some(values.iter().filter_map(of_value).collect::<Vec<_>>().join(", ")),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
    }
}

/// The one of `names` that `wrong` was probably meant to be.
pub fn nearest<'a>(wrong: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names
        .map(|name| (strsim::damerau_levenshtein(wrong, name), name))
        .filter(|(distance, name)| *distance <= (name.len().max(wrong.len()) / 3).max(1))
        .min()
        .map(|(_, name)| name)
}

/// The parts of a query parameter that is a list with commas between, without the white space around them.
///
/// # Errors
/// 400 `validation_error` about `param` where a part is empty.
pub fn comma_list<'a>(text: &'a str, param: &str) -> Result<Vec<&'a str>> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(Error::invalid(param, "must not have an empty part before, between or after commas"));
    }
    Ok(parts)
}

/// A name for a copy of what is called `name`: its first `kept` characters and "(copy)", with a number where that is taken.
pub fn copy_name(name: &str, kept: usize, taken: impl Fn(&str) -> bool) -> String {
    let stem: String = name.chars().take(kept).collect();
    let mut copy = format!("{stem} (copy)");
    let mut number = 2_u32;
    while taken(&copy) {
        copy = format!("{stem} (copy {number})");
        number += 1;
    }
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folding_keeps_accents_and_loses_case() {
        for (text, folded) in
            [("ÉCOLE", "école"), ("Straße", "straße"), ("ﬁn", "fin"), ("Ａ", "a"), ("İ", "i\u{307}")]
        {
            assert_eq!(fold(text), folded, "{text}");
        }
        assert_eq!(nfc("e\u{301}"), "é");
    }

    #[test]
    fn near_names_are_found() {
        let names = || ["price", "name", "created_at"].into_iter();
        assert_eq!(nearest("prize", names()), Some("price"));
        assert_eq!(nearest("create_at", names()), Some("created_at"));
        assert_eq!(nearest("colour", names()), None);
    }
}
