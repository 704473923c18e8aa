//! An OAuth app that has refreshed its tokens, so that an answer is stored.

use accounts::schema::accounts as people;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use diesel::prelude::*;
use model::{AccountId, Env, MemberId, Result, ScopeSet, WorkspaceId};
use oauth::schema::oauth_codes;
use oauth::{Authorization, Resource};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use store::Tx;
use testkit::Program;

const REDIRECT: &str = "https://assistant.example/callback";
const REDIRECT_ENCODED: &str = "https%3A%2F%2Fassistant.example%2Fcallback";
const VERIFIER: &str = "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv";

/// A member allows an app to act. Returns the code.
fn authorized(tx: &mut Tx, workspace: WorkspaceId, client_id: &str) -> Result<String> {
    let (now, account) = (tx.now(), AccountId::new(tx.now(), &*tx.random()));
    let email = format!("{account}@shop.example");
    diesel::insert_into(people::table)
        .values((
            (people::id.eq(&account), people::email.eq(&email), people::email_key.eq(&email)),
            (people::name.eq("Carla"), people::operator.eq(false)),
            (people::created_at.eq(now), people::updated_at.eq(now)),
        ))
        .execute(tx.connection())?;
    let new = Authorization {
        account,
        member: MemberId(1),
        workspace,
        env: Env::Live,
        client_id: client_id.to_owned(),
        client_key: client_id.to_owned(),
        client_name: "Assistant".into(),
        redirect_uri: REDIRECT.into(),
        challenge: URL_SAFE_NO_PAD.encode(digest(&SHA256, VERIFIER.as_bytes())),
        resource: Resource::Service,
        scopes: ScopeSet::parse_stored("runs:read"),
    };
    let code = oauth::authorize(tx, &new)?.reveal().to_owned();
    // The program has the clock of the machine, and this database that of the test.
    diesel::update(oauth_codes::table)
        .set(oauth_codes::expires_at.eq(now.plus_seconds(100 * 365 * 24 * 3600)))
        .execute(tx.connection())?;
    Ok(code)
}

/// Lets an app of a workspace refresh its tokens. The program serves.
pub(super) async fn refreshed(program: &Program, workspace: WorkspaceId) {
    let client = program.client();
    let post = async |path: &str, kind: &str, body: &str| -> Value {
        let answer = client.ask_beside("POST", path).bytes(kind, body.as_bytes()).send().await;
        assert!(answer.status < 300, "{path}: {} {}", answer.status, answer.text);
        serde_json::from_str(&answer.text).unwrap()
    };
    let token = async |fields: String| {
        post("/oauth/token", "application/x-www-form-urlencoded", &fields).await["refresh_token"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let registration = json!({
        "client_name": "Assistant", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none",
    });
    let registered = post("/oauth/register", "application/json", &registration.to_string()).await;
    let id = registered["client_id"].as_str().unwrap().to_owned();
    let name = id.clone();
    let code = program.data.db.write(move |tx| authorized(tx, workspace, &name)).await.unwrap();
    let first = token(format!(
        "grant_type=authorization_code&client_id={id}&code={code}&redirect_uri={REDIRECT_ENCODED}&code_verifier={VERIFIER}"
    ))
    .await;
    let second = token(format!("grant_type=refresh_token&client_id={id}&refresh_token={first}")).await;
    assert_ne!(first, second);
}
