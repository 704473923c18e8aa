//! Writes a text as a scalar of YAML that every reader reads as that text.

use std::fmt::Write;

/// Plain where no reader could take it for something else, in double quotes otherwise. Always one line.
pub(crate) fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

fn is_plain(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || " -_.,/()'+;".contains(c))
        && !text.ends_with(' ')
        && !text.contains("---")
        && !is_reserved(text)
}

/// Words that readers of YAML 1.1 or JSON take for other values.
fn is_reserved(text: &str) -> bool {
    ["null", "true", "false", "yes", "no", "on", "off", "y", "n"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    let mut hyphens = 0;
    for c in text.chars() {
        // The reference validator ends the front matter at any `---`, even within quotes.
        hyphens = if c == '-' { hyphens + 1 } else { 0 };
        match c {
            '-' if hyphens == 3 => {
                hyphens = 0;
                out.push_str("\\x2d");
            }
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if needs_escape(c) => escape(&mut out, c),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Characters that YAML does not print, that break lines, or that a person does not see.
fn needs_escape(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{a0}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
        || crate::hidden::kind(c).is_some()
}

fn escape(out: &mut String, c: char) {
    let code = u32::from(c);
    // Writing to a String cannot fail.
    let _ = match code {
        0..=0xff => write!(out, "\\x{code:02x}"),
        0x100..=0xffff => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

#[cfg(test)]
mod tests {
    use super::scalar;
    use crate::yaml;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read_back(text in any::<String>()) {
            let tree = yaml::parse(&format!("key: {}\nother: x\n", scalar(&text))).unwrap();
            let yaml::Value::Map { entries, .. } = tree.root.unwrap().value else { panic!("no map") };
            prop_assert_eq!(entries[0].1.text(), Some(text.as_str()));
        }
    }

    #[test]
    fn words_of_other_types_and_fences_are_quoted() {
        assert_eq!(scalar("Treats a return."), "Treats a return.");
        assert_eq!(scalar("Use when: late"), "\"Use when: late\"");
        assert_eq!(scalar("Yes"), "\"Yes\"");
        assert_eq!(scalar("1.0"), "\"1.0\"");
        assert_eq!(scalar("a --- b"), "\"a --\\x2d b\"");
        assert_eq!(scalar(""), "\"\"");
    }
}
