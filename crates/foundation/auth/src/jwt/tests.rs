use super::*;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Assertion {
    iss: String,
    sub: String,
    aud: String,
    exp: i64,
    nbf: Option<i64>,
}

impl Claims for Assertion {
    fn times(&self) -> Times {
        Times { expires: self.exp, issued: None, not_before: self.nbf }
    }
}

const NOW: i64 = 1_800_000_000;

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    use base64::Engine;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

fn claims() -> Assertion {
    let text = str::to_owned;
    Assertion {
        iss: text("app"),
        sub: text("app"),
        aud: text("https://svc.example"),
        exp: NOW + 60,
        nbf: None,
    }
}

fn signed(algorithm: &str, claims: &Assertion, sign: impl Fn(&[u8]) -> Vec<u8>) -> String {
    let header = json!({ "alg": algorithm, "kid": "one" });
    let message = format!("{}.{}", encoded(header.to_string()), encoded(serde_json::to_vec(claims).unwrap()));
    let signature = sign(message.as_bytes());
    format!("{message}.{}", encoded(signature))
}

fn verified(key: &PublicKey, token: &str) -> Result<Assertion, InvalidToken> {
    let (issuer, now) = ("app", Timestamp::from_millis(NOW * 1_000));
    key.verify(token, &Expected { issuer, audiences: &["https://svc.example/", "https://svc.example"], now })
}

type Sign = Box<dyn Fn(&[u8]) -> Vec<u8>>;

/// A signer with its JWK.
struct Signs {
    algorithm: PublicAlgorithm,
    jwk: Value,
    sign: Sign,
}

fn signers() -> [Signs; 3] {
    let random = SystemRandom::new();
    let rsa = RsaKeyPair::from_der(include_bytes!("../../tests/rsa_key.der")).unwrap();
    let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(rsa.public());
    // Some libraries write the sign bit of DER.
    let modulus = [&[0][..], &public.n].concat();
    let rsa_jwk = json!({ "kty": "RSA", "n": encoded(modulus), "e": encoded(&public.e), "kid": "one" });
    let fixed = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(fixed, &random).unwrap();
    let ec = EcdsaKeyPair::from_pkcs8(fixed, pkcs8.as_ref(), &random).unwrap();
    let (x, y) = ec.public_key().as_ref()[1..].split_at(32);
    let ec_jwk = json!({ "kty": "EC", "crv": "P-256", "x": encoded(x), "y": encoded(y), "use": "sig" });
    let ed = Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&random).unwrap().as_ref()).unwrap();
    let ed_jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": encoded(ed.public_key()), "alg": "EdDSA" });
    [
        Signs {
            algorithm: PublicAlgorithm::Rs256,
            jwk: rsa_jwk,
            sign: Box::new(move |message| {
                let mut signature = vec![0; rsa.public().modulus_len()];
                rsa.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message, &mut signature).unwrap();
                signature
            }),
        },
        Signs {
            algorithm: PublicAlgorithm::Es256,
            jwk: ec_jwk,
            sign: Box::new(move |message| ec.sign(&SystemRandom::new(), message).unwrap().as_ref().to_vec()),
        },
        Signs {
            algorithm: PublicAlgorithm::EdDsa,
            jwk: ed_jwk,
            sign: Box::new(move |message| ed.sign(message).as_ref().to_vec()),
        },
    ]
}

#[test]
fn tokens_of_others_are_verified_with_their_jwk() {
    let signers = signers();
    let set = json!({ "keys": signers.iter().map(|one| one.jwk.clone()).collect::<Vec<_>>() });
    let keys = PublicKey::from_jwks(&set);
    assert_eq!(keys.len(), 3);
    assert_eq!(keys[0].id(), Some("one"));
    for (place, (signer, key)) in signers.iter().zip(&keys).enumerate() {
        assert_eq!(key.algorithm(), signer.algorithm);
        let token = signed(signer.algorithm.as_str(), &claims(), &signer.sign);
        assert_eq!(key_id(&token).unwrap().as_deref(), Some("one"));
        assert_eq!(verified(key, &token), Ok(claims()));
        // Another algorithm, another key, other claims.
        for algorithm in ["none", "HS256", "RS256", "ES256", "EdDSA", "PS256"] {
            let other = signed(algorithm, &claims(), &signer.sign);
            assert_eq!(verified(key, &other).is_ok(), algorithm == signer.algorithm.as_str());
        }
        let next = &keys[(place + 1) % keys.len()];
        assert!(verified(next, &token).is_err());
        let (head, signature) = token.rsplit_once('.').unwrap();
        let mut flipped = signature.to_owned();
        flipped.replace_range(10..11, if &flipped[10..11] == "A" { "B" } else { "A" });
        let reason = verified(key, &format!("{head}.{flipped}")).unwrap_err();
        assert_eq!(reason, InvalidToken("its signature is wrong"));
    }
}

#[test]
fn a_public_key_is_no_secret_of_an_hmac() {
    let [_, ec, _] = signers();
    let key = PublicKey::from_jwk(&ec.jwk).unwrap();
    let secret = ["x", "y"].map(|name| base64_url(ec.jwk[name].as_str().unwrap()).unwrap()).concat();
    for secret in [secret, ec.jwk.to_string().into_bytes(), Vec::new()] {
        let hmac_key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let token = signed("HS256", &claims(), |message| hmac::sign(&hmac_key, message).as_ref().to_vec());
        assert!(verified(&key, &token).is_err());
    }
}

#[test]
fn claims_are_checked_against_the_clock_of_the_service() {
    let [.., ed] = signers();
    let key = PublicKey::from_jwk(&ed.jwk).unwrap();
    let with = |change: fn(&mut Assertion)| {
        let mut claims = claims();
        change(&mut claims);
        verified(&key, &signed("EdDSA", &claims, &ed.sign)).err().map(|reason| reason.0)
    };
    assert_eq!(with(|claims| claims.aud.push('/')), None);
    assert_eq!(with(|claims| claims.aud.push('x')), Some("it is for another audience"));
    assert_eq!(with(|claims| claims.iss.push('x')), Some("it has another issuer"));
    assert_eq!(with(|claims| claims.exp = NOW - 4), None);
    assert_eq!(with(|claims| claims.exp = NOW - 5), Some("it has expired"));
    assert_eq!(with(|claims| claims.exp = 0), Some("it has expired"));
    assert_eq!(with(|claims| claims.nbf = Some(NOW + 5)), None);
    assert_eq!(with(|claims| claims.nbf = Some(NOW + 6)), Some("it is not valid yet"));
}

#[test]
fn keys_that_cannot_verify_are_left_out() {
    let [rsa, ec, ed] = signers();
    let with = |jwk: &Value, name: &str, value: Value| {
        let mut jwk = jwk.clone();
        jwk[name] = value;
        PublicKey::from_jwk(&jwk).is_some()
    };
    for jwk in [&rsa.jwk, &ec.jwk, &ed.jwk] {
        assert!(with(jwk, "use", json!("sig")) && with(jwk, "key_ops", json!(["verify"])));
        assert!(!with(jwk, "use", json!("enc")) && !with(jwk, "key_ops", json!(["sign"])));
        assert!(!with(jwk, "d", json!("AAAA")), "a private key");
        for other in ["HS256", "none", "RS512", "ES384"] {
            assert!(!with(jwk, "alg", json!(other)), "{other}");
        }
        assert!(!with(jwk, "kty", json!("oct")));
    }
    assert!(with(&ed.jwk, "alg", json!("Ed25519")) && !with(&ec.jwk, "alg", json!("Ed25519")));
    assert!(!with(&ec.jwk, "crv", json!("P-384")) && !with(&ec.jwk, "x", json!("AAAA")));
    assert!(!with(&ed.jwk, "crv", json!("Ed448")) && !with(&ed.jwk, "x", json!("not base64!")));
    assert!(PublicKey::from_jwks(&json!({ "keys": "none" })).is_empty());
    assert!(PublicKey::from_jwks(&json!([])).is_empty());
}
