//! Reads hostile zips, and writes repeatable ones.
//!
//! Nothing is believed that a header says: entries are unpacked up to a limit and compared with what they announced.

use super::limits::{Limits, PackageError};
use super::media;
use super::paths::{check_form, folded};
use std::collections::HashSet;
use std::fmt::Display;
use std::io::{Cursor, Read, Write};
use zip::read::ZipFile;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

/// Small files may be packed more tightly than the limit: a page of spaces is no bomb.
const RATIO_BEGINS: u64 = 64 * 1024;

/// A file of a zip.
pub(super) struct Entry {
    pub(super) path: String,
    pub(super) bytes: Vec<u8>,
}

/// The files of a zip, and the paths of those that operating systems add.
pub(super) struct Archive {
    pub(super) entries: Vec<Entry>,
    pub(super) ignored: Vec<String>,
}

/// Reads a zip.
pub(super) fn read(bytes: &[u8], limits: &Limits) -> Result<Archive, PackageError> {
    let mut zip = ZipArchive::new(Cursor::new(bytes)).map_err(|fault| damaged(&fault))?;
    if zip.has_duplicate_names() {
        return Err(PackageError::of_zip("The zip has two entries with the same name."));
    }
    // Two entries over the same bytes, or headers that contradict each other: readers would unpack different files.
    zip.validate_header_consistency().map_err(|fault| damaged(&fault))?;
    // Folders and files that are ignored count too, a few times as many.
    if zip.len() > limits.files * 4 + 16 {
        return Err(too_many(limits));
    }
    let mut collector = Collector::new(limits);
    for at in 0..zip.len() {
        let file = zip.by_index_raw(at).map_err(|fault| damaged(&fault))?;
        let path = checked(&file)?;
        let (is_folder, size, packed) = (file.is_dir(), file.size(), file.compressed_size());
        drop(file);
        collector.admit(&path)?;
        if !is_folder && !collector.ignores(&path) {
            refuse_bomb(&path, size, packed, limits)?;
            let bytes = unpack(&mut zip, at, &path, size, collector.left, limits)?;
            collector.add(Entry { path, bytes })?;
        }
    }
    collector.finish()
}

/// Checks files that were read already.
pub(super) fn collect(files: impl Iterator<Item = Entry>, limits: &Limits) -> Result<Archive, PackageError> {
    let mut collector = Collector::new(limits);
    for entry in files {
        check_form(&entry.path).map_err(|fault| PackageError::of_file(&entry.path, fault.message()))?;
        collector.admit(&entry.path)?;
        if !collector.ignores(&entry.path) {
            collector.add(entry)?;
        }
    }
    collector.finish()
}

/// Files as they come, with what all of them may have.
struct Collector<'a> {
    archive: Archive,
    limits: &'a Limits,
    /// The paths as file systems compare them.
    names: HashSet<String>,
    /// The bytes that are left.
    left: usize,
}

impl<'a> Collector<'a> {
    fn new(limits: &'a Limits) -> Self {
        let archive = Archive { entries: Vec::new(), ignored: Vec::new() };
        Self { archive, limits, names: HashSet::new(), left: limits.bytes }
    }

    /// Refuses a path that another one excludes.
    fn admit(&mut self, path: &str) -> Result<(), PackageError> {
        match self.names.insert(folded(path)) {
            true => Ok(()),
            false => Err(PackageError::of_file(
                path,
                "Another path differs only in case or in the form of its characters.",
            )),
        }
    }

    /// Sets a file aside that an operating system added.
    fn ignores(&mut self, path: &str) -> bool {
        let ignores = is_of_an_operating_system(path);
        if ignores {
            self.archive.ignored.push(path.to_owned());
        }
        ignores
    }

    fn add(&mut self, entry: Entry) -> Result<(), PackageError> {
        // SKILL.md does not count.
        if self.archive.entries.len() > self.limits.files {
            return Err(too_many(self.limits));
        }
        self.left = self.left.checked_sub(entry.bytes.len()).ok_or_else(|| too_large(self.limits))?;
        refuse_zip(&entry.path, &entry.bytes)?;
        self.archive.entries.push(entry);
        Ok(())
    }

    fn finish(self) -> Result<Archive, PackageError> {
        refuse_files_as_folders(&self.archive.entries)?;
        Ok(self.archive)
    }
}

fn damaged(fault: &ZipError) -> PackageError {
    PackageError::of_zip(format!("The zip is damaged: {fault}."))
}

/// The path of an entry that is a file or a folder, without the `/` at its end.
fn checked<R: Read + ?Sized>(file: &ZipFile<'_, R>) -> Result<String, PackageError> {
    let name = std::str::from_utf8(file.name_raw())
        .map_err(|_| PackageError::of_zip("The zip has a name that is not UTF-8."))?;
    if file.encrypted() {
        return Err(PackageError::of_file(name, "The file is encrypted."));
    }
    let path = if file.is_dir() { name.trim_end_matches('/') } else { name };
    check_form(path).map_err(|fault| PackageError::of_file(name, fault.message()))?;
    // The upper bits are the kind of file: 0 is unknown, 4 a folder, 8 a file; others are links, devices and sockets.
    let kind = file.unix_mode().map_or(0, |mode| mode >> 12);
    if file.is_symlink() || !(kind == 0 || kind == 8 || (kind == 4 && file.is_dir())) {
        return Err(PackageError::of_file(name, "The entry is a link or no file."));
    }
    Ok(path.to_owned())
}

/// Files that macOS and Windows put into folders by themselves.
fn is_of_an_operating_system(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    path.starts_with("__MACOSX/") || matches!(name, ".DS_Store" | "Thumbs.db" | "desktop.ini")
}

fn refuse_bomb(path: &str, size: u64, packed: u64, limits: &Limits) -> Result<(), PackageError> {
    let allowed = packed.saturating_mul(u64::try_from(limits.ratio).unwrap_or(u64::MAX));
    match size > RATIO_BEGINS && size > allowed {
        true => {
            Err(PackageError::large(format!("`{path}` is packed to less than a part in {}.", limits.ratio)))
        }
        false => Ok(()),
    }
}

fn unpack(
    zip: &mut ZipArchive<Cursor<&[u8]>>,
    at: usize,
    path: &str,
    size: u64,
    left: usize,
    limits: &Limits,
) -> Result<Vec<u8>, PackageError> {
    let refused =
        |fault: &dyn Display| PackageError::of_file(path, format!("The file cannot be unpacked: {fault}."));
    let left = u64::try_from(left).unwrap_or(u64::MAX);
    if size > left {
        return Err(too_large(limits));
    }
    let file = zip.by_index(at).map_err(|fault| refused(&fault))?;
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default());
    // One byte more than announced shows that the announced size is a lie.
    file.take(size + 1).read_to_end(&mut bytes).map_err(|fault| refused(&fault))?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length == size => Ok(bytes),
        _ => Err(PackageError::of_file(path, "The file has another size than the zip says.")),
    }
}

fn refuse_zip(path: &str, bytes: &[u8]) -> Result<(), PackageError> {
    let name = path.to_ascii_lowercase();
    let is_named = name.ends_with(".zip") || name.ends_with(".skill");
    let is_one = bytes.starts_with(b"PK\x03\x04") && !media::is_document_in_a_zip(path);
    match is_named || is_one {
        true => Err(PackageError::of_file(path, "A package cannot hold another zip.")),
        false => Ok(()),
    }
}

/// Refuses `a` next to `a/b`.
fn refuse_files_as_folders(entries: &[Entry]) -> Result<(), PackageError> {
    let files: HashSet<String> = entries.iter().map(|entry| folded(&entry.path)).collect();
    for Entry { path, .. } in entries {
        let mut folder = path.as_str();
        while let Some((parent, _)) = folder.rsplit_once('/') {
            if files.contains(&folded(parent)) {
                return Err(PackageError::of_file(path, "A file has the name of the folder."));
            }
            folder = parent;
        }
    }
    Ok(())
}

fn too_large(limits: &Limits) -> PackageError {
    PackageError::large(format!("The package is larger than {} bytes.", limits.bytes))
}

fn too_many(limits: &Limits) -> PackageError {
    PackageError::large(format!("The package has more than {} files.", limits.files))
}

/// Writes a zip with these paths and contents, in this order. Times and modes are always the same.
pub(super) fn write(entries: &[(String, &[u8])]) -> Option<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, bytes) in entries {
        // Within reach of the limit of the ratio, so that what is exported can be imported.
        let is_large = u64::try_from(bytes.len()).is_ok_and(|length| length > RATIO_BEGINS);
        let method = match is_large && deflated_size(bytes).saturating_mul(90) < bytes.len() {
            true => CompressionMethod::Stored,
            false => CompressionMethod::Deflated,
        };
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .last_modified_time(DateTime::default())
            .unix_permissions(0o644);
        zip.start_file(path.as_str(), options).ok()?;
        zip.write_all(bytes).ok()?;
    }
    Some(zip.finish().ok()?.into_inner())
}

fn deflated_size(bytes: &[u8]) -> usize {
    let mut encoder = flate2::write::DeflateEncoder::new(Counter(0), flate2::Compression::default());
    // A counter takes everything.
    let _ = encoder.write_all(bytes);
    encoder.finish().map_or(0, |counter| counter.0)
}

struct Counter(usize);

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
