//! Sealing of secrets that must be read back, such as the credentials of a tool: AES-256-GCM under the service's
//! own key, bound to where the secret belongs. And signing of what callers carry and must not change, such as the
//! addresses of downloads: HMAC-SHA-256 under a key derived from the same one.

use crate::schema::installation;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use diesel::prelude::*;
use model::{Error, Random, Result};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use std::fmt;
use store::{Tx, each};

/// Seals and opens, signs and verifies.
pub struct Seal {
    cipher: LessSafeKey,
    signer: hmac::Key,
}

/// Without its keys.
impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").finish_non_exhaustive()
    }
}

impl Seal {
    /// A sealer under a key of 32 bytes.
    ///
    /// # Errors
    /// When the key has another length.
    pub fn new(key: &[u8]) -> Result<Self> {
        let unbound = UnboundKey::new(&AES_256_GCM, key)
            .map_err(|_| Error::internal("the secret key must have 32 bytes"))?;
        // A key of its own, so that no signature says anything about what is sealed.
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), b"svc signatures v1");
        let signer = hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref());
        Ok(Self { cipher: LessSafeKey::new(unbound), signer })
    }

    /// The signature of `text` for `place` (such as `download`): it holds nowhere else.
    pub fn sign(&self, place: &str, text: &str) -> Vec<u8> {
        hmac::sign(&self.signer, &signed(place, text)).as_ref().to_vec()
    }

    /// Whether `signature` is what [`Seal::sign`] gave for the same place and text.
    pub fn is_signed(&self, place: &str, text: &str, signature: &[u8]) -> bool {
        hmac::verify(&self.signer, &signed(place, text), signature).is_ok()
    }

    /// Tells this key from others, and says nothing else of it.
    pub fn mark(&self) -> String {
        STANDARD.encode(self.sign("installation", "secret key"))
    }

    /// Seals `secret` for `place` (such as `agent_tool:7:weather`): it opens nowhere else.
    ///
    /// # Errors
    /// When the cipher fails, which it does not for texts below 64 GiB.
    pub fn seal(&self, place: &str, secret: &str, random: &dyn Random) -> Result<String> {
        let mut nonce = [0; NONCE_LEN];
        random.fill(&mut nonce);
        let mut text = secret.as_bytes().to_vec();
        self.cipher
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place), &mut text)
            .map_err(|_| Error::internal("sealing failed"))?;
        Ok(format!("v1.{}", STANDARD.encode([&nonce[..], &text].concat())))
    }

    /// Opens what [`Seal::seal`] made for the same `place`.
    ///
    /// # Errors
    /// When it was made under another key, for another place, or was changed.
    pub fn open(&self, place: &str, sealed: &str) -> Result<String> {
        let broken = || Error::internal("a sealed secret does not open: was SVC_SECRET_KEY changed?");
        let bytes =
            sealed.strip_prefix("v1.").and_then(|text| STANDARD.decode(text).ok()).ok_or_else(broken)?;
        let (nonce, text) = bytes.split_first_chunk::<NONCE_LEN>().ok_or_else(broken)?;
        let mut text = text.to_vec();
        let plain = self
            .cipher
            .open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(place), &mut text)
            .map_err(|_| broken())?;
        String::from_utf8(plain.to_vec()).map_err(|_| broken())
    }
}

/// Whether what a database holds is sealed under the key with this [`Seal::mark`]. The first key that is asked about is
/// the one, from then on.
///
/// # Errors
/// When the database fails.
pub fn is_sealed_under(tx: &mut Tx, mark: &str) -> Result<bool> {
    const NAME: &str = "secret_key_mark";
    let row = (installation::name.eq(NAME), installation::value.eq(mark));
    each!(tx.connection(), |connection| diesel::insert_into(installation::table)
        .values(row)
        .on_conflict_do_nothing()
        .execute(connection))?;
    let known: String = installation::table.find(NAME).select(installation::value).first(tx.connection())?;
    Ok(known == mark)
}

/// No place has a NUL, so no other place and text make the same bytes.
fn signed(place: &str, text: &str) -> Vec<u8> {
    [place.as_bytes(), b"\0", text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SystemRandom;

    #[test]
    fn a_signature_holds_for_its_text_in_its_place() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let signature = seal.sign("a", "text");
        assert!(seal.is_signed("a", "text", &signature));
        assert!(!seal.is_signed("b", "text", &signature));
        assert!(!seal.is_signed("a", "texts", &signature));
        assert!(!seal.is_signed("a", "text", &[]));
        assert!(!Seal::new(&[8; 32]).unwrap().is_signed("a", "text", &signature));
    }

    #[test]
    fn a_secret_opens_only_in_its_place() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let sealed = seal.seal("a", "Bearer ü", &SystemRandom::default()).unwrap();
        assert!(!sealed.contains("Bearer"));
        assert_eq!(seal.open("a", &sealed).unwrap(), "Bearer ü");
        assert!(seal.open("b", &sealed).is_err());
        assert!(Seal::new(&[8; 32]).unwrap().open("a", &sealed).is_err());
        for broken in ["", "v1.", "v1.AAAA", "v2.x", &sealed.replace("v1.", "v1.A")] {
            assert!(seal.open("a", broken).is_err());
        }
        assert!(Seal::new(&[7; 31]).is_err());
    }
}
