//! Keys made of what people call things.

use crate::SystemColumn;
use unicode_normalization::UnicodeNormalization;

/// The most characters of a key.
const LONGEST: usize = 63;

/// Whether items have something of this name already.
pub fn is_reserved(key: &str) -> bool {
    SystemColumn::parse(key).is_some()
}

/// A name in small letters and digits, words joined by `joint`; empty where nothing of it can be written so.
pub fn slug(name: &str, joint: char) -> String {
    let mut out = String::new();
    for letter in name.nfkd().flat_map(char::to_lowercase) {
        if letter.is_ascii_alphanumeric() {
            out.push(letter);
        } else if !unicode_normalization::char::is_combining_mark(letter)
            && !out.is_empty()
            && !out.ends_with(joint)
        {
            out.push(joint);
        }
    }
    out.truncate(LONGEST);
    out.trim_end_matches(joint).to_owned()
}

/// A key for something that is called `name`, with a number behind it where the bare one is taken. `stem` is what is
/// used of a name that nothing remains of, or that begins with a digit.
pub fn free_key(name: &str, stem: &str, taken: impl Fn(&str) -> bool) -> String {
    let slug = slug(name, '_');
    let base = match slug.chars().next() {
        None => stem.to_owned(),
        Some(first) if first.is_ascii_digit() => format!("{stem}_{slug}"),
        Some(_) => slug,
    };
    numbered(&base, '_', taken)
}

/// `base`, or the first of `base_2`, `base_3`, … that is not taken, within the length of a key.
pub fn numbered(base: &str, joint: char, taken: impl Fn(&str) -> bool) -> String {
    let cut = |room: usize| base.chars().take(LONGEST - room).collect::<String>();
    let mut key = cut(0);
    let mut number = 2_u32;
    while taken(&key) {
        let tail = format!("{joint}{number}");
        key = format!("{}{tail}", cut(tail.len()).trim_end_matches(joint));
        number += 1;
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_made_of_labels() {
        for (label, key) in [
            ("Unit price (€)", "unit_price"),
            ("Größe", "gro_e"),
            ("Café No. 5", "cafe_no_5"),
            ("  ", "field"),
            ("日本", "field"),
            ("2nd name", "field_2nd_name"),
            ("Name", "name_2"),
        ] {
            assert_eq!(free_key(label, "field", |key| key == "name"), key, "{label}");
        }
        let long = "a".repeat(80);
        assert_eq!(free_key(&long, "field", |key| key.len() == 63 && !key.contains('_')).len(), 63);
    }

    #[test]
    fn what_items_have_is_reserved() {
        for key in ["id", "created_at", "updated_at", "created_by", "version", "position", "external_key"] {
            assert!(is_reserved(key), "{key}");
        }
        assert!(!is_reserved("title"));
    }
}
