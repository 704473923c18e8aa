//! SKILL.md: front matter in YAML, then the instructions in Markdown.

mod change;
mod edit;
mod fields;
mod retry;
mod split;
mod tools;

pub use change::{DocumentChange, Fields};
pub use tools::AllowedTools;

use crate::faults::{Mistake, Warning};
use fields::ReadFields;
use std::collections::BTreeMap;

/// The instructions and the fields of a skill, with the bytes they were read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDocument {
    text: String,
    /// Where the instructions begin.
    body: usize,
    fields: ReadFields,
}

/// A document and what was odd about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The document.
    pub document: SkillDocument,
    /// What a stricter reader would refuse.
    pub warnings: Vec<Warning>,
}

impl SkillDocument {
    /// Reads SKILL.md leniently: a BOM, CRLF, unknown fields, unquoted colons and `allowed-tools` in another form than the
    /// format's are warnings.
    ///
    /// # Errors
    /// There is no front matter; it is empty, no map, or no YAML even with quotes added; it uses anchors or aliases, has a key
    /// twice, or is longer than 64 KB; or the text is not UTF-8.
    pub fn parse(bytes: &[u8]) -> Result<Parsed, Mistake> {
        let text = split::text(bytes)?;
        let parts = split::split(text)?;
        let front = retry::read(parts.front).map_err(|fault| Mistake { line: fault.line + 1, ..fault })?;
        let (fields, mut warnings) = fields::read(&front)?;
        if text.starts_with('\u{feff}') {
            warnings.push(Warning::of_document(
                "byte_order_mark",
                1,
                "The text begins with a byte order mark.",
            ));
        }
        if parts.newline() == "\r\n" {
            warnings.push(Warning::of_document("crlf", 1, "The lines end with CR and LF."));
        }
        warnings.sort_by_key(|warning| warning.line);
        let document = Self { text: text.to_owned(), body: text.len() - parts.body.len(), fields };
        Ok(Parsed { document, warnings })
    }

    /// Writes a document with these fields and instructions.
    ///
    /// # Errors
    /// A name in `allowed_tools` has a space or a comma, or the front matter becomes longer than 64 KB.
    pub fn new(fields: &Fields, body: &str) -> Result<Self, Mistake> {
        change::create(fields, body)
    }

    /// Changes the named fields. All other lines keep their bytes, order, quotes and line ends. Values are trimmed.
    ///
    /// # Errors
    /// A name in `allowed_tools` has a space or a comma, the front matter becomes longer than 64 KB, or it has a form that
    /// cannot be changed line by line, such as a map in braces.
    pub fn with(&self, change: &DocumentChange) -> Result<Self, Mistake> {
        change::apply(self, change)
    }

    /// `name`, trimmed. `None` if it is missing, empty or no text.
    pub fn name(&self) -> Option<&str> {
        self.fields.name.as_deref()
    }

    /// `description`, trimmed. `None` if it is missing, empty or no text.
    pub fn description(&self) -> Option<&str> {
        self.fields.description.as_deref()
    }

    /// `license`.
    pub fn license(&self) -> Option<&str> {
        self.fields.license.as_deref()
    }

    /// `compatibility`.
    pub fn compatibility(&self) -> Option<&str> {
        self.fields.compatibility.as_deref()
    }

    /// `metadata`. Entries that are no texts are left out.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.fields.metadata
    }

    /// `allowed-tools`.
    pub fn allowed_tools(&self) -> &AllowedTools {
        &self.fields.allowed_tools
    }

    /// The instructions: all after the line that closes the front matter, as written.
    pub fn body(&self) -> &str {
        self.text.get(self.body..).unwrap_or_default()
    }

    /// The bytes of SKILL.md.
    pub fn bytes(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

#[cfg(test)]
mod tests;
