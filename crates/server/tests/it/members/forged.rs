//! Tokens that no page got from the service, or not for this.

use crate::monitoring::Scraped;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Duration;
use model::{Env, MemberRole};
use ring::{digest, hmac};
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, Member, TestApp};

/// A change of a claim.
type Change = fn(&mut Value);

/// The key that the tokens of tests are signed with, derived as the service does.
pub(super) fn token_key(secret: &[u8]) -> Vec<u8> {
    let root = hmac::Key::new(hmac::HMAC_SHA256, secret);
    hmac::sign(&root, b"svc session tokens v1").as_ref().to_vec()
}

fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

fn decoded(part: &str) -> Value {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// The parts of a token: header, claims, and the signature as it is written.
fn parts(token: &str) -> (Value, Value, String) {
    let parts: Vec<&str> = token.split('.').collect();
    (decoded(parts[0]), decoded(parts[1]), parts[2].to_owned())
}

fn signed(header: &Value, claims: &Value, algorithm: hmac::Algorithm, secret: &[u8]) -> String {
    let message = format!("{}.{}", encoded(header), encoded(claims));
    let signature = hmac::sign(&hmac::Key::new(algorithm, secret), message.as_bytes());
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
}

async fn ask(app: &TestApp, token: &str) -> Answer {
    app.ask("GET", "/me").header("authorization", &format!("Bearer {token}")).send().await
}

async fn signed_in(app: &TestApp) -> Member {
    let workspace = app.bare_workspace("unlimited", 0).await;
    app.member(workspace, MemberRole::Owner).await
}

/// With a signature that is right, so that only the claim is wrong.
const WRONG_CLAIMS: [(&str, Change); 22] = [
    ("another issuer", |claims| claims["iss"] = json!("https://evil.example")),
    ("an issuer with a slash", |claims| claims["iss"] = json!("https://svc.example/")),
    ("no issuer", |claims| drop(claims.as_object_mut().unwrap().remove("iss"))),
    ("another audience", |claims| claims["aud"] = json!("https://svc.example/oauth")),
    ("a part of the audience", |claims| claims["aud"] = json!("https://svc.example")),
    ("no audience", |claims| drop(claims.as_object_mut().unwrap().remove("aud"))),
    ("no subject", |claims| drop(claims.as_object_mut().unwrap().remove("sub"))),
    ("another account", |claims| claims["sub"] = json!("acc_01m7w4n5e0k3p8r2v6x9b1d4f7")),
    ("another session", |claims| claims["sid"] = json!("ses_01m7w4n5e0k3p8r2v6x9b1d4f7")),
    ("a session of another form", |claims| claims["sid"] = json!("' OR 1=1 --")),
    ("another member", |claims| claims["mem"] = json!(999_999)),
    ("a member as text", |claims| claims["mem"] = json!("1")),
    ("another workspace", |claims| claims["wsp"] = json!(claims["wsp"].as_i64().unwrap() + 1)),
    ("a workspace that does not exist", |claims| claims["wsp"] = json!(999_999)),
    ("another environment", |claims| claims["env"] = json!("staging")),
    ("the end passed", |claims| claims["exp"] = json!(claims["iat"].as_i64().unwrap() - 5)),
    ("no end", |claims| drop(claims.as_object_mut().unwrap().remove("exp"))),
    ("an end as text", |claims| claims["exp"] = json!("9999999999")),
    ("an end that is no integer", |claims| claims["exp"] = json!(1e300)),
    ("issued in the future", |claims| claims["iat"] = json!(claims["iat"].as_i64().unwrap() + 6)),
    ("no session", |claims| drop(claims.as_object_mut().unwrap().remove("sid"))),
    ("claims that are no object", |claims| *claims = json!(["iss"])),
];

#[testkit::both]
async fn a_token_with_a_wrong_claim_is_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = signed_in(&app).await;
    // The next workspace exists, and the owner is not in it.
    signed_in(&app).await;
    let token = app.token(&owner, Env::Live).secret;
    let (header, claims, signature) = parts(&token);
    let key = token_key(&[7; 32]);
    assert_eq!(signed(&header, &claims, hmac::HMAC_SHA256, &key), token, "{signature}");
    assert_eq!((&header["alg"], &header["typ"]), (&json!("HS256"), &json!("JWT")));
    ask(&app, &token).await.expect(200);
    for (what, change) in WRONG_CLAIMS {
        let mut wrong = claims.clone();
        change(&mut wrong);
        let answer = ask(&app, &signed(&header, &wrong, hmac::HMAC_SHA256, &key)).await;
        assert_eq!(answer.status, 401, "{what}: {}", answer.text);
        answer.expect_error(401, "invalid_api_key");
        assert_eq!(answer.body["error"]["message"], "The API key is not valid.", "{what}");
    }
    // What is not claimed of it does not count: the same token with a claim that nobody reads.
    let mut more = claims.clone();
    more["role"] = json!("operator");
    ask(&app, &signed(&header, &more, hmac::HMAC_SHA256, &key)).await.expect(200);
}

#[testkit::both]
async fn a_token_that_the_service_did_not_sign_is_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = signed_in(&app).await;
    let token = app.token(&owner, Env::Live).secret;
    let (header, claims, signature) = parts(&token);
    let key = token_key(&[7; 32]);
    let with = |name: &str, value: Value| {
        let mut header = header.clone();
        header[name] = value;
        header
    };
    let unsigned = |header: &Value| format!("{}.{}.", encoded(header), encoded(&claims));
    let head = token.rsplit_once('.').unwrap().0;
    let mut tampered = claims.clone();
    tampered["mem"] = json!(2);
    let flipped: String = signature.chars().rev().collect();
    let forged = [
        ("alg none", unsigned(&with("alg", json!("none")))),
        ("alg None", unsigned(&with("alg", json!("None")))),
        ("alg none with a signature", signed(&with("alg", json!("none")), &claims, hmac::HMAC_SHA256, &key)),
        ("no signature", unsigned(&header)),
        ("HS384", signed(&with("alg", json!("HS384")), &claims, hmac::HMAC_SHA384, &key)),
        ("HS512", signed(&with("alg", json!("HS512")), &claims, hmac::HMAC_SHA512, &key)),
        ("RS256", signed(&with("alg", json!("RS256")), &claims, hmac::HMAC_SHA256, &key)),
        ("ES256", signed(&with("alg", json!("ES256")), &claims, hmac::HMAC_SHA256, &key)),
        ("EdDSA", signed(&with("alg", json!("EdDSA")), &claims, hmac::HMAC_SHA256, &key)),
        ("an unknown algorithm", signed(&with("alg", json!("HS1")), &claims, hmac::HMAC_SHA256, &key)),
        ("no algorithm", signed(&json!({ "kid": header["kid"] }), &claims, hmac::HMAC_SHA256, &key)),
        ("another key", signed(&header, &claims, hmac::HMAC_SHA256, &token_key(&[8; 32]))),
        ("the key itself", signed(&header, &claims, hmac::HMAC_SHA256, &[7; 32])),
        ("an empty key", signed(&header, &claims, hmac::HMAC_SHA256, b"")),
        ("another kid", signed(&with("kid", json!("000000000000")), &claims, hmac::HMAC_SHA256, &key)),
        (
            "a kid that is a path",
            signed(&with("kid", json!("../../dev/null")), &claims, hmac::HMAC_SHA256, b""),
        ),
        ("no kid", signed(&json!({ "alg": "HS256" }), &claims, hmac::HMAC_SHA256, &key)),
        ("a critical extension", signed(&with("crit", json!(["exp"])), &claims, hmac::HMAC_SHA256, &key)),
        (
            "a key of its own",
            signed(
                &with("jwk", json!({ "kty": "oct", "k": URL_SAFE_NO_PAD.encode(b"mine") })),
                &claims,
                hmac::HMAC_SHA256,
                b"mine",
            ),
        ),
        ("tampered claims", format!("{}.{}.{signature}", encoded(&header), encoded(&tampered))),
        ("a reversed signature", format!("{head}.{flipped}")),
        ("a short signature", format!("{head}.{}", &signature[..20])),
        ("a padded signature", format!("{token}=")),
        (
            "a digest",
            format!("{head}.{}", URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, head.as_bytes()))),
        ),
        ("three dots", "...".to_owned()),
        ("two dots", "..".to_owned()),
        ("a fourth part", format!("{token}.{signature}")),
        ("no base64", "a b.c d.e f".to_owned()),
        ("a header that is no JSON", format!("{}.{head}.{signature}", URL_SAFE_NO_PAD.encode("{"))),
        ("a long token", format!("{head}{}.{signature}", "A".repeat(9_000))),
    ];
    for (what, token) in &forged {
        let answer = ask(&app, token).await;
        assert_eq!(answer.status, 401, "{what}: {}", answer.text);
        answer.expect_error(401, "invalid_api_key");
    }
    ask(&app, &token).await.expect(200);
}

#[testkit::both]
async fn wrong_tokens_are_counted_by_address_like_wrong_keys(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = signed_in(&app).await;
    let token = app.token(&owner, Env::Live).secret;
    let limit: i64 = ask(&app, "a.b.c").await.headers["x-ratelimit-limit"].parse().unwrap();
    for _ in 1..limit {
        ask(&app, "a.b.c").await.expect_error(401, "invalid_api_key");
    }
    ask(&app, "a.b.c").await.expect_error(429, "rate_limited");
    ask(&app, "svc_live_nothing").await.expect_error(429, "rate_limited");
    // Behind a proxy a member has the address of whoever guesses.
    ask(&app, &token).await.expect(200);
}

#[testkit::both]
async fn a_token_ends_after_five_minutes(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = signed_in(&app).await;
    let token = app.token(&owner, Env::Live).secret;
    // Clocks of replicas may differ by five seconds.
    app.data.clock.advance(Duration::seconds(304));
    ask(&app, &token).await.expect(200);
    app.data.clock.advance(Duration::seconds(1));
    ask(&app, &token).await.expect_error(401, "invalid_api_key");
    ask(&app, &app.token(&owner, Env::Live).secret).await.expect(200);
}

#[testkit::both]
async fn while_the_service_key_is_rotated_tokens_of_both_keys_are_valid(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = signed_in(&app).await;
    let key = |byte: u8| auth::SecretKey::new(&[byte; 32]).unwrap();
    let old = app.token(&owner, Env::Live).secret;
    app.service.pipeline.seal.set_keys(key(8), Some(key(7)));
    let new = app.token(&owner, Env::Live).secret;
    assert_ne!(parts(&old).0["kid"], parts(&new).0["kid"]);
    ask(&app, &old).await.expect(200);
    ask(&app, &new).await.expect(200);
    app.service.pipeline.seal.set_keys(key(8), None);
    // As with all that ends a session, replicas may know it ten seconds later.
    app.data.clock.advance(Duration::seconds(10));
    ask(&app, &old).await.expect_error(401, "invalid_api_key");
    ask(&app, &new).await.expect(200);
}

/// Returns how many reads of the database `times` requests begin.
async fn reads(app: &TestApp, key: &Key, times: usize) -> f64 {
    let count = async || Scraped::of(app).await.value("svc_database_reads_total", &[]).unwrap();
    let before = count().await;
    for _ in 0..times {
        app.get("/me", key).await.expect(200);
    }
    count().await - before
}

#[testkit::both]
async fn a_warm_token_is_verified_without_a_query(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = signed_in(&app).await;
    let token = app.token(&owner, Env::Live);
    app.get("/me", &token).await.expect(200);
    // Scraping reads too.
    let scraping = reads(&app, &token, 0).await;
    assert!((reads(&app, &token, 20).await - scraping).abs() < f64::EPSILON);
    let key = app.key(owner.workspace, Env::Live, &["*"]).await;
    app.get("/me", &key).await.expect(200);
    assert!((reads(&app, &key, 20).await - scraping).abs() < f64::EPSILON);
}

#[testkit::both]
async fn the_api_reads_no_cookie(kind: Kind) {
    let app = TestApp::new(kind).await;
    let owner = signed_in(&app).await;
    let token = app.token(&owner, Env::Live);
    let cookies = [
        format!("__Host-svc_session={}", owner.session.session),
        format!("svc_session={}", owner.session.session),
        format!("__Host-svc_session={}; authorization=Bearer {}", token.secret, token.secret),
    ];
    for cookie in &cookies {
        for (method, path) in
            [("GET", "/me"), ("POST", "/contacts"), ("DELETE", "/contacts/1"), ("GET", "/nowhere")]
        {
            let answer = app.ask(method, path).header("cookie", cookie).send().await;
            answer.expect_error(401, "missing_api_key");
            assert!(!answer.headers.contains_key("set-cookie"));
        }
        // Beside a credential it changes nothing.
        let other = app.key(owner.workspace, Env::Test, &["runs:read"]).await;
        let answer = app.ask("GET", "/me").key(&other).header("cookie", cookie).send().await;
        assert_eq!(answer.expect(200)["api_key"]["id"], other.id.as_str());
    }
}
