//! Encryption of stored secrets, such as the credentials of a tool: AES-256-GCM under the service's key, with the
//! secret's place as associated data. Also signatures of text that clients hold and must not change, such as download
//! URLs: HMAC-SHA-256 under a derived key.

use crate::jwt::{self, Claims, Expected, InvalidToken, SigningKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{Error, Random, Result};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use serde::Serialize;
use std::fmt;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use store::Tx;

/// A table with encrypted values. Nothing can be encrypted for a table that no group declares in its `SEALED`, so a
/// rotation of the key finds all values.
pub struct SealedTable {
    /// The name of the table.
    pub table: &'static str,
    /// The columns with encrypted values, either the whole value or a part of their JSON.
    pub columns: &'static [&'static str],
    /// Re-encrypts the values of some rows.
    pub reseal: Reseal,
}

/// Re-encrypts the values of the next rows after a position. Returns `None` after the last row. A row that changed
/// concurrently is skipped: its writer has encrypted it, and if that was under the old key, the next pass finds it.
pub type Reseal = fn(&mut Tx, &Seal, Option<&str>) -> Result<Option<Piece>>;

/// The result for a batch of rows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Piece {
    /// The position of the last row.
    pub last: String,
    /// The number of re-encrypted values.
    pub resealed: usize,
    /// The number of values that no key decrypts. They are left unchanged.
    pub unreadable: usize,
}

impl Piece {
    /// Returns a piece that ends with the row at `position`.
    ///
    /// # Errors
    /// If the position cannot be serialized as JSON. Ids and strings can.
    pub fn ending<P: Serialize>(position: &P) -> Result<Self> {
        Ok(Self { last: serde_json::to_string(position).map_err(Error::internal)?, ..Self::default() })
    }

    /// Counts the result for one value and returns the value to store, if it changed.
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

/// A key of 32 bytes, prepared for use.
#[derive(Clone)]
pub struct SecretKey {
    cipher: LessSafeKey,
    signer: hmac::Key,
    /// Signs the tokens of sessions.
    tokens: SigningKey,
    mark: String,
    /// The prefix of values encrypted under this key.
    prefix: String,
}

impl SecretKey {
    /// Prepares a key.
    ///
    /// # Errors
    /// If the key does not have 32 bytes.
    pub fn new(key: &[u8]) -> Result<Self> {
        let unbound = UnboundKey::new(&AES_256_GCM, key)
            .map_err(|_| Error::internal("the secret key must have 32 bytes"))?;
        // Signatures use a derived key, so that they reveal nothing about the encryption key.
        let root = hmac::Key::new(hmac::HMAC_SHA256, key);
        let signer = hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&root, b"svc signatures v1").as_ref());
        let tokens = SigningKey::new(hmac::sign(&root, b"svc session tokens v1").as_ref())?;
        let mark = hmac::sign(&signer, &signed("installation", "secret key"));
        let id: String = mark.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        let mark = STANDARD.encode(mark);
        Ok(Self { cipher: LessSafeKey::new(unbound), signer, tokens, mark, prefix: format!("v2.{id}.") })
    }

    /// Returns a fingerprint of the key, which does not reveal it.
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

/// Omits the key.
impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretKey").finish_non_exhaustive()
    }
}

/// The keys of an installation. There are two only during a rotation.
#[derive(Debug, Clone)]
struct Keys {
    active: SecretKey,
    /// Decrypts and verifies, but never encrypts.
    other: Option<SecretKey>,
}

/// Encrypts, decrypts, signs and verifies.
pub struct Seal {
    keys: RwLock<Arc<Keys>>,
    /// The tables that may hold encrypted values. Unset in tests without a composed service, where all tables are
    /// allowed.
    tables: OnceLock<Vec<&'static str>>,
}

/// Omits the keys.
impl fmt::Debug for Seal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seal").finish_non_exhaustive()
    }
}

impl Seal {
    /// Creates a seal with one key of 32 bytes.
    ///
    /// # Errors
    /// If the key does not have 32 bytes.
    pub fn new(key: &[u8]) -> Result<Self> {
        Ok(Self::with_keys(SecretKey::new(key)?, None))
    }

    /// Creates a seal that encrypts under `active`, and also decrypts and verifies under `other`.
    pub fn with_keys(active: SecretKey, other: Option<SecretKey>) -> Self {
        Self { keys: RwLock::new(Arc::new(Keys { active, other })), tables: OnceLock::new() }
    }

    /// Replaces the keys.
    pub fn set_keys(&self, active: SecretKey, other: Option<SecretKey>) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Keys { active, other });
    }

    /// Declares all tables that may hold encrypted values. From then on `seal` rejects other tables.
    pub fn declare<'a>(&self, tables: impl IntoIterator<Item = &'a SealedTable>) {
        self.tables.get_or_init(|| tables.into_iter().map(|sealed| sealed.table).collect());
    }

    fn keys(&self) -> Arc<Keys> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Signs `text` for `place` (such as `download`). The signature is not valid for another place.
    pub fn sign(&self, place: &str, text: &str) -> Vec<u8> {
        hmac::sign(&self.keys().active.signer, &signed(place, text)).as_ref().to_vec()
    }

    /// Returns whether `signature` is valid for this place and text under any of the keys.
    pub fn is_signed(&self, place: &str, text: &str, signature: &[u8]) -> bool {
        let (keys, signed) = (self.keys(), signed(place, text));
        let mut all = std::iter::once(&keys.active).chain(&keys.other);
        all.any(|key| hmac::verify(&key.signer, &signed, signature).is_ok())
    }

    /// Signs claims as a JSON Web Token (HS256) under a key that is derived from the active one.
    ///
    /// # Errors
    /// If the claims cannot be serialized.
    pub fn sign_token(&self, claims: &impl Serialize) -> Result<String> {
        self.keys().active.tokens.sign(claims)
    }

    /// Verifies a token that [`Seal::sign_token`] has signed, under the key that it names, which may be any of the keys.
    ///
    /// # Errors
    /// The reason why the token is not accepted.
    pub fn verify_token<C: Claims>(&self, token: &str, expected: &Expected<'_>) -> Result<C, InvalidToken> {
        let (id, keys) = (jwt::key_id(token)?.unwrap_or_default(), self.keys());
        let mut all = std::iter::once(&keys.active).chain(&keys.other);
        let key =
            all.find(|key| key.tokens.is_named(&id)).ok_or(InvalidToken("it names no key of the service"))?;
        key.tokens.verify(token, expected)
    }

    /// Returns the fingerprint of the active key (see [`SecretKey::mark`]).
    pub fn mark(&self) -> String {
        self.keys().active.mark.clone()
    }

    /// Encrypts `secret` for `place` (such as `agent_tool:7:weather`), to be stored in `table`. It can be decrypted
    /// only with the same place.
    ///
    /// # Errors
    /// If the table is not declared. The cipher itself fails only for texts above 64 GiB.
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

    /// Decrypts the output of [`Seal::seal`] for the same `place`, under any of the keys.
    ///
    /// # Errors
    /// If it was encrypted under another key or for another place, or was changed.
    pub fn open(&self, place: &str, sealed: &str) -> Result<String> {
        let broken = || Error::internal("a sealed secret does not open: was SVC_SECRET_KEY changed?");
        let keys = self.keys();
        let mut all = std::iter::once(&keys.active).chain(&keys.other);
        let opened = match sealed.strip_prefix("v1.") {
            // Values in the format v1 do not name their key, so try each.
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

    /// Returns the prefix of values encrypted under the active key.
    pub fn active_prefix(&self) -> String {
        self.keys().active.prefix.clone()
    }

    /// Returns the secret encrypted under the active key, or `None` if it already is.
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

/// Joins place and text with a NUL. No place contains a NUL, so the result is unambiguous.
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
        // Values in the format v1 do not name their key.
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
