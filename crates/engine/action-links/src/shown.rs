//! Texts of others on a page, of which nothing may be hidden from the person who decides.

/// Returns the beginning of a text that is longer than `most` characters.
pub fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{} …", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// JSON in which nothing is invisible or turns the text around it: a person must see what is approved. Such letters
/// stand within texts only, where JSON can spell them out.
pub fn visible(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_deceptive(letter) {
            let mut units = [0; 2];
            for unit in letter.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(letter);
        }
    }
    text
}

/// Controls, and letters of no width or that change the direction of writing.
fn is_deceptive(letter: char) -> bool {
    matches!(
        letter,
        '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn what_hides_is_spelt_out_and_stays_the_same_json() {
        let arguments = json!({ "to": "a\u{202e}b\u{200b}c\u{e0041}", "name": "Ü 天 🙂" });
        let shown = visible(&serde_json::to_string_pretty(&arguments).unwrap());
        assert!(shown.contains(r"a\u202eb\u200bc\udb40\udc41") && shown.contains("Ü 天 🙂"), "{shown}");
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), arguments);
    }

    #[test]
    fn texts_are_cut_between_letters() {
        assert_eq!(cut("äöü", 2), "äö …");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}
