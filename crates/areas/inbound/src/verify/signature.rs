//! Keys and signatures of verifications: how they are written, what is signed, and how both are compared.
//!
//! Secrets and MACs are compared in constant time.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use ring::{hmac, signature};

/// A piece of what is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Body,
    Timestamp,
    Url,
    /// The message id of Standard Webhooks.
    Id,
}

/// A secret that can only be compared, in constant time.
pub(crate) struct Secret {
    key: hmac::Key,
    tag: hmac::Tag,
}

impl Secret {
    pub(crate) fn new(secret: &[u8]) -> Self {
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let tag = hmac::sign(&key, secret);
        Self { key, tag }
    }

    pub(crate) fn is(&self, sent: &[u8]) -> bool {
        hmac::verify(&self.key, sent, self.tag.as_ref()).is_ok()
    }
}

/// What verifies a signature.
pub(crate) enum Key {
    Hmac(hmac::Key),
    Ed25519(Vec<u8>),
}

impl Key {
    pub(crate) fn verifies(&self, message: &[u8], sent: &[u8]) -> bool {
        match self {
            Self::Hmac(key) => hmac::verify(key, message, sent).is_ok(),
            Self::Ed25519(key) => {
                signature::UnparsedPublicKey::new(&signature::ED25519, key).verify(message, sent).is_ok()
            }
        }
    }
}

pub(crate) fn from_base64(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=');
    STANDARD_NO_PAD.decode(text).or_else(|_| URL_SAFE_NO_PAD.decode(text)).ok()
}

pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

/// Lower-case hexadecimal.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        for nibble in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(nibble), 16).unwrap_or('0'));
        }
        text
    })
}

/// A public key of 32 bytes.
pub(crate) fn public_key(text: &str) -> Option<Vec<u8>> {
    let key = from_hex(text).filter(|key| key.len() == 32);
    key.or_else(|| from_base64(text).filter(|key| key.len() == 32))
}

/// A key of Standard Webhooks: `whsec_` is an HMAC secret, `whpk_` an ed25519 key; without either it is an HMAC secret.
pub(crate) fn standard_key(text: &str) -> Option<Key> {
    if let Some(key) = text.strip_prefix("whpk_") {
        return public_key(key).map(Key::Ed25519);
    }
    let secret =
        from_base64(text.strip_prefix("whsec_").unwrap_or(text)).filter(|secret| !secret.is_empty())?;
    Some(Key::Hmac(hmac::Key::new(hmac::HMAC_SHA256, &secret)))
}

/// The parts of a template of what is signed.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn signed_parts(template: &str) -> std::result::Result<Vec<Part>, &'static str> {
    let mut parts = Vec::new();
    let mut rest = template;
    while !rest.is_empty() {
        let (text, tail) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
        if !text.is_empty() {
            parts.push(Part::Text(text.to_owned()));
        }
        let Some(tail) = tail.strip_prefix('{') else { break };
        let (name, tail) = tail.split_once('}').ok_or("has a `{` without its `}`")?;
        parts.push(match name {
            "body" => Part::Body,
            "timestamp" => Part::Timestamp,
            "url" => Part::Url,
            _ => return Err("may name `{body}`, `{timestamp}` and `{url}` only"),
        });
        rest = tail;
    }
    if parts.contains(&Part::Body) { Ok(parts) } else { Err("must contain `{body}`") }
}
