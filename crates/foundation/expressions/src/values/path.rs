//! References: a root and the steps below it.

use std::fmt;

/// A reference, such as `$nodes.a.output.items[0].price`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The name behind the `$`.
    pub root: String,
    /// The steps below the root.
    pub steps: Vec<Step>,
}

/// A step of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A member of an object.
    Name(String),
    /// An element of a list, from 0; negative ones are counted from the end.
    Index(i64),
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.root)?;
        self.steps.iter().try_for_each(|step| step.fmt(f))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) if is_plain(name) => write!(f, ".{name}"),
            Self::Name(name) => write!(f, "[{}]", quoted(name)),
            Self::Index(place) => write!(f, "[{place}]"),
        }
    }
}

/// Whether a name may stand behind a dot: `$name`, `order_id`.
fn is_plain(name: &str) -> bool {
    let bare = name.strip_prefix('$').unwrap_or(name);
    bare.starts_with(begins_name) && bare.chars().all(is_of_name)
}

pub(crate) fn begins_name(letter: char) -> bool {
    letter.is_alphabetic() || letter == '_'
}

pub(crate) fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// A text as the language writes it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            _ => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
