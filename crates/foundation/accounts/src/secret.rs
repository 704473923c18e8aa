//! Secrets of sessions and links: 256 random bits, of which the database has the SHA-256 digest.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::Random;
use std::fmt;

/// The length of a secret as text.
const CHARACTERS: usize = 43;

/// The secret of a session or of a one-time link. It is never stored or logged.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Generates a secret.
    pub fn generate(random: &dyn Random) -> Self {
        let mut bytes = [0; 32];
        random.fill(&mut bytes);
        Self(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Parses a secret that a client sent. Returns `None` for a text that cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        let is_secret = text.len() == CHARACTERS && URL_SAFE_NO_PAD.decode(text).is_ok();
        is_secret.then(|| Self(text.to_owned()))
    }

    /// Returns the text, for the cookie or the link.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the digest to store or look up. A look-up by digest compares no secret text, so its timing reveals none.
    pub(crate) fn digest(&self) -> Vec<u8> {
        ring::digest::digest(&ring::digest::SHA256, self.0.as_bytes()).as_ref().to_vec()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SeededRandom;
    use proptest::prelude::*;

    #[test]
    fn a_secret_reads_back_and_does_not_print() {
        let random = SeededRandom::new(3);
        let secret = Secret::generate(&random);
        assert_eq!(Secret::parse(secret.reveal()), Some(secret.clone()));
        assert!(!format!("{secret:?}").contains(secret.reveal()));
        assert_ne!(Secret::generate(&random).digest(), secret.digest());
    }

    proptest! {
        #[test]
        fn no_other_text_is_a_secret(text in "\\PC{0,60}") {
            let is_like_one = text.len() == CHARACTERS
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
            prop_assert!(is_like_one || Secret::parse(&text).is_none());
        }
    }
}
