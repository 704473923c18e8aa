//! Texts that ask for credentials, or say where they are.

use super::Place;
use regex::{Regex, RegexSet};
use std::sync::LazyLock;

/// What asks, followed on the same line by what is asked for; and places where credentials are kept.
const PATTERNS: [&str; 3] = [
    r"(?i)\b(ask|enter|provide|paste|send|share|give|tell|type|reveal|print|echo|read|upload|export|submit|collect|extract|copy|cat|post|forward|include)\w*\b[^.!?]{0,60}\b(passwords?|passphrases?|api[ _-]?keys?|(access|auth|bearer|session|refresh|secret) ?tokens?|secret keys?|private keys?|credentials?|seed phrases?|recovery phrases?|card numbers?|cvv|one-time codes?)\b",
    r"(?i)(~|\$HOME|/root|/home/[\w-]+)/\.(ssh|aws|gnupg|netrc|kube|docker|npmrc|pypirc|config/gcloud)\b|\bid_(rsa|ed25519)\b|/etc/shadow\b",
    r"\b[A-Z][A-Z0-9_]*_(API_KEY|SECRET|SECRET_KEY|SECRET_ACCESS_KEY|ACCESS_TOKEN|AUTH_TOKEN|PASSWORD|PRIVATE_KEY)\b",
];

static ANY: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(PATTERNS).ok());
static EACH: LazyLock<Vec<Regex>> =
    LazyLock::new(|| PATTERNS.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect());

/// The first such words of a line.
pub(super) fn place(file: &str, line: u32, text: &str) -> Option<Place> {
    if !ANY.as_ref().is_some_and(|any| any.is_match(text)) {
        return None;
    }
    let found = EACH.iter().find_map(|pattern| pattern.find(text))?;
    Some(Place { file: file.to_owned(), line, text: found.as_str().chars().take(80).collect() })
}
