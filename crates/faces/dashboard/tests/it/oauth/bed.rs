//! A service with an owner who is signed in, and a client that walks through the flow by HTTP.

use accounts::sessions;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use model::{MemberRole, WorkspaceId};
use oauth::clients::AuthMethod;
use oauth::clients::apps::{self, NewApp};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use testkit::{Answer, Kind, Member, TestApp};
use url::form_urlencoded::{Serializer, parse};

/// The base URL of services in tests.
pub(crate) const BASE: &str = "https://svc.example";
/// The verifier of all flows here.
pub(crate) const VERIFIER: &str = "a-verifier-of-forty-three-characters-or-more";
/// The redirect address of most clients.
pub(crate) const REDIRECT: &str = "https://app.example.com/callback";

pub(crate) fn challenge() -> String {
    URL_SAFE_NO_PAD.encode(digest(&SHA256, VERIFIER.as_bytes()))
}

/// Encodes pairs as a form or a query.
pub(crate) fn form(pairs: &[(&str, &str)]) -> String {
    Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Returns the value of a parameter of a URL.
pub(crate) fn parameter(url: &str, name: &str) -> Option<String> {
    let query = url.split_once('?')?.1;
    parse(query.as_bytes()).find(|(other, _)| other == name).map(|(_, value)| value.into_owned())
}

pub(crate) struct Bed {
    pub(crate) app: TestApp,
    pub(crate) workspace: WorkspaceId,
    pub(crate) owner: Member,
    pub(crate) cookie: String,
}

impl Bed {
    pub(crate) async fn new(kind: Kind) -> Self {
        Self::of(TestApp::new(kind).await).await
    }

    pub(crate) async fn of(app: TestApp) -> Self {
        let workspace = app.bare_workspace("scale", 0).await;
        let owner = app.member(workspace, MemberRole::Owner).await;
        let cookie = sign_in(&app, &owner).await;
        Self { app, workspace, owner, cookie }
    }

    /// Registers a client dynamically and returns the answer.
    pub(crate) async fn register(&self, metadata: Value) -> Answer {
        self.app.ask_beside("POST", "/oauth/register").json(&metadata).send().await
    }

    /// Registers a public client and returns its id.
    pub(crate) async fn public_client(&self, redirects: &[&str]) -> String {
        let metadata = json!({
            "client_name": "Desk", "redirect_uris": redirects, "token_endpoint_auth_method": "none",
        });
        let answer = self.register(metadata).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.body["client_id"].as_str().unwrap().to_owned()
    }

    /// Registers an app of the workspace and returns its id and its secret.
    pub(crate) async fn app_with_secret(&self) -> (String, String) {
        let workspace = self.workspace;
        let made = self.app.db().write(move |tx| {
            let new = NewApp {
                workspace,
                name: "Acme Desk".to_owned(),
                redirect_uris: vec![REDIRECT.to_owned()],
                method: AuthMethod::ClientSecretBasic,
                keys: None,
            };
            apps::create(tx, &new)
        });
        let (app, secret) = made.await.unwrap();
        (app.id.to_string(), secret.unwrap())
    }

    /// Returns a request to authorize. `changes` replace parameters, or remove those without a value.
    pub(crate) fn query(client: &str, changes: &[(&str, Option<&str>)]) -> String {
        let challenge = challenge();
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", REDIRECT),
            ("scope", "contacts:read mcp:use"),
            ("state", "a state"),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ];
        for (name, value) in changes {
            pairs.retain(|(other, _)| other != name);
            pairs.extend(value.map(|value| (*name, value)));
        }
        form(&pairs)
    }

    /// Opens the page as the owner.
    pub(crate) async fn open(&self, query: &str) -> Answer {
        self.open_as(&self.cookie, query).await
    }

    pub(crate) async fn open_as(&self, cookie: &str, query: &str) -> Answer {
        let ask = self.app.ask_beside("GET", &format!("/oauth/authorize?{query}"));
        ask.header("cookie", cookie).send().await
    }

    /// Opens the page and decides.
    pub(crate) async fn decide(&self, query: &str, decision: &str) -> Answer {
        let page = self.open(query).await;
        assert_eq!(page.status, 200, "{}", page.text);
        self.post(query, &form_token(&page), decision).await
    }

    pub(crate) async fn post(&self, query: &str, token: &str, decision: &str) -> Answer {
        let workspace = self.workspace.to_string();
        let fields =
            [("form_token", token), ("workspace", &workspace), ("env", "live"), ("decision", decision)];
        self.post_fields(&self.cookie, query, &fields).await
    }

    pub(crate) async fn post_fields(&self, cookie: &str, query: &str, fields: &[(&str, &str)]) -> Answer {
        let ask = self.app.ask_beside("POST", &format!("/oauth/authorize?{query}"));
        let ask = ask.header("cookie", cookie).header("sec-fetch-site", "same-origin");
        ask.bytes("application/x-www-form-urlencoded", form(fields).as_bytes()).send().await
    }

    /// Walks through the flow to the code.
    pub(crate) async fn code(&self, query: &str) -> String {
        let answer = self.decide(query, "allow").await;
        assert_eq!(answer.status, 303, "{}", answer.text);
        parameter(&answer.headers["location"], "code").unwrap()
    }

    /// Sends a form to an endpoint for programs.
    pub(crate) async fn program(&self, endpoint: &str, fields: &[(&str, &str)]) -> Answer {
        let ask = self.app.ask_beside("POST", endpoint);
        ask.bytes("application/x-www-form-urlencoded", form(fields).as_bytes()).send().await
    }

    /// Exchanges a code of a public client.
    pub(crate) async fn exchange(&self, client: &str, redirect: &str, code: &str) -> Answer {
        let fields = [
            ("grant_type", "authorization_code"),
            ("client_id", client),
            ("code", code),
            ("redirect_uri", redirect),
            ("code_verifier", VERIFIER),
        ];
        self.program("/oauth/token", &fields).await
    }

    /// Returns the status of `GET /contacts` with an access token.
    pub(crate) async fn contacts(&self, token: &Value) -> u16 {
        let bearer = format!("Bearer {}", token.as_str().unwrap());
        self.app.ask("GET", "/contacts").header("authorization", &bearer).send().await.status
    }
}

/// Opens a session for a member and returns its cookie.
pub(crate) async fn sign_in(app: &TestApp, member: &Member) -> String {
    let account = member.session.account.clone();
    let opened = app
        .db()
        .write(move |tx| Ok(sessions::open(tx, &account, IpAddr::V4(Ipv4Addr::LOCALHOST), "test")?.1));
    format!("__Host-svc_session={}", opened.await.unwrap().reveal())
}

/// Returns the form token of a page.
pub(crate) fn form_token(page: &Answer) -> String {
    let after = page.text.split_once("name=\"form_token\" value=\"").unwrap().1;
    after.split('"').next().unwrap().to_owned()
}

/// Asserts an error of an endpoint for programs.
#[track_caller]
pub(crate) fn expect_error(answer: &Answer, status: u16, error: &str) {
    assert_eq!(answer.status, status, "{}", answer.text);
    assert_eq!(answer.body["error"], error, "{}", answer.text);
    assert!(
        answer.body["error_description"].as_str().is_some_and(|text| !text.is_empty()),
        "{}",
        answer.text
    );
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert_eq!(answer.headers["access-control-allow-origin"], "*");
}
