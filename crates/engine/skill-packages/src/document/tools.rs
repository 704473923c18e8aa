//! `allowed-tools` in all the forms that are found.

use crate::faults::Warning;
use crate::yaml::{Node, Value};

/// The tools that a skill leaves to the agent once it is loaded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum AllowedTools {
    /// The front matter has no `allowed-tools`: all tools stay.
    #[default]
    Absent,
    /// These names, in their order. An empty list leaves none.
    Listed(Vec<String>),
    /// `allowed-tools` is there but cannot be read. The skill must not be loaded: an unreadable limit closes.
    Unreadable,
}

/// Whether a key was meant to be `allowed-tools`, such as `allowed_tools`.
pub(crate) fn is_misspelled(key: &str) -> bool {
    let letters = key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    letters.eq("allowedtools".chars()) || ["allow-tools", "allowed-tool"].contains(&key)
}

/// Reads the value. `line` is its line in the document.
pub(crate) fn read(value: &Node, line: u32, warnings: &mut Vec<Warning>) -> AllowedTools {
    let names = match &value.value {
        Value::Text { text, .. } => {
            let (names, has_commas) = words(text);
            if has_commas {
                warn(
                    warnings,
                    "allowed_tools_commas",
                    line,
                    "The names in `allowed-tools` are separated by spaces, not commas.",
                );
            }
            names
        }
        Value::List { items, .. } => {
            warn(
                warnings,
                "allowed_tools_list",
                line,
                "`allowed-tools` is one text with spaces between the names, not a list.",
            );
            items.iter().map(|item| single(item.text()?)).collect()
        }
        Value::Map { .. } => None,
    };
    let Some(mut names) = names else {
        warn(
            warnings,
            "allowed_tools_unreadable",
            line,
            "`allowed-tools` cannot be read, so the skill cannot be loaded.",
        );
        return AllowedTools::Unreadable;
    };
    if names.is_empty() {
        warn(warnings, "allowed_tools_empty", line, "`allowed-tools` is empty: the skill leaves no tool.");
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    AllowedTools::Listed(names)
}

fn warn(warnings: &mut Vec<Warning>, code: &'static str, line: u32, message: &str) {
    warnings.push(Warning::of_document(code, line, message));
}

/// The one name that an entry of a list is.
fn single(text: &str) -> Option<String> {
    let (names, _) = words(text);
    match names?.as_slice() {
        [name] => Some(name.clone()),
        _ => None,
    }
}

/// Separates names at spaces and commas outside parentheses, as in `Bash(git add:*) Read`. `None` if the parentheses do not
/// match. Also says whether there were commas.
fn words(text: &str) -> (Option<Vec<String>>, bool) {
    let mut names = Vec::new();
    let mut name = String::new();
    let mut depth = 0_usize;
    let mut has_commas = false;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return (None, has_commas),
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 && (c.is_whitespace() || c == ',') {
            has_commas |= c == ',';
            names.extend(Some(std::mem::take(&mut name)).filter(|name| !name.is_empty()));
        } else {
            name.push(c);
        }
    }
    names.extend(Some(name).filter(|name| !name.is_empty()));
    ((depth == 0).then_some(names), has_commas)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn names_are_separated_outside_parentheses() {
        let names = |text: &str| words(text).0.map(|names| names.join("|"));
        assert_eq!(names("Read Bash(git add:*), Write").unwrap(), "Read|Bash(git add:*)|Write");
        assert_eq!(names("  ").unwrap(), "");
        assert_eq!(names("Bash(git"), None);
        assert_eq!(names("Bash)"), None);
    }
}
