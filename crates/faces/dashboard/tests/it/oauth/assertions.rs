//! `private_key_jwt`: clients that sign who they are (RFC 7523).

use super::bed::{BASE, Bed, REDIRECT, expect_error, form};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use testkit::{Answer, Kind, both};

const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A client with a key, and the members of its next assertion.
struct Signer<'a> {
    bed: &'a Bed,
    id: String,
    pair: Ed25519KeyPair,
}

impl<'a> Signer<'a> {
    async fn new(bed: &'a Bed) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let x = URL_SAFE_NO_PAD.encode(pair.public_key());
        let jwk = json!({ "kty": "OKP", "crv": "Ed25519", "x": x, "kid": "one" });
        let metadata = json!({
            "client_name": "Signer", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "private_key_jwt",
            "jwks": { "keys": [jwk] },
        });
        let made = bed.register(metadata).await;
        assert_eq!((made.status, made.body.get("client_secret")), (201, None), "{}", made.text);
        let id = made.body["client_id"].as_str().unwrap().to_owned();
        Self { bed, id, pair }
    }

    fn now(&self) -> i64 {
        self.bed.app.db().now().seconds()
    }

    /// The claims of an assertion with this id. `changes` replace some; those with `null` are left out.
    fn claims(&self, id: &str, changes: &[(&str, Value)]) -> Value {
        let (now, token_endpoint) = (self.now(), format!("{BASE}/oauth/token"));
        let mut claims = json!({
            "iss": self.id, "sub": self.id, "aud": token_endpoint, "jti": id, "iat": now, "exp": now + 60,
        });
        for (name, value) in changes {
            claims[*name] = value.clone();
        }
        claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        claims
    }

    fn signed(&self, header: &Value, claims: &Value) -> String {
        signed(&self.pair, header, claims)
    }

    fn token(&self, id: &str, changes: &[(&str, Value)]) -> String {
        self.signed(&json!({ "alg": "EdDSA", "kid": "one" }), &self.claims(id, changes))
    }

    /// Asks about a token, which every client may do that proves who it is.
    async fn ask(&self, assertion: &str, more: &[(&str, &str)]) -> Answer {
        let fields =
            [&[("token", "x"), ("client_assertion", assertion), ("client_assertion_type", TYPE)], more];
        let ask = self.bed.app.ask_beside("POST", "/oauth/introspect");
        ask.bytes("application/x-www-form-urlencoded", form(&fields.concat()).as_bytes()).send().await
    }
}

fn signed(pair: &Ed25519KeyPair, header: &Value, claims: &Value) -> String {
    let encoded = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let text = format!("{}.{}", encoded(header), encoded(claims));
    let signature = URL_SAFE_NO_PAD.encode(pair.sign(text.as_bytes()));
    format!("{text}.{signature}")
}

#[both]
async fn a_signed_assertion_proves_a_client_once(kind: Kind) {
    let bed = Bed::new(kind).await;
    let signer = Signer::new(&bed).await;
    let (now, endpoint) = (signer.now(), format!("{BASE}/oauth/token"));
    for (id, changes) in [
        ("endpoint", vec![]),
        ("issuer", vec![("aud", json!(BASE))]),
        ("list", vec![("aud", json!(["https://other.example", endpoint]))]),
        ("an hour", vec![("exp", json!(now + 3600))]),
        ("no time of issue", vec![("iat", json!(null))]),
    ] {
        let token = signer.token(id, &changes);
        let answer = signer.ask(&token, &[]).await;
        assert_eq!((answer.status, &answer.body), (200, &json!({ "active": false })), "{id}");
        expect_error(&signer.ask(&token, &[]).await, 401, "invalid_client");
    }
    // The parameter may repeat who asks. Another way to prove it may not be added.
    let named = signer.ask(&signer.token("named", &[]), &[("client_id", &signer.id)]).await;
    assert_eq!(named.status, 200, "{}", named.text);
    let twice = signer.ask(&signer.token("twice", &[]), &[("client_secret", "x")]).await;
    expect_error(&twice, 400, "invalid_request");
    // The id of an assertion is its client's own.
    let other = bed.public_client(&[REDIRECT]).await;
    let foreign = signer.ask(&signer.token("foreign", &[]), &[("client_id", &other)]).await;
    expect_error(&foreign, 401, "invalid_client");
}

#[both]
async fn other_assertions_prove_nothing(kind: Kind) {
    let bed = Bed::new(kind).await;
    let signer = Signer::new(&bed).await;
    let (now, other) = (signer.now(), bed.public_client(&[REDIRECT]).await);
    let header = json!({ "alg": "EdDSA", "kid": "one" });
    for changes in [
        vec![("aud", json!("https://other.example"))],
        vec![("aud", json!(null))],
        vec![("iss", json!("https://other.example"))],
        vec![("sub", json!("somebody"))],
        vec![("sub", json!(null))],
        vec![("iss", json!(other)), ("sub", json!(other))],
        vec![("exp", json!(now - 60))],
        vec![("exp", json!(now + 3700))],
        vec![("exp", json!(null))],
        vec![("exp", json!("soon"))],
        vec![("nbf", json!(now + 60))],
        vec![("iat", json!(now + 600))],
        vec![("jti", json!(null))],
        vec![("jti", json!(""))],
        vec![("jti", json!("x".repeat(513)))],
    ] {
        let answer = signer.ask(&signer.token("a", &changes), &[]).await;
        assert_eq!(answer.status, 401, "{changes:?}: {}", answer.text);
        expect_error(&answer, 401, "invalid_client");
    }
    let claims = signer.claims("b", &[]);
    let stranger = Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap();
    let whole = signer.signed(&header, &claims);
    let (unsigned, _) = whole.rsplit_once('.').unwrap();
    let none = signer.signed(&json!({ "alg": "none" }), &claims);
    let (none, _) = none.rsplit_once('.').unwrap();
    for token in [
        signed(&stranger, &header, &claims),
        signer.signed(&json!({ "alg": "EdDSA", "kid": "two" }), &claims),
        signer.signed(&json!({ "alg": "HS256", "kid": "one" }), &claims),
        signer.signed(&json!({ "alg": "ES256", "kid": "one" }), &claims),
        format!("{unsigned}."),
        unsigned.to_owned(),
        format!("{none}."),
        format!("{whole}x"),
        "a.b.c".to_owned(),
    ] {
        let answer = signer.ask(&token, &[("client_id", &signer.id)]).await;
        assert_eq!(answer.status, 401, "{token}: {}", answer.text);
    }
    // None of them has used the id up.
    assert_eq!(signer.ask(&whole, &[]).await.status, 200);
}
