//! Characters that nobody sees: texts that differ only in them look the same, and are meant to be.
//!
//! Copying from web pages, spreadsheets and chats adds zero-width spaces, marks of the direction of writing and byte order
//! marks.

/// Whether a character has no glyph and takes no space (Unicode's `Default_Ignorable_Code_Point`).
pub fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{206F}'
        | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFF8}'
        | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}' | '\u{E0000}'..='\u{E0FFF}')
}

/// Whether it chooses the glyph of the character before it, as in an emoji.
fn is_selector(character: char) -> bool {
    matches!(character, '\u{FE00}'..='\u{FE0F}' | '\u{E0020}'..='\u{E007F}' | '\u{E0100}'..='\u{E01EF}')
}

/// Whether a text shows nothing: it is empty, or has only white space and invisible characters.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|character| character.is_whitespace() || is_invisible(character))
}

/// A text that identifies something, without invisible characters and without the white space around it.
pub fn bare(text: &str) -> String {
    if text.is_ascii() {
        return text.trim().to_owned();
    }
    let seen: String = text.chars().filter(|character| !is_invisible(*character)).collect();
    seen.trim().to_owned()
}

/// A text that people read, without the white space and the invisible characters around it. Within they stay: Persian words
/// and emoji are written with them.
pub fn trimmed(text: &str) -> &str {
    if is_blank(text) {
        return "";
    }
    text.trim_matches(|character: char| {
        character.is_whitespace() || (is_invisible(character) && !is_selector(character))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_taken_off() {
        for text in [
            "\u{200b}ana",
            "ana\u{feff}",
            "\u{202a}ana\u{202c}",
            "\u{a0}ana\u{3000}",
            "a\u{ad}na",
            "ana\u{fe0f}",
            "a\u{2060}n\u{200d}a",
            "\u{2066}ana\u{2069}\u{200e}",
            " ana\t",
        ] {
            assert_eq!(bare(text), "ana", "{text:?}");
        }
        assert_eq!(bare("ñandú ana"), "ñandú ana");
        for blank in ["", " ", "\u{a0}", "\u{200b}\u{feff}", "\u{3164}", "\u{2060} \u{fe0f}"] {
            assert!(is_blank(blank), "{blank:?}");
            assert_eq!((bare(blank).as_str(), trimmed(blank)), ("", ""), "{blank:?}");
        }
    }

    #[test]
    fn words_and_emoji_keep_what_joins_them() {
        for text in ["می\u{200c}خواهم", "👩\u{200d}👧", "I ❤\u{fe0f}", "🏴\u{e0067}\u{e0062}\u{e007f}"]
        {
            assert_eq!(trimmed(&format!("\u{200b}{text}\u{a0}")), text);
        }
    }
}
