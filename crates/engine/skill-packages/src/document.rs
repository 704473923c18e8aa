//! SKILL.md: front matter in YAML, then the instructions in Markdown.

use std::collections::BTreeMap;

/// The instructions and the fields of a skill, with the bytes they were read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDocument {
    bytes: Vec<u8>,
    name: Option<String>,
    description: Option<String>,
    license: Option<String>,
    compatibility: Option<String>,
    metadata: BTreeMap<String, String>,
    allowed_tools: AllowedTools,
    body: String,
}

/// The tools that a skill leaves to the agent once it is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedTools {
    /// The front matter has no `allowed-tools`: all tools stay.
    Absent,
    /// These names, in their order. An empty list leaves none.
    Listed(Vec<String>),
    /// `allowed-tools` is there but cannot be read. The skill must not be loaded: an unreadable limit closes.
    Unreadable,
}

/// A document and what was odd about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The document.
    pub document: SkillDocument,
    /// What a stricter reader would refuse.
    pub warnings: Vec<Warning>,
}

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

/// Why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1.
    pub line: u32,
    /// An explanation for people.
    pub message: String,
}

/// The fields of a new document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// `name`.
    pub name: String,
    /// `description`.
    pub description: String,
    /// `license`.
    pub license: Option<String>,
    /// `compatibility`.
    pub compatibility: Option<String>,
    /// `metadata`, sorted by key.
    pub metadata: BTreeMap<String, String>,
    /// `allowed-tools`; `None` leaves the field out.
    pub allowed_tools: Option<Vec<String>>,
}

/// The parts of a document to change. What is `None` stays as it is, byte for byte; an inner `None` removes the field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentChange {
    /// `name`.
    pub name: Option<String>,
    /// `description`.
    pub description: Option<String>,
    /// `license`.
    pub license: Option<Option<String>>,
    /// `compatibility`.
    pub compatibility: Option<Option<String>>,
    /// Entries of `metadata`: a value sets one, `None` removes it. Entries that are not named stay.
    pub metadata: BTreeMap<String, Option<String>>,
    /// `allowed-tools`.
    pub allowed_tools: Option<Option<Vec<String>>>,
    /// The instructions.
    pub body: Option<String>,
}

impl SkillDocument {
    /// Reads SKILL.md leniently: a BOM, CRLF, unknown fields, unquoted colons and `allowed-tools` in another form than the
    /// format's are warnings.
    ///
    /// # Errors
    /// There is no front matter, it is no map of YAML even with quotes added, uses anchors or aliases, has a key twice, or is
    /// longer than 64 KB; or the text is not UTF-8.
    pub fn parse(bytes: &[u8]) -> Result<Parsed, Mistake> {
        let _ = bytes;
        Err(Mistake { line: 1, message: "not implemented".to_owned() })
    }

    /// Writes a document with these fields and instructions.
    ///
    /// # Errors
    /// A field has characters that YAML cannot hold in any form, such as NUL.
    pub fn new(fields: &Fields, body: &str) -> Result<Self, Mistake> {
        let _ = (fields, body);
        Err(Mistake { line: 1, message: "not implemented".to_owned() })
    }

    /// Changes the named fields. All other lines keep their bytes, order, quotes and line ends.
    ///
    /// # Errors
    /// A value has characters that YAML cannot hold, or the front matter has a form that cannot be changed line by line.
    pub fn with(&self, change: &DocumentChange) -> Result<Self, Mistake> {
        let _ = change;
        Err(Mistake { line: 1, message: "not implemented".to_owned() })
    }

    /// `name`, trimmed. `None` if it is missing, empty or no text.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// `description`, trimmed. `None` if it is missing, empty or no text.
    pub fn description(&self) -> Option<&str> {
        self.description.as_deref()
    }

    /// `license`.
    pub fn license(&self) -> Option<&str> {
        self.license.as_deref()
    }

    /// `compatibility`.
    pub fn compatibility(&self) -> Option<&str> {
        self.compatibility.as_deref()
    }

    /// `metadata`.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// `allowed-tools`.
    pub fn allowed_tools(&self) -> &AllowedTools {
        &self.allowed_tools
    }

    /// The instructions: all after the line that closes the front matter, as written.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// The bytes of SKILL.md.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
