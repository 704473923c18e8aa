//! Sealing of secrets that must be read back, such as the credentials of a tool: AES-256-GCM under the service's
//! own key, bound to where the secret belongs. And signing of what callers carry and must not change, such as the
//! addresses of downloads: HMAC-SHA-256 under a key derived from the same one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{Error, Random, Result};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use serde::Serialize;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use store::Tx;

/// A table with sealed values. Nothing can be sealed for a table that no group declares in its `SEALED`, so that a rotation
/// of the key finds everything.
pub struct SealedTable {
    /// Its name.
    pub table: &'static str,
    /// The columns that hold sealed values, alone or within JSON.
    pub columns: &'static [&'static str],
    /// Seals the values of some rows anew.
    pub reseal: Reseal,
}

/// Seals the values of the next rows behind a position anew; `None` behind the last row. A row that changed meanwhile is
/// left as it is: whoever changed it has sealed it, and if that was under the earlier key, the next pass finds it.
pub type Reseal = fn(&mut Tx, &Seal, Option<&str>) -> Result<Option<Piece>>;

/// What became of some rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece {
    /// The position of the last of them.
    pub last: String,
    /// How many values were sealed anew.
    pub resealed: usize,
    /// How many values none of the keys opens. They stay as they are.
    pub unreadable: usize,
}

impl Piece {
    /// A piece that ends with the row at `position`.
    ///
    /// # Errors
    /// When the position cannot be written as JSON, which ids and texts can.
    pub fn ending<P: Serialize>(position: &P) -> Result<Self> {
        Ok(Self { last: serde_json::to_string(position).map_err(Error::internal)?, ..Self::default() })
    }

    /// Counts the outcome of one value, and gives what is to be stored in its place.
    pub fn count(&mut self, resealed: Result<Option<String>>) -> Option<String> {
        match resealed {
            Ok(Some(sealed)) => {
                self.resealed += 1;
                Some(sealed)
            }
            Ok(None) => None,
            Err(_) => {
                self.unreadable += 1;
                None
            }
        }
    }
}

/// A key of 32 bytes, ready for use.
#[derive(Clone)]
pub struct SecretKey {
    cipher: LessSafeKey,
    signer: hmac::Key,
    mark: String,
    /// What sealed values under this key begin with.
    prefix: String,
}

impl SecretKey {
    /// Reads a key.
    ///
    /// # Errors
    /// When it has not 32 bytes.
    pub fn new(key: &[u8]) -> Result<Self> {
        let unbound = UnboundKey::new(&AES_256_GCM, key)
            .map_err(|_| Error::internal("the secret key must have 32 bytes"))?;
        // A key of its own, so that no signature says anything about what is sealed.
        let derived = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), b"svc signatures v1");
        let signer = hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref());
        let mark = hmac::sign(&signer, &signed("installation", "secret key"));
        let id: String = mark.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let mark = STANDARD.encode(mark);
        Ok(Self { cipher: LessSafeKey::new(unbound), signer, mark, prefix: format!("v2.{id}.") })
    }

    /// Tells this key from others, and says nothing else of it.
    pub fn mark(&self) -> &str {
        &self.mark
    }

    fn open(&self, place: &str, bytes: &[u8]) -> Option<String> {
        let (nonce, text) = bytes.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let plain = self.cipher.open_in_place(nonce, Aad::from(place), &mut text).ok()?;
        String::from_utf8(plain.to_vec()).ok()
    }
}

/// Without the key.
impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").finish_non_exhaustive()
    }
}

/// The keys of an installation: more than one only while the key is rotated.
#[derive(Debug, Clone)]
struct Keys {
    active: SecretKey,
    /// Opens and verifies, and seals nothing.
    other: Option<SecretKey>,
}

/// Seals and opens, signs and verifies.
pub struct Seal {
    keys: RwLock<Arc<Keys>>,
    /// The tables that may hold sealed values; unset where nobody has composed a service.
    tables: OnceLock<Vec<&'static str>>,
}

/// Without its keys.
impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").finish_non_exhaustive()
    }
}

impl Seal {
    /// A sealer under one key of 32 bytes.
    ///
    /// # Errors
    /// When the key has another length.
    pub fn new(key: &[u8]) -> Result<Self> {
        Ok(Self::with_keys(SecretKey::new(key)?, None))
    }

    /// A sealer under the key `active`, which also opens and verifies what another key has sealed and signed.
    pub fn with_keys(active: SecretKey, other: Option<SecretKey>) -> Self {
        Self { keys: RwLock::new(Arc::new(Keys { active, other })), tables: OnceLock::new() }
    }

    /// Goes over to these keys.
    pub fn set_keys(&self, active: SecretKey, other: Option<SecretKey>) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Keys { active, other });
    }

    /// Declares all tables that may hold sealed values. From then on nothing is sealed for others.
    pub fn declare<'a>(&self, tables: impl IntoIterator<Item = &'a SealedTable>) {
        self.tables.get_or_init(|| tables.into_iter().map(|sealed| sealed.table).collect());
    }

    fn keys(&self) -> Arc<Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The signature of `text` for `place` (such as `download`): it holds nowhere else.
    pub fn sign(&self, place: &str, text: &str) -> Vec<u8> {
        hmac::sign(&self.keys().active.signer, &signed(place, text)).as_ref().to_vec()
    }

    /// Whether `signature` is what [`Seal::sign`] gave for the same place and text, under any of the keys.
    pub fn is_signed(&self, place: &str, text: &str, signature: &[u8]) -> bool {
        let (keys, signed) = (self.keys(), signed(place, text));
        let mut all = std::iter::once(&keys.active).chain(&keys.other);
        all.any(|key| hmac::verify(&key.signer, &signed, signature).is_ok())
    }

    /// The mark of the key that seals: see [`SecretKey::mark`].
    pub fn mark(&self) -> String {
        self.keys().active.mark.clone()
    }

    /// Seals `secret` for `place` (such as `agent_tool:7:weather`), to be stored in `table`: it opens in no other place.
    ///
    /// # Errors
    /// When the table is not declared, or the cipher fails, which it does not for texts below 64 GiB.
    pub fn seal(
        &self,
        table: &SealedTable,
        place: &str,
        secret: &str,
        random: &dyn Random,
    ) -> Result<String> {
        if self.tables.get().is_some_and(|tables| !tables.contains(&table.table)) {
            return Err(Error::internal(format!("no group declares that {} has sealed values", table.table)));
        }
        let keys = self.keys();
        let mut nonce = [0; NONCE_LEN];
        random.fill(&mut nonce);
        let mut text = secret.as_bytes().to_vec();
        keys.active
            .cipher
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(place), &mut text)
            .map_err(|_| Error::internal("sealing failed"))?;
        Ok(format!("{}{}", keys.active.prefix, STANDARD.encode([&nonce[..], &text].concat())))
    }

    /// Opens what [`Seal::seal`] made for the same `place`, under any of the keys.
    ///
    /// # Errors
    /// When it was made under another key, for another place, or was changed.
    pub fn open(&self, place: &str, sealed: &str) -> Result<String> {
        let broken = || Error::internal("a sealed secret does not open: was SVC_SECRET_KEY changed?");
        let keys = self.keys();
        let mut all = std::iter::once(&keys.active).chain(&keys.other);
        let opened = match sealed.strip_prefix("v1.") {
            // Sealed by versions whose values did not name their key.
            Some(text) => {
                let bytes = STANDARD.decode(text).map_err(|_| broken())?;
                all.find_map(|key| key.open(place, &bytes))
            }
            None => all.find_map(|key| {
                let bytes = STANDARD.decode(sealed.strip_prefix(&key.prefix)?).ok()?;
                key.open(place, &bytes)
            }),
        };
        opened.ok_or_else(broken)
    }

    /// What sealed values under the active key begin with.
    pub fn active_prefix(&self) -> String {
        self.keys().active.prefix.clone()
    }

    /// The same secret sealed under the active key; `None` where it is already.
    ///
    /// # Errors
    /// As [`Seal::open`].
    pub fn reseal(
        &self,
        table: &SealedTable,
        place: &str,
        sealed: &str,
        random: &dyn Random,
    ) -> Result<Option<String>> {
        if sealed.starts_with(&self.keys().active.prefix) {
            return Ok(None);
        }
        self.seal(table, place, &self.open(place, sealed)?, random).map(Some)
    }
}

/// No place has a NUL, so no other place and text make the same bytes.
fn signed(place: &str, text: &str) -> Vec<u8> {
    [place.as_bytes(), b"\0", text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SystemRandom;

    const TABLE: SealedTable =
        SealedTable { table: "things", columns: &["secret"], reseal: |_, _, _| Ok(None) };

    fn key(byte: u8) -> SecretKey {
        SecretKey::new(&[byte; 32]).unwrap()
    }

    #[test]
    fn a_signature_holds_for_its_text_in_its_place() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let signature = seal.sign("a", "text");
        assert!(seal.is_signed("a", "text", &signature));
        assert!(!seal.is_signed("b", "text", &signature));
        assert!(!seal.is_signed("a", "texts", &signature));
        assert!(!seal.is_signed("a", "text", &[]));
        assert!(!Seal::new(&[8; 32]).unwrap().is_signed("a", "text", &signature));
        assert!(Seal::with_keys(key(8), Some(key(7))).is_signed("a", "text", &signature));
    }

    #[test]
    fn a_secret_opens_only_in_its_place() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let sealed = seal.seal(&TABLE, "a", "Bearer ü", &SystemRandom::default()).unwrap();
        assert!(!sealed.contains("Bearer ü"));
        assert_eq!(seal.open("a", &sealed).unwrap(), "Bearer ü");
        assert!(seal.open("b", &sealed).is_err());
        assert!(Seal::new(&[8; 32]).unwrap().open("a", &sealed).is_err());
        let prefix = seal.active_prefix();
        for broken in ["", "v1.", "v1.AAAA", "v2.x", &prefix, &sealed.replace(&prefix, &format!("{prefix}A"))]
        {
            assert!(seal.open("a", broken).is_err());
        }
        assert!(Seal::new(&[7; 31]).is_err());
        // As the values were before they named their key.
        assert_eq!(seal.open("a", &sealed.replace(&prefix, "v1.")).unwrap(), "Bearer ü");
    }

    #[test]
    fn while_the_key_is_rotated_either_opens() {
        let random = SystemRandom::default();
        let seal = Seal::new(&[7; 32]).unwrap();
        let old = seal.seal(&TABLE, "a", "text", &random).unwrap();
        assert_eq!(seal.reseal(&TABLE, "a", &old, &random).unwrap(), None);
        seal.set_keys(key(8), Some(key(7)));
        assert_eq!(seal.open("a", &old).unwrap(), "text");
        let new = seal.reseal(&TABLE, "a", &old, &random).unwrap().unwrap();
        assert_eq!(seal.reseal(&TABLE, "a", &new, &random).unwrap(), None);
        seal.set_keys(key(8), None);
        assert_eq!(seal.open("a", &new).unwrap(), "text");
        assert!(seal.open("a", &old).is_err());
        assert!(seal.reseal(&TABLE, "b", &old, &random).is_err());
    }

    #[test]
    fn nothing_is_sealed_for_a_table_that_is_not_declared() {
        let seal = Seal::new(&[7; 32]).unwrap();
        let random = SystemRandom::default();
        seal.declare([&TABLE]);
        assert!(seal.seal(&TABLE, "a", "text", &random).is_ok());
        let other = SealedTable { table: "others", ..TABLE };
        let error = seal.seal(&other, "a", "text", &random).unwrap_err();
        assert!(error.cause().unwrap().to_string().contains("others"));
    }
}
