//! Public libraries verify the tokens of the service, and the service verifies theirs.
//!
//! `scripts/jwt-libraries`, which `make test` runs, fetches them; where one cannot be had its part is skipped.

use super::forged::token_key;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use model::{Env, MemberRole};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use testkit::{Kind, TestApp};

/// Verifies the token, expects that a changed one is refused, and prints the claims signed again.
const PYTHON: &str = r#"
import base64, json, sys, jwt
case = json.load(open(sys.argv[1], encoding="utf-8"))
key = base64.b64decode(case["key"])
rules = dict(algorithms=["HS256"], issuer="https://svc.example", audience="https://svc.example/api/v1")
claims = jwt.decode(case["token"], key, options={"require": ["exp", "iat", "iss", "aud", "sub"]}, **rules)
assert claims == case["claims"], claims
for wrong in [(case["token"], b"x" * 32), (case["tampered"], key)]:
    try:
        jwt.decode(*wrong, **rules)
        sys.exit("a wrong token was accepted")
    except jwt.InvalidSignatureError:
        pass
print(jwt.encode(claims, key, algorithm="HS256", headers={"kid": jwt.get_unverified_header(case["token"])["kid"]}))
"#;

const NODE: &str = r#"
import { readFileSync } from "node:fs";
const { jwtVerify, SignJWT, errors } = await import(process.argv[3]);
const given = JSON.parse(readFileSync(process.argv[2], "utf8"));
const key = Buffer.from(given.key, "base64");
const rules = { algorithms: ["HS256"], issuer: "https://svc.example", audience: "https://svc.example/api/v1", requiredClaims: ["exp", "iat", "sub"] };
const { payload, protectedHeader } = await jwtVerify(given.token, key, rules);
if (payload.sid !== given.claims.sid || payload.wsp !== given.claims.wsp) throw new Error("other claims");
for (const wrong of [[given.token, Buffer.alloc(32)], [given.tampered, key]]) {
  const refused = await jwtVerify(...wrong, rules).then(() => false, (error) => error instanceof errors.JWSSignatureVerificationFailed);
  if (!refused) throw new Error("a wrong token was accepted");
}
console.log(await new SignJWT(payload).setProtectedHeader({ alg: "HS256", kid: protectedHeader.kid }).sign(key));
"#;

/// Runs a library and returns the token that it has signed.
fn signed_again(mut library: Command) -> String {
    let output = library.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[actix_web::test]
async fn public_libraries_and_the_service_read_each_others_tokens() {
    let app = TestApp::new(Kind::Sqlite).await;
    // The libraries compare times with the machine's clock.
    let now = Command::new("date").arg("+%s").output().unwrap().stdout;
    let now: i64 = String::from_utf8(now).unwrap().trim().parse().unwrap();
    app.data.clock.advance(chrono::Duration::seconds(now - app.db().now().seconds()));
    let workspace = app.bare_workspace("unlimited", 0).await;
    let owner = app.member(workspace, MemberRole::Owner).await;
    let token = app.token(&owner, Env::Live).secret;
    let parts: Vec<&str> = token.split('.').collect();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    let mut tampered = claims.clone();
    tampered["wsp"] = json!(workspace.0 + 1);
    let tampered = format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode(tampered.to_string()), parts[2]);
    let folder = tempfile::tempdir().unwrap();
    let (case, script) = (folder.path().join("case.json"), folder.path().join("verify.mjs"));
    let key = STANDARD.encode(token_key(&[7; 32]));
    let given = json!({ "key": key, "token": token, "claims": claims, "tampered": tampered });
    std::fs::write(&case, given.to_string()).unwrap();
    std::fs::write(&script, NODE).unwrap();
    let cache: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.cache/jwt");
    let (python, jose) =
        (cache.join("venv/bin/python"), cache.join("npm/node_modules/jose/dist/webapi/index.js"));
    let mut libraries = Vec::new();
    if python.exists() {
        let mut library = Command::new(&python);
        library.args(["-c", PYTHON]).arg(&case);
        libraries.push(library);
    }
    if jose.exists() {
        let mut library = Command::new("node");
        library.arg(&script).arg(&case).arg(&jose);
        libraries.push(library);
    }
    if libraries.len() < 2 {
        println!("skipped: a library for JSON Web Tokens is missing, run scripts/jwt-libraries");
    }
    for library in libraries {
        let again = signed_again(library);
        assert_ne!(again, token, "the library signs its own header");
        app.ask("GET", "/me").header("authorization", &format!("Bearer {again}")).send().await.expect(200);
    }
}
