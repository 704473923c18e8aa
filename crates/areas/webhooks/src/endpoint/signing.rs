//! Signatures of deliveries (Standard Webhooks): secrets, keys, signing.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::{Error, Random, Result};
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair};

const SECRET: &str = "whsec_";
const PRIVATE: &str = "whsk_";
const PUBLIC: &str = "whpk_";

/// What a delivery is signed with.
pub enum Signer {
    /// `v1`
    Hmac(hmac::Key),
    /// `v1a`
    Ed25519(Box<Ed25519KeyPair>),
}

/// A new shared secret: `whsec_` and base64 of 32 random bytes.
pub fn new_secret(random: &dyn Random) -> String {
    format!("{SECRET}{}", STANDARD.encode(seed(random)))
}

/// A new Ed25519 key: its private half, which stays here, and its public half.
pub(crate) fn new_key_pair(random: &dyn Random) -> Result<(String, String)> {
    let seed = seed(random);
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| Error::internal("no Ed25519 key"))?;
    let public = format!("{PUBLIC}{}", STANDARD.encode(pair.public_key().as_ref()));
    Ok((format!("{PRIVATE}{}", STANDARD.encode(seed)), public))
}

fn seed(random: &dyn Random) -> [u8; 32] {
    let mut seed = [0; 32];
    random.fill(&mut seed);
    seed
}

/// Whether a caller's own text can be a shared secret: `whsec_` and base64 of 24 to 64 bytes.
pub(crate) fn is_secret(text: &str) -> bool {
    text.strip_prefix(SECRET)
        .and_then(|rest| STANDARD.decode(rest).ok())
        .is_some_and(|bytes| (24..=64).contains(&bytes.len()))
}

impl Signer {
    /// Reads a secret of either kind: `whsec_…`, or the private half of a key pair.
    ///
    /// # Errors
    /// `internal_error` where it is neither.
    pub fn read(secret: &str) -> Result<Self> {
        let broken = || Error::internal("a webhook secret cannot be read");
        let decode = |text: &str| STANDARD.decode(text).map_err(|_| broken());
        if let Some(text) = secret.strip_prefix(SECRET) {
            return Ok(Self::Hmac(hmac::Key::new(hmac::HMAC_SHA256, &decode(text)?)));
        }
        let seed = decode(secret.strip_prefix(PRIVATE).ok_or_else(broken)?)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| broken())?;
        Ok(Self::Ed25519(Box::new(pair)))
    }

    /// Signs `id.timestamp.body`.
    pub fn sign(&self, id: &str, timestamp: i64, body: &str) -> String {
        let head = format!("{id}.{timestamp}.");
        match self {
            Self::Hmac(key) => {
                let mut context = hmac::Context::with_key(key);
                context.update(head.as_bytes());
                context.update(body.as_bytes());
                format!("v1,{}", STANDARD.encode(context.sign()))
            }
            Self::Ed25519(pair) => {
                let signed = pair.sign(&[head.as_bytes(), body.as_bytes()].concat());
                format!("v1a,{}", STANDARD.encode(signed))
            }
        }
    }
}

/// The signatures of all signers, as in the header.
pub(crate) fn signatures<'a>(
    signers: impl IntoIterator<Item = &'a Signer>,
    id: &str,
    timestamp: i64,
    body: &str,
) -> String {
    signers.into_iter().map(|signer| signer.sign(id, timestamp, body)).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::SeededRandom;

    #[test]
    fn the_published_example_verifies() {
        // From the Standard Webhooks' reference implementations.
        let signer = Signer::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = signer.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn public_keys_verify_what_their_private_halves_signed() {
        let (private, public) = new_key_pair(&SeededRandom::new(1)).unwrap();
        let signed = Signer::read(&private).unwrap().sign("evt_1", 5, "{}");
        let signature = STANDARD.decode(signed.strip_prefix("v1a,").unwrap()).unwrap();
        let key = STANDARD.decode(public.strip_prefix("whpk_").unwrap()).unwrap();
        let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, key);
        assert!(key.verify(b"evt_1.5.{}", &signature).is_ok());
        assert!(key.verify(b"evt_1.6.{}", &signature).is_err());
    }

    #[test]
    fn secrets_have_their_form() {
        let secret = new_secret(&SeededRandom::new(2));
        assert!(is_secret(&secret) && secret.len() == 6 + 44);
        for bad in ["", "whsec_", "whsec_AAAA", "whsec_!!!", &secret[1..]] {
            assert!(!is_secret(bad), "{bad}");
        }
        assert!(Signer::read("x").is_err());
    }
}
