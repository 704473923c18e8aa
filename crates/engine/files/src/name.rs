//! Normalization of file names from clients.

use unicode_normalization::UnicodeNormalization;

/// The maximum length of a name, in characters.
const LONGEST: usize = 255;

/// The name of a file without a usable name.
const UNNAMED: &str = "file";

/// Returns the last part of a path in [`composed`] form, without characters that are invisible or change how others
/// are displayed. Never empty.
pub fn safe_name(given: &str) -> String {
    let last = given.rsplit(['/', '\\']).next().unwrap_or_default();
    let visible: String = last.nfc().filter(|letter| !is_hidden(*letter)).collect();
    let name: String = visible.trim().chars().take(LONGEST).collect();
    if name.trim_matches('.').is_empty() { UNNAMED.to_owned() } else { name }
}

/// Returns a text in the composed form (Unicode NFC): a letter with accents is a single character if one exists.
/// Keyboards produce this form, but the file systems of Apple store the decomposed one.
pub fn composed(text: &str) -> String {
    text.nfc().collect()
}

/// Returns a text in composed and in decomposed form. Rows from before names were normalized can have either.
pub(crate) fn two_forms(text: &str) -> [String; 2] {
    [composed(text), text.nfd().collect()]
}

/// Returns a name as it is stored for search: in lower case and [`composed`].
pub(crate) fn folded(name: &str) -> String {
    composed(&name.to_lowercase())
}

/// Returns whether a character is a control character, reorders text, or has no width.
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
            // Displayed as "annexe.txt" by programs that obey the mark.
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
