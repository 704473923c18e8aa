//! JSON Web Tokens: `jsonwebtoken`, with ring as its cryptography.
//!
//! The service signs its own tokens with HS256. Tokens of others, such as the assertions of OAuth clients, are only
//! verified: RS256, ES256 and EdDSA, with public keys from JWKs. Which algorithm a token must have follows from the key,
//! never from the token. Times are compared with the service's clock.

mod provider;
#[cfg(test)]
mod tests;

use jsonwebtoken::errors::{Error as JwtError, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use model::{Error, Result, Timestamp, string_enum};
use provider::install;
use ring::hmac;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;

/// The tolerance for clocks that differ, in seconds.
pub const LEEWAY_SECONDS: i64 = 5;

/// The size of the longest token that is read, in bytes.
const LONGEST_TOKEN: usize = 8 << 10;

string_enum! {
    /// The algorithms with which tokens of others may be signed.
    pub enum PublicAlgorithm {
        /// RSA PKCS #1 v1.5 with SHA-256; keys of 2,048 to 8,192 bits.
        Rs256 = "RS256",
        /// ECDSA on P-256 with SHA-256.
        Es256 = "ES256",
        /// Ed25519.
        EdDsa = "EdDSA",
    }
}

impl PublicAlgorithm {
    fn algorithm(self) -> Algorithm {
        match self {
            Self::Rs256 => Algorithm::RS256,
            Self::Es256 => Algorithm::ES256,
            Self::EdDsa => Algorithm::EdDSA,
        }
    }
}

/// The times in a token, in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// `exp`: the end.
    pub expires: i64,
    /// `iat`: the moment of issue.
    pub issued: Option<i64>,
    /// `nbf`: the begin.
    pub not_before: Option<i64>,
}

impl Times {
    /// Returns whether the token has ended, with a tolerance for clocks that differ.
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.expires <= now.seconds() - LEEWAY_SECONDS
    }
}

/// The claims of a kind of token. `exp` is required of all of them.
pub trait Claims: DeserializeOwned {
    /// Returns the times in the claims.
    fn times(&self) -> Times;
}

/// What a token must say to be accepted.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    /// `iss`.
    pub issuer: &'a str,
    /// `aud`: one of these.
    pub audiences: &'a [&'a str],
    /// The current time.
    pub now: Timestamp,
}

/// Why a token is not accepted. For logs and for the developers of OAuth clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidToken(pub &'static str);

impl fmt::Display for InvalidToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// A key with which the service signs and verifies its own tokens: HS256.
#[derive(Clone)]
pub struct SigningKey {
    id: String,
    signing: EncodingKey,
    verifying: DecodingKey,
}

impl SigningKey {
    /// Prepares a key of 32 bytes. Tokens name it by a fingerprint.
    ///
    /// # Errors
    /// If `secret` is empty.
    pub(crate) fn new(secret: &[u8]) -> Result<Self> {
        let digest = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), b"svc token key id");
        let id = digest.as_ref().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            id,
            signing: EncodingKey::from_secret(secret).map_err(Error::internal)?,
            verifying: DecodingKey::from_secret(secret).map_err(Error::internal)?,
        })
    }

    /// Returns whether tokens with this `kid` are signed with the key.
    pub(crate) fn is_named(&self, id: &str) -> bool {
        self.id == id
    }

    pub(crate) fn sign(&self, claims: &impl Serialize) -> Result<String> {
        install();
        let header = Header { kid: Some(self.id.clone()), ..Header::new(Algorithm::HS256) };
        jsonwebtoken::encode(&header, claims, &self.signing).map_err(Error::internal)
    }

    pub(crate) fn verify<C: Claims>(&self, token: &str, expected: &Expected<'_>) -> Result<C, InvalidToken> {
        verify(token, &self.verifying, Algorithm::HS256, expected)
    }
}

/// A public key of somebody else, from a JWK.
#[derive(Clone)]
pub struct PublicKey {
    id: Option<String>,
    algorithm: PublicAlgorithm,
    key: DecodingKey,
}

impl PublicKey {
    /// Reads a JWK. Returns `None` for a key that cannot verify signatures here: another type, use or algorithm, or a
    /// private key, which is nobody's secret once it is published.
    pub fn from_jwk(jwk: &Value) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| base64_url(text(name)?);
        if jwk.get("d").is_some() || text("use").is_some_and(|usage| usage != "sig") {
            return None;
        }
        let operations = jwk.get("key_ops").and_then(Value::as_array);
        if operations.is_some_and(|all| !all.iter().any(|operation| operation == "verify")) {
            return None;
        }
        let (algorithm, key) = match (text("kty")?, text("crv")) {
            ("RSA", None) => {
                let (modulus, exponent) = (bytes("n")?, bytes("e")?);
                // ring refuses numbers with leading zeros, which some libraries write.
                let [modulus, exponent] = [&modulus, &exponent].map(|number| without_zeros(number));
                (PublicAlgorithm::Rs256, DecodingKey::from_rsa_raw_components(modulus, exponent))
            }
            ("EC", Some("P-256")) => {
                let (x, y) = (bytes("x")?, bytes("y")?);
                if (x.len(), y.len()) != (32, 32) {
                    return None;
                }
                (PublicAlgorithm::Es256, DecodingKey::from_ec_der(&[&[4][..], &x, &y].concat()))
            }
            ("OKP", Some("Ed25519")) => {
                let x = bytes("x").filter(|x| x.len() == 32)?;
                (PublicAlgorithm::EdDsa, DecodingKey::from_ed_der(&x))
            }
            _ => return None,
        };
        // RFC 9864 has `Ed25519` as a name of its own for EdDSA with this curve.
        let fits = |name: &str| {
            name == algorithm.as_str() || (name, algorithm) == ("Ed25519", PublicAlgorithm::EdDsa)
        };
        if text("alg").is_some_and(|name| !fits(name)) {
            return None;
        }
        Some(Self { id: text("kid").map(str::to_owned), algorithm, key })
    }

    /// Reads the keys of a JWK set. Those that cannot verify signatures here are left out.
    pub fn from_jwks(set: &Value) -> Vec<Self> {
        let keys = set.get("keys").and_then(Value::as_array);
        keys.into_iter().flatten().filter_map(Self::from_jwk).collect()
    }

    /// Returns the `kid`.
    pub fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the algorithm that tokens of this key must have.
    pub fn algorithm(&self) -> PublicAlgorithm {
        self.algorithm
    }

    /// Verifies a token that must be signed with this key.
    ///
    /// # Errors
    /// The reason why the token is not accepted.
    pub fn verify<C: Claims>(&self, token: &str, expected: &Expected<'_>) -> Result<C, InvalidToken> {
        verify(token, &self.key, self.algorithm.algorithm(), expected)
    }
}

/// Omits the key.
impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicKey").field("id", &self.id).field("algorithm", &self.algorithm).finish()
    }
}

/// Returns the `kid` of a token, before anything is verified.
///
/// # Errors
/// If the text is not a token.
pub fn key_id(token: &str) -> Result<Option<String>, InvalidToken> {
    if token.len() > LONGEST_TOKEN {
        return Err(MALFORMED);
    }
    Ok(jsonwebtoken::decode_header(token).map_err(|_| MALFORMED)?.kid)
}

const MALFORMED: InvalidToken = InvalidToken("it is not a JSON Web Token with the claims that are needed");

fn verify<C: Claims>(
    token: &str,
    key: &DecodingKey,
    algorithm: Algorithm,
    expected: &Expected<'_>,
) -> Result<C, InvalidToken> {
    install();
    if token.len() > LONGEST_TOKEN {
        return Err(MALFORMED);
    }
    let mut validation = Validation::new(algorithm);
    // The crate would compare it with the clock of the machine.
    validation.validate_exp = false;
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation.set_issuer(&[expected.issuer]);
    validation.set_audience(expected.audiences);
    let read = jsonwebtoken::decode::<C>(token, key, &validation).map_err(|error| reason(&error))?;
    if read.header.crit.is_some() {
        return Err(InvalidToken("it has critical extensions"));
    }
    let times = read.claims.times();
    if times.is_over(expected.now) {
        return Err(InvalidToken("it has expired"));
    }
    let begins = times.issued.into_iter().chain(times.not_before);
    if begins.into_iter().any(|begin| begin > expected.now.seconds() + LEEWAY_SECONDS) {
        return Err(InvalidToken("it is not valid yet"));
    }
    Ok(read.claims)
}

fn reason(error: &JwtError) -> InvalidToken {
    match error.kind() {
        ErrorKind::InvalidSignature => InvalidToken("its signature is wrong"),
        ErrorKind::InvalidAlgorithm | ErrorKind::InvalidAlgorithmName => {
            InvalidToken("it has another algorithm than its key")
        }
        ErrorKind::InvalidIssuer => InvalidToken("it has another issuer"),
        ErrorKind::InvalidAudience => InvalidToken("it is for another audience"),
        ErrorKind::MissingRequiredClaim(_) => InvalidToken("`exp`, `iss`, `aud` or `sub` is missing"),
        _ => MALFORMED,
    }
}

fn base64_url(text: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).ok()
}

fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    number.get(zeros..).unwrap_or_default()
}
