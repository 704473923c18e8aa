//! A workspace with a member, and the two replicas that apps ask.

use accounts::schema::accounts as people;
use auth::workspaces::{self, NewWorkspace};
use auth::{Audience, Directory, Identity, Seal};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::TimeDelta;
use diesel::prelude::*;
use model::{AccountId, Env, MemberId, ScopeSet, WorkspaceId};
use oauth::{AccessTokens, Authorization, CodeExchange, Refresh, Resource, TokenReply};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use std::sync::Arc;
use store::schema::events;
use store::{Db, Tx};
use testkit::{Kind, TestDb};

pub const CLIENT: &str = "https://assistant.example/client.json";
pub const REDIRECT: &str = "http://127.0.0.1:5000/callback";
pub const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

pub struct Bed {
    pub data: TestDb,
    /// The database as a second replica has it.
    pub other: Db,
    pub seal: Arc<Seal>,
    pub workspace: WorkspaceId,
    pub account: AccountId,
}

impl Bed {
    pub async fn new(kind: Kind) -> Self {
        let data = TestDb::new(kind);
        let made = data.db.write(|tx| {
            let new = NewWorkspace { name: "Shop".into(), slug: "shop".into(), partner: None };
            Ok((workspaces::create(tx, &new)?.id, account(tx)?))
        });
        let (workspace, account) = made.await.unwrap();
        let seal = Arc::new(Seal::new(&[7; 32]).unwrap());
        Self { other: data.reopen(), data, seal, workspace, account }
    }

    pub fn db(&self) -> &Db {
        &self.data.db
    }

    /// One of the two replicas.
    pub fn replica(&self, first: bool) -> &Db {
        if first { &self.data.db } else { &self.other }
    }

    pub fn advance(&self, seconds: u64) {
        self.data.clock.advance(TimeDelta::seconds(i64::try_from(seconds).unwrap()));
    }

    pub fn authorization(&self, client: &str, scopes: &str) -> Authorization {
        Authorization {
            account: self.account.clone(),
            member: MemberId(1),
            workspace: self.workspace,
            env: Env::Live,
            client_id: client.to_owned(),
            client_key: client.to_owned(),
            client_name: "Assistant".into(),
            redirect_uri: REDIRECT.into(),
            challenge: URL_SAFE_NO_PAD.encode(digest(&SHA256, VERIFIER.as_bytes())),
            resource: Resource::Service,
            scopes: ScopeSet::parse_stored(scopes),
        }
    }

    pub async fn authorize(&self, new: Authorization) -> String {
        let code = self.db().write(move |tx| oauth::authorize(tx, &new));
        code.await.unwrap().reveal().to_owned()
    }

    /// A code for these scopes.
    pub async fn code(&self, scopes: &str) -> String {
        self.authorize(self.authorization(CLIENT, scopes)).await
    }

    pub async fn exchange(&self, request: CodeExchange) -> TokenReply {
        self.exchange_at(self.db(), request).await
    }

    pub async fn exchange_at(&self, db: &Db, request: CodeExchange) -> TokenReply {
        db.write(move |tx| oauth::exchange(tx, &request)).await.unwrap()
    }

    pub async fn refresh(&self, request: Refresh) -> TokenReply {
        self.refresh_at(self.db(), request).await
    }

    pub async fn refresh_at(&self, db: &Db, request: Refresh) -> TokenReply {
        let seal = self.seal.clone();
        db.write(move |tx| oauth::refresh(tx, &seal, &request)).await.unwrap()
    }

    pub async fn revoke(&self, client: &str, token: &str) {
        let (client, token) = (client.to_owned(), token.to_owned());
        self.db().write(move |tx| oauth::revoke_token(tx, &client, &token)).await.unwrap();
    }

    /// Tokens of a new family.
    pub async fn tokens(&self, scopes: &str) -> Tokens {
        let code = self.code(scopes).await;
        issued(&self.exchange(exchanging(&code)).await)
    }

    /// What an access token opens, read from the database.
    pub async fn identity(&self, token: &str) -> Option<Identity> {
        let directory = Arc::new(Directory::new(self.db().clone()));
        let tokens = AccessTokens::new(self.db().clone(), directory);
        let now = self.db().now();
        let found = tokens.identify(AccessTokens::parse(token)?, Audience::Rest, now).await.unwrap();
        found.filter(|found| found.key.check_usable(now).is_ok())
    }

    /// The data of the events so far.
    pub async fn events(&self) -> Vec<Value> {
        let read = self.db().read(|read| {
            let rows: Vec<(String, String)> = events::table
                .order(events::id.asc())
                .select((events::kind, events::data))
                .load(read.connection())?;
            Ok(rows)
        });
        let rows = read.await.unwrap();
        assert!(rows.iter().all(|(kind, _)| kind == "app.authorization.revoked"), "{rows:?}");
        rows.iter().map(|(_, data)| serde_json::from_str(data).unwrap()).collect()
    }
}

fn account(tx: &mut Tx) -> model::Result<AccountId> {
    let (now, id) = (tx.now(), AccountId::new(tx.now(), &*tx.random()));
    diesel::insert_into(people::table)
        .values((
            people::id.eq(&id),
            people::email.eq("owner@shop.example"),
            people::email_key.eq("owner@shop.example"),
            people::name.eq("Owner"),
            people::operator.eq(false),
            people::created_at.eq(now),
            people::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(id)
}

/// A request with a code, as an honest client sends it.
pub fn exchanging(code: &str) -> CodeExchange {
    CodeExchange {
        client_id: CLIENT.into(),
        code: code.to_owned(),
        redirect_uri: REDIRECT.into(),
        verifier: VERIFIER.into(),
        resource: None,
    }
}

/// A request with a refresh token, as an honest client sends it.
pub fn refreshing(token: &str) -> Refresh {
    Refresh { client_id: CLIENT.into(), refresh_token: token.to_owned(), scope: None, resource: None }
}

/// Tokens as a client keeps them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    pub access: String,
    pub refresh: String,
    pub scope: String,
    pub expires_in: i64,
}

#[track_caller]
pub fn issued(reply: &TokenReply) -> Tokens {
    let TokenReply::Issued(body) = reply else { panic!("{reply:?}") };
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["token_type"], "Bearer");
    let text = |name: &str| body[name].as_str().unwrap().to_owned();
    Tokens {
        access: text("access_token"),
        refresh: text("refresh_token"),
        scope: text("scope"),
        expires_in: body["expires_in"].as_i64().unwrap(),
    }
}

/// The error code of a refusal.
#[track_caller]
pub fn refused(reply: &TokenReply) -> &'static str {
    let TokenReply::Refused(refusal) = reply else { panic!("{reply:?}") };
    refusal.code.as_str()
}
