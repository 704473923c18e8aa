//! The format of API keys and tokens: a prefix that names the kind, such as `svc_live_`, 32 random characters, and a
//! checksum of six.
//!
//! The checksum lets the service reject a mistyped or invented secret without a query, and lets scanners for leaked
//! secrets recognize one. The database stores a SHA-256 digest. The secret has 160 random bits, so it needs no slow
//! hash against guessing.

use base64::Engine;
use model::{Env, Random};
use std::fmt;

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const RANDOM_CHARS: usize = 32;
const TAIL_CHARS: usize = 6;

/// The digest under which a secret is stored and found. A look-up by digest compares no secret text, so it cannot leak
/// the secret by its timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SecretHash(pub [u8; 32]);

/// A secret text with a prefix and a checksum. Never stored or logged; shown once.
pub struct SecretText {
    text: String,
}

impl SecretText {
    /// Generates a secret of the kind that `prefix` names.
    pub fn generate(prefix: &str, random: &dyn Random) -> Self {
        let mut bytes = [0u8; RANDOM_CHARS];
        random.fill(&mut bytes);
        let body: String = bytes.iter().map(|byte| digit(u32::from(*byte))).collect();
        let text = format!("{prefix}{body}");
        let tail = checksum(&text);
        Self { text: text + &tail }
    }

    /// Parses a secret sent by a client. Returns `None` if the prefix, the length or the checksum is wrong.
    pub fn parse(prefix: &str, text: &str) -> Option<Self> {
        let expected = prefix.len() + RANDOM_CHARS + TAIL_CHARS;
        if !text.starts_with(prefix) || text.len() != expected || !text.is_ascii() {
            return None;
        }
        let (head, tail) = text.split_at(expected - TAIL_CHARS);
        (checksum(head) == tail).then(|| Self { text: text.to_owned() })
    }

    /// Returns the text, to be shown once.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    /// Returns the digest to store or look up.
    pub fn hash(&self) -> SecretHash {
        let digest = ring::digest::digest(&ring::digest::SHA256, self.text.as_bytes());
        let mut hash = [0; 32];
        hash.copy_from_slice(digest.as_ref());
        SecretHash(hash)
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretText(…)")
    }
}

/// The secret text of a key.
#[derive(Debug)]
pub struct KeySecret {
    env: Env,
    secret: SecretText,
}

impl KeySecret {
    /// Generates a key.
    pub fn generate(env: Env, random: &dyn Random) -> Self {
        Self { env, secret: SecretText::generate(prefix(env), random) }
    }

    /// Parses a key sent by a client. Returns `None` if the prefix, the length or the checksum is wrong.
    pub fn parse(text: &str) -> Option<Self> {
        let env = [Env::Live, Env::Test].into_iter().find(|env| text.starts_with(prefix(*env)))?;
        Some(Self { env, secret: SecretText::parse(prefix(env), text)? })
    }

    /// Returns the environment of the prefix. The stored environment is authoritative.
    pub fn env(&self) -> Env {
        self.env
    }

    /// Returns the text, to be shown once.
    pub fn reveal(&self) -> &str {
        self.secret.reveal()
    }

    /// Returns the digest to store or look up.
    pub fn hash(&self) -> SecretHash {
        self.secret.hash()
    }
}

fn prefix(env: Env) -> &'static str {
    match env {
        Env::Live => "svc_live_",
        Env::Test => "svc_test_",
    }
}

impl fmt::Display for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(self.0))
    }
}

fn digit(number: u32) -> char {
    let place = usize::try_from(number % 32).unwrap_or_default();
    char::from(ALPHABET.get(place).copied().unwrap_or(b'0'))
}

fn checksum(head: &str) -> String {
    let crc = crc32fast::hash(head.as_bytes());
    (0..TAIL_CHARS as u32).rev().map(|place| digit(crc >> (place * 5))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SeededRandom;
    use proptest::prelude::*;

    #[test]
    fn a_key_reads_back_and_does_not_print() {
        let key = KeySecret::generate(Env::Test, &SeededRandom::new(1));
        assert!(key.reveal().starts_with("svc_test_"));
        let read = KeySecret::parse(key.reveal()).unwrap();
        assert_eq!((read.env(), read.hash()), (Env::Test, key.hash()));
        assert!(!format!("{key:?}").contains(key.reveal()));
    }

    #[test]
    fn a_secret_is_of_the_kind_that_its_prefix_names() {
        let secret = SecretText::generate("svc_at_", &SeededRandom::new(1));
        assert_eq!(SecretText::parse("svc_at_", secret.reveal()).unwrap().hash(), secret.hash());
        assert!(SecretText::parse("svc_rt_", secret.reveal()).is_none());
        // Another prefix needs another checksum.
        assert!(SecretText::parse("svc_rt_", &secret.reveal().replace("_at_", "_rt_")).is_none());
    }

    proptest! {
        #[test]
        fn one_wrong_character_is_refused(seed: u64, place in 0usize..47, letter in "[0-9a-z]") {
            let key = KeySecret::generate(Env::Live, &SeededRandom::new(seed));
            let mut text = key.reveal().to_owned();
            text.replace_range(place..=place, &letter);
            prop_assert_eq!(KeySecret::parse(&text).is_some(), text == key.reveal());
        }

        #[test]
        fn garbage_is_refused(text in ".{0,80}") {
            prop_assert!(KeySecret::parse(&text).is_none());
        }
    }
}
