//! Packages of skills: SKILL.md with its front matter, and files next to it. Pure: no database, no HTTP.
//!
//! The bytes of SKILL.md are the source, its fields are derived: what is imported is exported byte for byte, and a change
//! rewrites only the lines of the front matter that it names. Reading is lenient and answers warnings; [`check_strict`] agrees
//! with the reference validator of the format.

mod document;
mod faults;
mod hidden;
mod package;
mod report;
mod rules;
mod scalar;
mod strict;
mod yaml;

pub use document::{AllowedTools, DocumentChange, Fields, Parsed, SkillDocument};
pub use faults::{Mistake, Warning};
pub use package::{Limits, Package, PackageError, PackageFile, PathFault, check_path, media_type};
pub use report::{
    HiddenCharacters, Place, Report, Script, ScriptKind, referenced_files, report, token_estimate,
};
pub use strict::{Violation, check_strict};

/// The file with the front matter and the instructions.
pub(crate) const DOCUMENT: &str = "SKILL.md";
