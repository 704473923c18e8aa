//! What a careful person would look at before trusting a package. Nothing here blocks.

use crate::package::Package;

/// Findings about a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The scripts.
    pub scripts: Vec<Script>,
    /// The hosts named in texts, sorted, each once.
    pub hosts: Vec<String>,
    /// Characters that a reader does not see.
    pub hidden_characters: Vec<HiddenCharacters>,
    /// Texts that ask for credentials.
    pub credentials: Vec<Place>,
}

/// A script of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The path.
    pub path: String,
    /// The language.
    pub kind: ScriptKind,
    /// Whether the sandbox can run it: JavaScript in `scripts/`.
    pub runs: bool,
}

/// The language of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptKind {
    /// JavaScript.
    JavaScript,
    /// Python.
    Python,
    /// A shell.
    Shell,
    /// PowerShell or a batch file.
    Windows,
    /// Another language.
    Other,
}

impl ScriptKind {
    /// The name in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JavaScript => "javascript",
            Self::Python => "python",
            Self::Shell => "shell",
            Self::Windows => "windows",
            Self::Other => "other",
        }
    }
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path of the file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The words that were found, of at most 80 characters.
    pub text: String,
}

/// Hidden characters of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenCharacters {
    /// The path of the file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The place of the first one in the line, in characters, from 1.
    pub column: u32,
    /// `zero_width`, `bidi`, `tag` or `control`.
    pub kind: &'static str,
    /// How many the line has of this kind.
    pub count: u32,
}

/// Reports on a package.
pub fn report(package: &Package) -> Report {
    let _ = package;
    Report::default()
}

/// The files of the package that instructions refer to: relative links, and paths in code below `scripts/`, `references/` and
/// `assets/`. Sorted, each once.
pub fn referenced_files(body: &str) -> Vec<String> {
    let _ = body;
    Vec::new()
}

/// About how many tokens a text has for a model: a quarter of its characters, and one for each that is not of a Latin script.
pub fn token_estimate(text: &str) -> usize {
    text.len().div_ceil(4)
}
