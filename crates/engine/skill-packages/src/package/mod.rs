//! A package: SKILL.md and files next to it, as a zip.

mod archive;
mod limits;
mod media;
mod paths;

pub use limits::{Limits, PackageError};
pub use media::media_type;
pub use paths::{PathFault, check_path};

use crate::DOCUMENT;
use crate::document::SkillDocument;
use crate::faults::Warning;
use crate::rules;
use archive::{Archive, Entry};

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

impl Package {
    /// Reads a zip, or one SKILL.md. `file_name` is the name of the upload.
    ///
    /// # Errors
    /// A limit is exceeded, the zip is damaged or hostile, or SKILL.md is missing, there twice or cannot be read.
    pub fn read(
        bytes: &[u8],
        file_name: &str,
        limits: &Limits,
    ) -> Result<(Self, Vec<Warning>), PackageError> {
        if is_zip(bytes, file_name) {
            return read_zip(bytes, limits);
        }
        let (document, warnings) = read_document(bytes, limits)?;
        Ok((Self { document, files: Vec::new(), folder: None }, warnings))
    }

    /// Reads the files of a folder: SKILL.md and those next to it, with paths within the folder.
    ///
    /// # Errors
    /// As of [`Self::read`].
    pub fn from_files(
        files: Vec<PackageFile>,
        folder: Option<String>,
        limits: &Limits,
    ) -> Result<(Self, Vec<Warning>), PackageError> {
        let entries = files.into_iter().map(|file| Entry { path: file.path, bytes: file.bytes });
        let archive = archive::collect(entries, limits)?;
        if !root(&archive.entries)?.is_empty() {
            return Err(PackageError::of_zip("SKILL.md is not directly in the folder."));
        }
        assemble(archive, "", folder, limits)
    }

    /// Writes the package as a zip, in the folder of its name. Equal packages give equal bytes.
    ///
    /// # Errors
    /// The path of a file cannot be in a package ([`check_path`]).
    pub fn write(&self) -> Result<Vec<u8>, PackageError> {
        let folder = self.folder.as_deref().or_else(|| self.document.name());
        let folder = folder.filter(|folder| !folder.contains('/') && check_path(folder).is_ok());
        let prefix = folder.map(|folder| format!("{folder}/")).unwrap_or_default();
        let mut entries = vec![(format!("{prefix}{DOCUMENT}"), self.document.bytes())];
        for file in &self.files {
            check_path(&file.path).map_err(|fault| PackageError::of_file(&file.path, fault.message()))?;
            entries.push((format!("{prefix}{}", file.path), &file.bytes));
        }
        if let Some(entries) = entries.get_mut(1..) {
            entries.sort();
        }
        archive::write(&entries)
            .ok_or_else(|| PackageError::of_zip("The package cannot be written as a zip."))
    }
}

/// Whether bytes are meant as a zip.
fn is_zip(bytes: &[u8], file_name: &str) -> bool {
    let ending = file_name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    bytes.starts_with(b"PK") || matches!(ending.as_deref(), Some("zip" | "skill"))
}

fn read_document(bytes: &[u8], limits: &Limits) -> Result<(SkillDocument, Vec<Warning>), PackageError> {
    if bytes.len() > limits.bytes {
        return Err(PackageError::large(format!("SKILL.md is larger than {} bytes.", limits.bytes)));
    }
    let parsed = SkillDocument::parse(bytes).map_err(PackageError::of_document)?;
    if parsed.document.body().len() > limits.instructions {
        return Err(PackageError::large(format!(
            "The instructions are longer than {} bytes.",
            limits.instructions
        )));
    }
    Ok((parsed.document, parsed.warnings))
}

fn read_zip(bytes: &[u8], limits: &Limits) -> Result<(Package, Vec<Warning>), PackageError> {
    let archive = archive::read(bytes, limits)?;
    let root = root(&archive.entries)?;
    let folder = Some(root.trim_end_matches('/').to_owned()).filter(|folder| !folder.is_empty());
    assemble(archive, &root, folder, limits)
}

/// Makes a package of the files below `root`.
fn assemble(
    archive: Archive,
    root: &str,
    folder: Option<String>,
    limits: &Limits,
) -> Result<(Package, Vec<Warning>), PackageError> {
    let mut document = None;
    let mut files = Vec::new();
    let mut outside = Vec::new();
    for entry in archive.entries {
        match entry.path.strip_prefix(root).map(str::to_owned) {
            Some(path) if path == DOCUMENT => document = Some(entry.bytes),
            Some(path) => files.push(PackageFile { path, bytes: entry.bytes }),
            None => outside.push(entry.path),
        }
    }
    if let Some(path) = outside.first() {
        return Err(PackageError::of_file(path, "The file is outside the folder of SKILL.md."));
    }
    let document = document.ok_or_else(|| PackageError::of_zip("The zip has no SKILL.md."))?;
    let (document, mut warnings) = read_document(&document, limits)?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    if let (Some(folder), Some(name)) = (&folder, document.name())
        && !rules::is_folder_of(folder, name)
    {
        let message = format!("The folder is `{folder}`, but the name is `{name}`.");
        warnings.push(Warning::of_document("name_folder", 1, message));
    }
    warnings.extend(archive.ignored.into_iter().map(|file| Warning {
        code: "ignored_file",
        file,
        line: None,
        message: "The file of an operating system was left out.".to_owned(),
    }));
    Ok((Package { document, files, folder }, warnings))
}

/// The folder of SKILL.md with `/`, or nothing.
fn root(entries: &[Entry]) -> Result<String, PackageError> {
    let mut found: Option<&str> = None;
    for Entry { path, .. } in entries {
        let (folder, name) =
            path.rsplit_once('/').map_or(("", path.as_str()), |(folder, name)| (folder, name));
        if !name.eq_ignore_ascii_case(DOCUMENT) {
            continue;
        }
        if name != DOCUMENT {
            return Err(PackageError::of_file(path, "The file must be named SKILL.md, in capital letters."));
        }
        if found.is_some() {
            return Err(PackageError::of_file(
                path,
                "The zip has a second SKILL.md; a package is one skill.",
            ));
        }
        if folder.contains('/') {
            return Err(PackageError::of_file(
                path,
                "SKILL.md must be in the only folder of the zip, or in none.",
            ));
        }
        found = Some(folder);
    }
    match found {
        None => Err(PackageError::of_zip("The zip has no SKILL.md.")),
        Some("") => Ok(String::new()),
        Some(folder) => Ok(format!("{folder}/")),
    }
}

#[cfg(test)]
mod tests;
