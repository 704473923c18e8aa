//! Text as the data engine compares and finds it, the same on both databases.

use serde_json::Value;
use std::cmp::Ordering;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};

/// The form in which texts are compared without regard to case: compatibility forms composed, then Unicode case folding,
/// accents kept. `ß` is `ss`, and `İ`, `I`, `ı` and `i` are one letter, because a text does not tell its language.
pub fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let mut folded = String::with_capacity(text.len());
    text.nfkc().for_each(|letter| push_folded(letter, &mut folded));
    // Accents may join a small letter that join no capital.
    if unicode_normalization::is_nfkc(&folded) { folded } else { folded.nfkc().collect() }
}

/// Appends a letter of [`fold`]: of a composed text, so that what a single letter becomes never depends on its neighbours.
pub fn push_folded_letter(letter: char, out: &mut String) {
    std::iter::once(letter).nfkc().for_each(|part| push_folded(part, out));
}

/// The letters of a composed text, each folded by itself.
pub fn fold_letters(composed: &str) -> String {
    let mut folded = String::with_capacity(composed.len());
    composed.chars().for_each(|letter| push_folded_letter(letter, &mut folded));
    folded
}

/// Whether letters of a composed text may become one when it is [folded](fold): accents that stand alone, and halfwidth
/// letters of Japanese and Korean.
pub fn may_join(composed: &str) -> bool {
    let joins = |letter: char| is_combining_mark(letter) || ('\u{ff65}'..='\u{ffdc}').contains(&letter);
    composed.chars().any(|letter| letter >= '\u{300}' && joins(letter))
}

/// Appends a letter without its case. Letters are one if they have the same capital: `σ` and `ς`, `s` and `ſ`.
pub fn push_folded(letter: char, out: &mut String) {
    /// What stays of the dot when `İ` becomes small.
    const DOT: char = '\u{307}';
    if letter.is_ascii() {
        return out.push(letter.to_ascii_lowercase());
    }
    if is_caseless(letter) {
        return out.push(letter);
    }
    let mut capitals = letter.to_lowercase().flat_map(char::to_uppercase);
    let (first, second) = (capitals.next(), capitals.next());
    let small = |capital: char| capital.to_lowercase().filter(|small| *small != DOT);
    match (first, second) {
        (Some(capital), None) => out.extend(small(capital)),
        // The capital of a letter with several accents is composed of others.
        _ => {
            let capitals = letter.to_lowercase().flat_map(char::to_uppercase);
            out.extend(capitals.nfc().flat_map(small));
        }
    }
}

/// Whether a letter belongs to a large block without capitals: from Hebrew to Burmese, Chinese, Japanese, Korean.
fn is_caseless(letter: char) -> bool {
    matches!(letter, '\u{590}'..='\u{109f}' | '\u{2e80}'..='\u{a63f}' | '\u{ac00}'..='\u{d7ff}')
}

/// The letters of a folded text by which it is ordered first: those of the Latin and the Greek alphabet without their
/// accents, all others as they are. The form of a text begins with the forms of its beginnings.
pub fn base(folded: &str) -> String {
    let mut base = String::with_capacity(folded.len());
    for letter in folded.chars() {
        match letter {
            '\u{0}'..='\u{7f}' => base.push(letter),
            '\u{300}'..='\u{36f}' => {}
            'ё' => base.push('е'),
            '\u{c0}'..='\u{3ff}' | '\u{1e00}'..='\u{1fff}' => match plain(letter) {
                Some(plain) => base.push_str(plain),
                None => decompose_canonical(letter, |part| {
                    if !is_combining_mark(part) {
                        base.push(part);
                    }
                }),
            },
            _ => base.push(letter),
        }
    }
    base
}

/// The plain letters for one that has a stroke, or is a pair: Unicode takes neither apart.
pub fn plain(letter: char) -> Option<&'static str> {
    Some(match letter {
        'ø' => "o",
        'đ' | 'ð' => "d",
        'ł' => "l",
        'ħ' => "h",
        'ŧ' => "t",
        'æ' => "ae",
        'œ' => "oe",
        'þ' => "th",
        _ => return None,
    })
}

/// The order of texts: by their letters, then by accents, then by case.
pub fn order(one: &str, other: &str) -> Ordering {
    let form = |text: &str| {
        let folded = fold(text);
        let base = base(&folded);
        // Letters without accents come first.
        let accented = if folded == base { String::new() } else { folded };
        (base, accented, nfc(text).into_owned())
    };
    form(one).cmp(&form(other))
}

/// The form in which stored names are unique, and addresses are compared: in lower case, compatibility forms composed. It is
/// stored, so it must stay as it is.
pub fn name_key(name: &str) -> String {
    if name.is_ascii() {
        return name.to_ascii_lowercase();
    }
    name.nfkc().flat_map(char::to_lowercase).nfkc().collect()
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
    text.nfkd().filter(|letter| !is_combining_mark(*letter)).collect()
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
    use proptest::prelude::*;

    #[test]
    fn folding_keeps_accents_and_loses_case() {
        for (text, folded) in [
            ("ÉCOLE", "école"),
            ("Straße", "strasse"),
            ("STRAẞE", "strasse"),
            ("ﬁn", "fin"),
            ("Ａ", "a"),
            ("ΝΙΚΟΣ Νικος", "νικοσ νικοσ"),
            ("ſ ϐ ϑ ϕ ϖ ϰ ϱ ϵ ẛ", "s β θ φ π κ ρ ε ṡ"),
            ("İ I ı i i\u{307}", "i i i i i"),
            ("ΐ Ϊ\u{301} T\u{308} ǰ", "ΐ ΐ ẗ ǰ"),
            ("ｶﾞ", "ガ"),
            ("한국 Й", "한국 й"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
        assert_eq!(nfc("e\u{301}"), "é");
        assert_eq!(name_key("Straße ΣΑΣ"), "straße σασ");
    }

    proptest! {
        #[test]
        fn capitals_fold_as_small_letters_do(text in "\\PC{0,6}") {
            let small = text.to_lowercase();
            prop_assert_eq!(fold(&small), fold(&text));
            let capital = |letter: char| letter.to_uppercase().nfc().collect::<String>();
            for letter in text.chars().filter(|letter| letter.is_alphabetic() && *letter != '\u{345}') {
                prop_assert_eq!(fold(&capital(letter)), fold(&letter.to_string()), "{}", letter);
            }
        }

        #[test]
        fn the_letters_of_a_beginning_are_the_beginning_of_the_letters(one in "\\PC{0,6}", other in "\\PC{0,6}") {
            let (one, other) = (fold(&one), fold(&other));
            prop_assert_eq!(base(&(one.clone() + &other)), base(&one) + &base(&other));
        }
    }

    #[test]
    fn accents_decide_only_between_the_same_letters() {
        let mut names =
            ["Zapata", "jose", "Núñez", "José", "Ñáñez", "Jose", "Álvarez", "Øst", "Oslo", "josé", "Ab"];
        names.sort_by(|one, other| order(one, other));
        let expected =
            ["Ab", "Álvarez", "Jose", "jose", "José", "josé", "Ñáñez", "Núñez", "Oslo", "Øst", "Zapata"];
        assert_eq!(names, expected);
        let mut names = ["йод", "ива", "ёж", "еда", "ιός", "ίσος", "のり", "かき", "がき"];
        names.sort_by(|one, other| order(one, other));
        assert_eq!(names, ["ιός", "ίσος", "еда", "ёж", "ива", "йод", "かき", "がき", "のり"]);
    }
}
