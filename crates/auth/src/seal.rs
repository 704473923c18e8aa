//! Sealing of secrets that must be read back, such as the credentials of a tool: AES-256-GCM under the service's
//! own key, bound to where the secret belongs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{Error, Random, Result};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Seals and opens.
pub struct Seal(LessSafeKey);

impl Seal {
    /// A sealer under a key of 32 bytes.
    ///
    /// # Errors
    /// When the key has another length.
    pub fn new(key: &[u8]) -> Result<Self> {
        let key = UnboundKey::new(&AES_256_GCM, key)
            .map_err(|_| Error::internal("the secret key must have 32 bytes"))?;
        Ok(Self(LessSafeKey::new(key)))
    }

    /// Seals `secret` for `place` (such as `agent_tool:7:weather`): it opens nowhere else.
    ///
    /// # Errors
    /// When the cipher fails, which it does not for texts below 64 GiB.
    pub fn seal(&self, place: &str, secret: &str, random: &dyn Random) -> Result<String> {
        let mut nonce = [0; NONCE_LEN];
        random.fill(&mut nonce);
        let mut text = secret.as_bytes().to_vec();
        self.0
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
            .0
            .open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(place), &mut text)
            .map_err(|_| broken())?;
        String::from_utf8(plain.to_vec()).map_err(|_| broken())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SystemRandom;

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
