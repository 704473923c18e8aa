//! The paths of files within a package.

use crate::{DOCUMENT, hidden};
use unicode_normalization::UnicodeNormalization;

/// Bytes of a path at most.
const LENGTH: usize = 255;

/// Why a path cannot name a file of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathFault {
    /// It is empty, or has a part that is empty, `.` or `..`, or ends with a dot or a space.
    Parts,
    /// It begins with `/`, or with a drive.
    Absolute,
    /// It has a backslash, a colon, or a control or hidden character.
    Character,
    /// It is longer than 255 bytes.
    Long,
    /// Its last part is SKILL.md in some spelling.
    Reserved,
}

impl PathFault {
    /// An explanation for people.
    pub fn message(self) -> &'static str {
        match self {
            Self::Parts => "A part of the path is empty, `.` or `..`, or ends with a dot or a space.",
            Self::Absolute => "The path is absolute.",
            Self::Character => "The path has a backslash, a colon, or a control or hidden character.",
            Self::Long => "The path is longer than 255 bytes.",
            Self::Reserved => "A package has one SKILL.md; it is changed by the fields of the skill.",
        }
    }
}

/// Checks the path of a file of a package other than SKILL.md.
///
/// # Errors
/// The rule that the path breaks.
pub fn check_path(path: &str) -> Result<(), PathFault> {
    check_form(path)?;
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.eq_ignore_ascii_case(DOCUMENT) {
        true => Err(PathFault::Reserved),
        false => Ok(()),
    }
}

/// Checks what every path must keep, also that of SKILL.md.
pub(super) fn check_form(path: &str) -> Result<(), PathFault> {
    if path.len() > LENGTH {
        return Err(PathFault::Long);
    }
    let has_drive = matches!(path.as_bytes(), [drive, b':', ..] if drive.is_ascii_alphabetic());
    if path.starts_with('/') || has_drive {
        return Err(PathFault::Absolute);
    }
    if path.chars().any(|c| matches!(c, '\\' | ':' | '\t' | '\n' | '\r') || hidden::kind(c).is_some()) {
        return Err(PathFault::Character);
    }
    let is_part = |part: &str| !part.is_empty() && !part.ends_with(['.', ' ']);
    match path.split('/').all(is_part) {
        true => Ok(()),
        false => Err(PathFault::Parts),
    }
}

/// What two paths share that a file system may not tell apart: case and normal form.
pub(super) fn folded(path: &str) -> String {
    path.nfkc().flat_map(char::to_lowercase).nfkc().collect()
}
