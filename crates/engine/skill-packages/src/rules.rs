//! The lengths and characters of fields, for strict and lenient reading.

use regex::Regex;
use std::sync::LazyLock;
use unicode_normalization::UnicodeNormalization;

/// Bytes of front matter at most.
pub(crate) const FRONT_MATTER: usize = 64 * 1024;

const NAME: usize = 64;
const DESCRIPTION: usize = 1024;
const COMPATIBILITY: usize = 500;

/// The fields of the format.
pub(crate) const FIELDS: [&str; 6] =
    ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

static NAME_CHARACTERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\p{L}\p{N}-]*$").ok());

/// A broken rule: its code as a warning, and its text.
pub(crate) type Fault = (&'static str, String);

/// Checks a name that is not empty.
pub(crate) fn name_faults(name: &str) -> Vec<Fault> {
    let name: String = name.trim().nfkc().collect();
    let mut faults = Vec::new();
    let length = name.chars().count();
    if length > NAME {
        faults.push((
            "name_too_long",
            format!("The name has {length} characters; at most {NAME} are allowed."),
        ));
    }
    if name != name.to_lowercase() {
        faults.push(("name_format", "The name must be lowercase.".to_owned()));
    }
    if name.starts_with('-') || name.ends_with('-') {
        faults.push(("name_format", "The name cannot start or end with a hyphen.".to_owned()));
    }
    if name.contains("--") {
        faults.push(("name_format", "The name cannot have two hyphens in a row.".to_owned()));
    }
    if !NAME_CHARACTERS.as_ref().is_some_and(|allowed| allowed.is_match(&name)) {
        faults.push(("name_format", "The name may have letters, digits and hyphens only.".to_owned()));
    }
    faults
}

/// Whether a folder has the name of its skill.
pub(crate) fn is_folder_of(folder: &str, name: &str) -> bool {
    folder.nfkc().eq(name.trim().nfkc())
}

/// Checks the length of a description.
pub(crate) fn description_fault(description: &str) -> Option<Fault> {
    too_long("description_too_long", "description", description, DESCRIPTION)
}

/// Checks the length of the field `compatibility`.
pub(crate) fn compatibility_fault(compatibility: &str) -> Option<Fault> {
    too_long("compatibility_too_long", "field `compatibility`", compatibility, COMPATIBILITY)
}

fn too_long(code: &'static str, what: &str, text: &str, limit: usize) -> Option<Fault> {
    let length = text.chars().count();
    (length > limit)
        .then(|| (code, format!("The {what} has {length} characters; at most {limit} are allowed.")))
}
