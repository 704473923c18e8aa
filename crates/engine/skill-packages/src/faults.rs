//! What is said of documents that break a rule.

/// Something that was accepted although the format does not allow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// A stable code, such as `unknown_field`.
    pub code: &'static str,
    /// The path of the file within the package.
    pub file: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// An explanation for people.
    pub message: String,
}

impl Warning {
    /// A warning about SKILL.md.
    pub(crate) fn of_document(code: &'static str, line: u32, message: impl Into<String>) -> Self {
        Self { code, file: crate::DOCUMENT.to_owned(), line: Some(line), message: message.into() }
    }
}

/// Why a document cannot be read or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1.
    pub line: u32,
    /// An explanation for people.
    pub message: String,
}

impl Mistake {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> Self {
        Self { line, message: message.into() }
    }
}
