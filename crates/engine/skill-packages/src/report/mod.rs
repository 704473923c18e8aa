//! What a careful person would look at before trusting a package. Nothing here blocks.

mod credentials;
mod references;
mod scripts;

pub use references::referenced_files;
pub use scripts::{Script, ScriptKind};

use crate::package::Package;
use crate::{DOCUMENT, hidden};
use regex::Regex;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Places of each kind that are listed at most.
const PLACES: usize = 100;

/// Findings about a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The scripts.
    pub scripts: Vec<Script>,
    /// The hosts named in texts, sorted, each once; at most 100.
    pub hosts: Vec<String>,
    /// Characters that a reader does not see; at most 100 places.
    pub hidden_characters: Vec<HiddenCharacters>,
    /// Texts that ask for credentials; at most 100 places.
    pub credentials: Vec<Place>,
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
    let mut report = Report {
        scripts: package.files.iter().filter_map(|file| scripts::script(&file.path, &file.bytes)).collect(),
        ..Report::default()
    };
    let mut hosts = BTreeSet::new();
    let document = (DOCUMENT, package.document.bytes());
    let files = package.files.iter().map(|file| (file.path.as_str(), file.bytes.as_slice()));
    for (path, bytes) in std::iter::once(document).chain(files) {
        let Ok(text) = std::str::from_utf8(bytes) else { continue };
        hosts.extend(hosts_of(text));
        for (line, number) in text.trim_start_matches('\u{feff}').lines().zip(1_u32..) {
            report.hidden_characters.extend(hidden_of(path, number, line));
            report.credentials.extend(credentials::place(path, number, line));
        }
        report.hidden_characters.truncate(PLACES);
        report.credentials.truncate(PLACES);
    }
    report.hosts = hosts.into_iter().take(PLACES).collect();
    report
}

static HOST: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?i)\b(?:https?|wss?|ftps?|sftp|ssh|git)://(?:[^\s/@'\x22<>]*@)?(\[[0-9a-f:.]+\]|[\p{L}\p{N}._-]*[\p{L}\p{N}])")
        .ok()
});

fn hosts_of(text: &str) -> impl Iterator<Item = String> {
    let found = HOST.as_ref().map(|host| host.captures_iter(text));
    found.into_iter().flatten().filter_map(|found| found.get(1)).map(|host| host.as_str().to_lowercase())
}

/// The hidden characters of a line, one entry a kind.
fn hidden_of(file: &str, line: u32, text: &str) -> Vec<HiddenCharacters> {
    let mut found: Vec<HiddenCharacters> = Vec::new();
    let mut before = ' ';
    for (c, column) in text.chars().zip(1_u32..) {
        let is_joiner = matches!(c, '\u{200c}' | '\u{200d}') && hidden::takes_joiner(before);
        before = c;
        let Some(kind) = hidden::kind(c).filter(|_| !is_joiner) else { continue };
        match found.iter_mut().find(|entry| entry.kind == kind) {
            Some(entry) => entry.count += 1,
            None => found.push(HiddenCharacters { file: file.to_owned(), line, column, kind, count: 1 }),
        }
    }
    found
}

/// About how many tokens a text has for a model: one for four characters, and one for each that is no ASCII.
pub fn token_estimate(text: &str) -> usize {
    let others = text.chars().filter(|c| !c.is_ascii()).count();
    let ascii = text.bytes().filter(u8::is_ascii).count();
    ascii.div_ceil(4) + others
}

#[cfg(test)]
mod tests;
