//! How long tokens live, and what ends them before.

use crate::bed::{Bed, CLIENT, Tokens, exchanging, issued, refreshing, refused};
use accounts::schema::{accounts as people, audit_log};
use auth::keys::{self, KeyKind};
use auth::{Audience, Directory};
use diesel::prelude::*;
use model::{Cause, Error, KeyId, MemberId};
use oauth::{AccessTokens, TokenKind};
use serde_json::json;
use std::sync::Arc;
use store::Db;
use testkit::Kind;

const DAY: u64 = 24 * 3600;

#[testkit::both]
async fn a_family_ends_when_it_is_idle(kind: Kind) {
    let bed = Bed::new(kind).await;
    let (used, idle) = (bed.tokens("contacts:read").await, bed.tokens("contacts:read").await);
    bed.advance(60 * DAY - 1);
    let used = issued(&bed.refresh(refreshing(&used.refresh)).await);
    bed.advance(1);
    assert_eq!(refused(&bed.refresh(refreshing(&idle.refresh)).await), "invalid_grant");
    bed.advance(60 * DAY - 2);
    issued(&bed.refresh(refreshing(&used.refresh)).await);
    assert!(bed.events().await.is_empty());
}

#[testkit::both]
async fn a_family_ends_after_a_year(kind: Kind) {
    let bed = Bed::new(kind).await;
    let mut tokens = bed.tokens("contacts:read").await;
    for _ in 0..7 {
        bed.advance(52 * DAY);
        tokens = issued(&bed.refresh(refreshing(&tokens.refresh)).await);
    }
    // The last access token ends with the family.
    bed.advance(DAY - 60);
    let last = issued(&bed.refresh(refreshing(&tokens.refresh)).await);
    assert_eq!(last.expires_in, 60);
    bed.advance(60);
    assert_eq!(refused(&bed.refresh(refreshing(&last.refresh)).await), "invalid_grant");
    assert!(bed.identity(&last.access).await.is_none());
}

/// Everything that the tokens of a grant could be used for is refused.
async fn expect_dead(bed: &Bed, tokens: &Tokens) {
    assert!(bed.identity(&tokens.access).await.is_none());
    assert_eq!(refused(&bed.refresh(refreshing(&tokens.refresh)).await), "invalid_grant");
    for token in [&tokens.access, &tokens.refresh] {
        let token = token.clone();
        let found = bed.db().read(move |read| oauth::introspect(read, CLIENT, &token)).await.unwrap();
        assert_eq!(found, None);
    }
}

async fn grants(bed: &Bed) -> Vec<KeyId> {
    let workspace = bed.workspace;
    let found = bed.db().read(move |read| oauth::grants_of_workspace(read, workspace)).await.unwrap();
    found.into_iter().map(|grant| grant.key_id).collect()
}

#[testkit::both]
async fn revoking_a_grant_ends_codes_and_tokens(kind: Kind) {
    let bed = Bed::new(kind).await;
    let (tokens, code) = (bed.tokens("contacts:read").await, bed.code("contacts:read").await);
    let (workspace, key) = (bed.workspace, grants(&bed).await[0].clone());
    let revoke = |workspace| {
        let key = key.clone();
        bed.db().write(move |tx| oauth::revoke_grant(tx, workspace, &key, &Cause::system("test")))
    };
    assert!(revoke(model::WorkspaceId(workspace.0 + 1)).await.is_err(), "another workspace's");
    assert!(revoke(workspace).await.unwrap());
    assert!(!revoke(workspace).await.unwrap());
    expect_dead(&bed, &tokens).await;
    assert_eq!(refused(&bed.exchange(exchanging(&code)).await), "invalid_grant");
    assert!(grants(&bed).await.is_empty());
    let events = bed.events().await;
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["reason"], &events[0]["key_id"]), (&json!("revoked"), &json!(key)));
    assert_eq!(events[0]["authorization_ended"], json!(true));
    let target = key.to_string();
    let logged = bed.db().read(move |read| {
        let entries = audit_log::table.filter(audit_log::target.eq(target));
        Ok(entries
            .select((audit_log::action, audit_log::details))
            .load::<(String, String)>(read.connection())?)
    });
    let logged = logged.await.unwrap();
    assert_eq!((logged.len(), logged[0].0.as_str()), (1, "app.revoked"));
    assert!(logged[0].1.contains("\"test\""), "{logged:?}");

    // Authorized again, the app has a new grant, with nothing of the old one.
    let new = bed.tokens("tasks:read").await;
    let identity = bed.identity(&new.access).await.unwrap();
    assert_ne!(identity.key.key.id, key);
    assert_eq!(identity.key.key.scopes.to_string(), "tasks:read");
    expect_dead(&bed, &tokens).await;
}

#[testkit::both]
async fn the_end_of_an_app_ends_its_grants(kind: Kind) {
    let bed = Bed::new(kind).await;
    let tokens = bed.tokens("contacts:read").await;
    let end = || bed.db().write(|tx| oauth::revoke_grants_of_client(tx, CLIENT, &Cause::system("test")));
    assert_eq!((end().await.unwrap(), end().await.unwrap()), (1, 0));
    expect_dead(&bed, &tokens).await;
}

#[testkit::both]
async fn the_end_of_a_member_ends_what_it_authorized(kind: Kind) {
    let bed = Bed::new(kind).await;
    let (tokens, workspace) = (bed.tokens("contacts:read").await, bed.workspace);
    let ended =
        bed.db().write(move |tx| keys::revoke_of_member(tx, workspace, MemberId(1), &[KeyKind::Grant]));
    assert_eq!(ended.await.unwrap().len(), 1);
    expect_dead(&bed, &tokens).await;
}

#[testkit::both]
async fn a_disabled_account_authorizes_nothing(kind: Kind) {
    let bed = Bed::new(kind).await;
    let tokens = bed.tokens("contacts:read").await;
    let account = bed.account.clone();
    let disable = bed.db().write(move |tx| {
        let now = tx.now();
        diesel::update(people::table.find(&account))
            .set(people::disabled_at.eq(now))
            .execute(tx.connection())?;
        Ok(())
    });
    disable.await.unwrap();
    expect_dead(&bed, &tokens).await;
}

#[testkit::both]
async fn an_app_signs_out(kind: Kind) {
    let bed = Bed::new(kind).await;
    let (one, two) = (bed.tokens("contacts:read").await, bed.tokens("contacts:read").await);
    // Tokens of others, and what is no token, are ignored.
    bed.revoke("https://other.example/", &one.refresh).await;
    bed.revoke("https://other.example/", &one.access).await;
    bed.revoke(CLIENT, "svc_rt_").await;
    bed.revoke(CLIENT, "").await;
    assert!(bed.identity(&one.access).await.is_some());

    // An access token ends alone.
    bed.revoke(CLIENT, &one.access).await;
    assert!(bed.identity(&one.access).await.is_none());
    let one = issued(&bed.refresh(refreshing(&one.refresh)).await);

    // A refresh token ends with its family, and the last family with the grant.
    bed.revoke(CLIENT, &one.refresh).await;
    expect_dead(&bed, &one).await;
    assert!(bed.identity(&two.access).await.is_some());
    // Events of one millisecond have no order.
    bed.advance(1);
    let successor = issued(&bed.refresh(refreshing(&two.refresh)).await);
    bed.revoke(CLIENT, &two.refresh).await;
    expect_dead(&bed, &successor).await;
    assert!(grants(&bed).await.is_empty());
    let told: Vec<_> = bed.events().await.iter().map(|event| event["authorization_ended"].clone()).collect();
    assert_eq!(told, [json!(false), json!(true)]);
}

#[testkit::both]
async fn a_client_introspects_its_own_tokens(kind: Kind) {
    let bed = Bed::new(kind).await;
    let tokens = bed.tokens("contacts:read").await;
    let introspect = async |db: &Db, client: &'static str, token: &str| {
        let token = token.to_owned();
        db.read(move |read| oauth::introspect(read, client, &token)).await.unwrap()
    };
    let access = introspect(bed.db(), CLIENT, &tokens.access).await.unwrap();
    assert_eq!((access.kind, access.scopes.to_string().as_str()), (TokenKind::Access, "contacts:read"));
    assert_eq!(access.expires_at, access.issued_at.plus_seconds(3600));
    let refresh = introspect(bed.db(), CLIENT, &tokens.refresh).await.unwrap();
    assert_eq!((refresh.kind, refresh.workspace), (TokenKind::Refresh, bed.workspace));
    assert_eq!(introspect(bed.db(), "https://other.example/", &tokens.access).await, None);
    issued(&bed.refresh(refreshing(&tokens.refresh)).await);
    assert_eq!(introspect(bed.db(), CLIENT, &tokens.refresh).await, None, "it was used");
    assert!(introspect(bed.db(), CLIENT, &tokens.access).await.is_some());
}

#[testkit::both]
async fn a_warm_token_needs_no_query_and_ends_within_ten_seconds(kind: Kind) {
    let bed = Bed::new(kind).await;
    let tokens = bed.tokens("contacts:read").await;
    let directory = Arc::new(Directory::new(bed.other.clone()));
    let replica = AccessTokens::new(bed.other.clone(), directory);
    let hash = AccessTokens::parse(&tokens.access).unwrap();
    assert!(!replica.was_token(hash));
    let ask = async || {
        let now = bed.other.now();
        let found = replica.identify(hash, Audience::Rest, now).await.unwrap();
        found.is_some_and(|found| found.key.check_usable(now).is_ok())
    };
    assert!(ask().await);
    let before = bed.other.stats().reads;
    for _ in 0..100 {
        assert!(ask().await);
    }
    assert_eq!(bed.other.stats().reads, before);
    assert!(replica.was_token(hash));

    bed.revoke(CLIENT, &tokens.access).await;
    bed.advance(10);
    assert!(!ask().await);
    // Another token of the same family, and then its grant.
    let next = issued(&bed.refresh(refreshing(&tokens.refresh)).await);
    let hash = AccessTokens::parse(&next.access).unwrap();
    let ask = async || {
        let now = bed.other.now();
        let found = replica.identify(hash, Audience::Rest, now).await.unwrap();
        found.is_some_and(|found| found.key.check_usable(now).is_ok())
    };
    assert!(ask().await);
    bed.revoke(CLIENT, &next.refresh).await;
    bed.advance(10);
    assert!(!ask().await);
}

#[testkit::both]
async fn a_refresh_that_is_not_committed_changes_nothing(kind: Kind) {
    let bed = Bed::new(kind).await;
    let tokens = bed.tokens("contacts:read").await;
    let (seal, request) = (bed.seal.clone(), refreshing(&tokens.refresh));
    let crashed = bed.db().write(move |tx| {
        oauth::refresh(tx, &seal, &request)?;
        Err::<(), _>(Error::internal("the process dies"))
    });
    crashed.await.unwrap_err();
    bed.advance(300);
    issued(&bed.refresh(refreshing(&tokens.refresh)).await);
}
