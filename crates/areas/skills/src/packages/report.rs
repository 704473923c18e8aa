//! What an import says about a package.

use crate::files::scripts::runs;
use serde::Serialize;
use skill_packages::{Report, Warning};
use utoipa::ToSchema;

/// Something that was accepted although the format does not allow it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "code": "unknown_field", "file": "SKILL.md", "line": 4, "message": "The format has no field `version`." }))]
pub struct SkillImportWarning {
    /// A code for programs, such as `unknown_field`.
    pub code: String,
    /// The path of the file.
    pub file: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// An explanation for people.
    pub message: String,
}

impl SkillImportWarning {
    pub(super) fn of(warning: Warning) -> Self {
        let Warning { code, file, line, message } = warning;
        Self { code: code.to_owned(), file, line, message }
    }
}

/// A script of a package.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "path": "scripts/total.js", "kind": "javascript", "runs": true }))]
pub struct SkillImportScript {
    /// The path.
    pub path: String,
    /// The language: `javascript`, `typescript`, `python`, `shell`, `windows` or `other`.
    pub kind: &'static str,
    /// Whether agents can run it. Other scripts are stored and shown, and not run here.
    pub runs: bool,
}

/// Characters of a line that a reader does not see.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "file": "SKILL.md", "line": 9, "column": 4, "kind": "zero_width", "count": 1 }))]
pub struct SkillImportHiddenCharacters {
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

/// A text that asks for credentials.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "file": "SKILL.md", "line": 12, "text": "your API key" }))]
pub struct SkillImportCredentials {
    /// The path of the file.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The words that were found.
    pub text: String,
}

/// What a careful person would look at before trusting a package. Nothing of it prevents an import.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SkillImportReport {
    /// The scripts.
    pub scripts: Vec<SkillImportScript>,
    /// The hosts that texts name, sorted, at most 100.
    pub hosts: Vec<String>,
    /// Characters that a reader does not see, at most 100 places.
    pub hidden_characters: Vec<SkillImportHiddenCharacters>,
    /// Texts that ask for credentials, at most 100 places.
    pub credentials: Vec<SkillImportCredentials>,
}

impl SkillImportReport {
    pub(super) fn of(report: Report) -> Self {
        let scripts = report.scripts.into_iter().map(|script| SkillImportScript {
            kind: script.kind.as_str(),
            runs: runs(&script.path),
            path: script.path,
        });
        let hidden = report.hidden_characters.into_iter().map(|place| SkillImportHiddenCharacters {
            file: place.file,
            line: place.line,
            column: place.column,
            kind: place.kind,
            count: place.count,
        });
        let credentials = report.credentials.into_iter();
        Self {
            scripts: scripts.collect(),
            hosts: report.hosts,
            hidden_characters: hidden.collect(),
            credentials: credentials
                .map(|place| SkillImportCredentials { file: place.file, line: place.line, text: place.text })
                .collect(),
        }
    }
}
