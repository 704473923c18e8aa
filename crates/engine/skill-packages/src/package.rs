//! A package: SKILL.md and files next to it, as a zip.

use crate::document::{SkillDocument, Warning};

/// A skill with its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// SKILL.md.
    pub document: SkillDocument,
    /// The other files, sorted by path.
    pub files: Vec<PackageFile>,
    /// The folder that holds everything, if the zip has one.
    pub folder: Option<String>,
}

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageFile {
    /// The path within the package, with `/`.
    pub path: String,
    /// The content.
    pub bytes: Vec<u8>,
}

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

/// Why a path cannot name a file of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathFault {
    /// It is empty, or has an empty part, `.` or `..`.
    Parts,
    /// It begins with `/` or a drive.
    Absolute,
    /// It has a backslash, a colon, a control character or a hidden character.
    Character,
    /// It is longer than 255 bytes.
    Long,
    /// It is SKILL.md in some spelling.
    Reserved,
}

impl PathFault {
    /// An explanation for people.
    pub fn message(self) -> &'static str {
        match self {
            Self::Parts => "The path has an empty part, `.` or `..`.",
            Self::Absolute => "The path is absolute.",
            Self::Character => "The path has a backslash, a colon, or a control or hidden character.",
            Self::Long => "The path is longer than 255 bytes.",
            Self::Reserved => "SKILL.md is written by the fields of the skill.",
        }
    }
}

impl Package {
    /// Reads a zip, or one SKILL.md. `file_name` names the upload in messages.
    ///
    /// # Errors
    /// A limit is exceeded, the zip is damaged or hostile, or SKILL.md is missing, there twice or cannot be read.
    pub fn read(
        bytes: &[u8],
        file_name: &str,
        limits: &Limits,
    ) -> Result<(Self, Vec<Warning>), PackageError> {
        let _ = (bytes, file_name, limits);
        Err(PackageError::TooLarge { message: "not implemented".to_owned() })
    }

    /// Writes the package as a zip, with the folder of its name. Equal packages give equal bytes.
    pub fn write(&self) -> Vec<u8> {
        Vec::new()
    }
}

/// Checks the path of a file that is put into a package.
///
/// # Errors
/// The rule that the path breaks.
pub fn check_path(path: &str) -> Result<(), PathFault> {
    let _ = path;
    Ok(())
}

/// The media type of a file by the ending of its path; `application/octet-stream` if it is unknown.
pub fn media_type(path: &str) -> &'static str {
    let _ = path;
    "application/octet-stream"
}
