//! What a package may have at most, and why one is refused.

use crate::DOCUMENT;
use crate::faults::Mistake;

/// What a package may have at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Files without SKILL.md.
    pub files: usize,
    /// Bytes of all files, unpacked.
    pub bytes: usize,
    /// Bytes of the instructions.
    pub instructions: usize,
    /// Unpacked bytes for a packed one.
    pub ratio: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { files: 200, bytes: 10 * 1024 * 1024, instructions: 64 * 1024, ratio: 100 }
    }
}

/// Why a package cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageError {
    /// It is larger than [`Limits`] allow, or is packed too tightly: 413 `package_too_large`.
    TooLarge {
        /// Which limit.
        message: String,
    },
    /// It breaks a rule: 400.
    Invalid {
        /// The path of the file.
        file: Option<String>,
        /// The line of the file, from 1.
        line: Option<u32>,
        /// An explanation for people.
        message: String,
    },
}

impl PackageError {
    pub(super) fn large(message: impl Into<String>) -> Self {
        Self::TooLarge { message: message.into() }
    }

    pub(super) fn of_zip(message: impl Into<String>) -> Self {
        Self::Invalid { file: None, line: None, message: message.into() }
    }

    pub(super) fn of_file(file: &str, message: impl Into<String>) -> Self {
        Self::Invalid { file: Some(file.to_owned()), line: None, message: message.into() }
    }

    pub(super) fn of_document(mistake: Mistake) -> Self {
        Self::Invalid { file: Some(DOCUMENT.to_owned()), line: Some(mistake.line), message: mistake.message }
    }
}
