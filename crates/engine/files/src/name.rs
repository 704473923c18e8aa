//! Names of files that somebody else chose.

use unicode_normalization::UnicodeNormalization;

/// The longest name, in characters.
const LONGEST: usize = 255;

/// What a file without a usable name is called.
const UNNAMED: &str = "file";

/// The last part of a path, without what cannot be seen or changes how the rest is shown, in [`composed`] letters. Never
/// empty.
pub fn safe_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let visible: String = last.nfc().filter(|letter| !is_hidden(*letter)).collect();
    let name: String = visible.trim().chars().take(LONGEST).collect();
    if name.trim_matches('.').is_empty() { UNNAMED.to_owned() } else { name }
}

/// A text with each letter and its accents as one character where there is such a one (Unicode NFC), as keyboards type it.
/// File systems of Apple take letters apart.
pub fn composed(text: &str) -> String {
    text.nfc().collect()
}

/// Both forms of a text, composed and taken apart: rows that were stored before names were composed can have either.
pub(crate) fn two_forms(text: &str) -> [String; 2] {
    [composed(text), text.nfd().collect()]
}

/// A name as it is searched for: in lower case and [`composed`].
pub(crate) fn folded(name: &str) -> String {
    composed(&name.to_lowercase())
}

/// Control characters, and those that reorder text or have no width.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_single_and_visible() {
        for (given, name) in [
            ("price list.pdf", "price list.pdf"),
            ("Prix été.pdf", "Prix été.pdf"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\me\\a.txt", "a.txt"),
            ("a\r\nb\0.txt", "ab.txt"),
            // Shown as "annexe.txt" by whoever obeys the mark.
            ("ann\u{202e}txt.exe", "anntxt.exe"),
            ("", "file"),
            ("folder/", "file"),
            ("..", "file"),
            (" \u{200b} ", "file"),
            (".profile", ".profile"),
            ("Menu\u{301} nin\u{303}o.pdf", "Menú niño.pdf"),
        ] {
            assert_eq!(safe_name(given), name, "{given:?}");
        }
        assert_eq!(safe_name(&"e\u{301}".repeat(400)), "é".repeat(LONGEST));
        assert_eq!(folded("MENU\u{301}"), "menú");
        assert_eq!(two_forms("menú"), ["menú", "menu\u{301}"]);
    }
}
