//! Adds the quotes that writers of front matter forget: `description: Use when: the parcel is late`.

use crate::faults::Mistake;
use crate::yaml::{self, Tree, Value};
use std::borrow::Cow;

/// Front matter as it was understood.
pub(crate) struct Front {
    /// The tree. Its lines are those of the source, columns only where no quotes were added.
    pub(crate) tree: Tree,
    /// The lines of front matter that needed quotes, from 1.
    pub(crate) quoted: Vec<u32>,
}

/// Reads front matter; if it is no YAML, once more with quotes around the values that are none.
///
/// # Errors
/// The fault of the text as written.
pub(crate) fn read(front: &str) -> Result<Front, Mistake> {
    let text = match front.contains('\r') {
        true => Cow::Owned(front.replace("\r\n", "\n")),
        false => Cow::Borrowed(front),
    };
    // For YAML it ends a line, for editors it does not.
    if let Some(line) = text.split('\n').position(|line| line.contains('\r')) {
        return Err(Mistake::new(number(line), "A carriage return stands within a line."));
    }
    match yaml::parse(&text) {
        Ok(tree) => Ok(Front { tree, quoted: Vec::new() }),
        Err(fault) => {
            let (text, quoted) = quote(&text);
            match yaml::parse(&text) {
                Ok(tree) if !quoted.is_empty() => Ok(Front { tree, quoted }),
                _ => Err(fault),
            }
        }
    }
}

/// Quotes the values of those entries that are no YAML when read alone. The number of lines stays.
fn quote(text: &str) -> (String, Vec<u32>) {
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::new();
    let mut quoted = Vec::new();
    let mut at = 0;
    while let Some(first) = lines.get(at) {
        let more = lines.iter().skip(at + 1).take_while(|line| is_continuation(line)).count();
        let entry = lines.get(at..=at + more).unwrap_or_default();
        let is_sound = matches!(
            yaml::parse(&entry.join("\n")),
            Ok(Tree { root: None | Some(yaml::Node { value: Value::Map { .. }, .. }), .. })
        );
        if !is_sound
            && let Some((key, value)) = unquoted(first)
            && yaml::parse(first).is_err()
        {
            quoted.push(number(at));
            out.push_str(&quote_entry(key, value, entry));
            out.extend(std::iter::repeat_n('\n', more + 1));
            at += more + 1;
            continue;
        }
        // A map: each of its lines alone.
        for (place, line) in entry.iter().enumerate() {
            match unquoted(line) {
                Some((key, value)) if !is_sound && place > 0 && yaml::parse(line.trim()).is_err() => {
                    quoted.push(number(at + place));
                    out.push_str(&quote_entry(key, value, &[]));
                }
                _ => out.push_str(line),
            }
            out.push('\n');
        }
        at += more + 1;
    }
    (out, quoted)
}

fn is_continuation(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with([' ', '\t'])
}

/// The key with its colon, and a value on the same line that has no quotes and is no block.
fn unquoted(line: &str) -> Option<(&str, &str)> {
    let colon = line.find(':')?;
    let (key, value) = line.split_at_checked(colon + 1)?;
    let is_key =
        key.trim_start().trim_end_matches(':').chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
    let value = value.strip_prefix([' ', '\t'])?.trim();
    (is_key && !value.is_empty() && !value.starts_with(['"', '\'', '|', '>', '&', '*']))
        .then_some((key, value))
}

fn quote_entry(key: &str, value: &str, entry: &[&str]) -> String {
    let mut text = value.to_owned();
    for line in entry.iter().skip(1).map(|line| line.trim()).filter(|line| !line.is_empty()) {
        text.push(' ');
        text.push_str(line);
    }
    format!("{key} '{}'", text.replace('\'', "''"))
}

fn number(place: usize) -> u32 {
    u32::try_from(place + 1).unwrap_or(u32::MAX)
}
