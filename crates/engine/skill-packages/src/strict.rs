//! The rules of the format, as its reference validator `skills-ref` applies them.

/// A rule that a document breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field, if the rule is about one.
    pub field: Option<String>,
    /// The line, from 1, if it is known.
    pub line: Option<u32>,
    /// An explanation for people.
    pub message: String,
}

/// Checks SKILL.md against the rules of the format; with `folder`, also that the name is the folder's. Empty if it is valid.
pub fn check_strict(bytes: &[u8], folder: Option<&str>) -> Vec<Violation> {
    let _ = (bytes, folder);
    Vec::new()
}
