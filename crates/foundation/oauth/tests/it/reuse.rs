//! Tokens and codes that are used twice.

use crate::bed::{Bed, exchanging, issued, refreshing, refused};
use oauth::{Refresh, TokenReply};
use serde_json::json;
use std::time::Duration;
use testkit::Kind;

#[testkit::both]
async fn a_lost_answer_is_given_again(kind: Kind) {
    let bed = Bed::new(kind).await;
    let tokens = bed.tokens("contacts:read").await;
    let lost = bed.refresh(refreshing(&tokens.refresh)).await;
    bed.advance(29);
    // Byte for byte, by any replica, whatever else the client asks for now.
    let narrower = Refresh { scope: Some("contacts:read".into()), ..refreshing(&tokens.refresh) };
    assert_eq!(bed.refresh_at(&bed.other, refreshing(&tokens.refresh)).await, lost);
    assert_eq!(bed.refresh(narrower).await, lost);
    // Another client gets nothing, and ends nothing.
    let other = Refresh { client_id: "https://other.example/".into(), ..refreshing(&tokens.refresh) };
    assert_eq!(refused(&bed.refresh(other).await), "invalid_grant");
    let successor = issued(&lost);
    issued(&bed.refresh(refreshing(&successor.refresh)).await);
    assert!(bed.events().await.is_empty());
}

#[testkit::both]
async fn later_reuse_ends_the_family_and_no_other(kind: Kind) {
    let bed = Bed::new(kind).await;
    let (stolen, other) = (bed.tokens("contacts:read").await, bed.tokens("contacts:read").await);
    let successor = issued(&bed.refresh(refreshing(&stolen.refresh)).await);
    bed.advance(30);
    assert_eq!(refused(&bed.refresh(refreshing(&stolen.refresh)).await), "invalid_grant");
    assert_eq!(refused(&bed.refresh(refreshing(&successor.refresh)).await), "invalid_grant");
    assert!(bed.identity(&stolen.access).await.is_none());
    assert!(bed.identity(&successor.access).await.is_none());
    assert!(bed.identity(&other.access).await.is_some());
    let events = bed.events().await;
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["reason"], "refresh_token_reused");
    assert_eq!(events[0]["authorization_ended"], json!(false));
    assert_eq!(events[0]["name"], "Assistant");
    // It is told once.
    assert_eq!(refused(&bed.refresh(refreshing(&stolen.refresh)).await), "invalid_grant");
    assert_eq!(bed.events().await.len(), 1);
    issued(&bed.refresh(refreshing(&other.refresh)).await);
}

#[testkit::both]
async fn two_replicas_refresh_the_same_token(kind: Kind) {
    let bed = Bed::new(kind).await;
    let mut tokens = bed.tokens("contacts:read").await;
    for pause in [0, 0, 1, 5, 13] {
        let later = async {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            bed.refresh_at(&bed.other, refreshing(&tokens.refresh)).await
        };
        let (one, two) = tokio::join!(bed.refresh(refreshing(&tokens.refresh)), later);
        assert_eq!(one, two);
        tokens = issued(&one);
    }
    assert!(bed.identity(&tokens.access).await.is_some());
    assert!(bed.events().await.is_empty());
}

#[testkit::both]
async fn of_two_exchanges_of_one_code_the_second_ends_the_family(kind: Kind) {
    let bed = Bed::new(kind).await;
    for _ in 0..3 {
        let before = bed.events().await.len();
        let code = bed.code("contacts:read").await;
        let (one, two) =
            tokio::join!(bed.exchange(exchanging(&code)), bed.exchange_at(&bed.other, exchanging(&code)));
        let (won, lost) = match &one {
            TokenReply::Issued(_) => (one, two),
            TokenReply::Refused(_) => (two, one),
        };
        assert_eq!(refused(&lost), "invalid_grant");
        let tokens = issued(&won);
        assert!(bed.identity(&tokens.access).await.is_none());
        assert_eq!(refused(&bed.refresh(refreshing(&tokens.refresh)).await), "invalid_grant");
        let events = bed.events().await;
        assert_eq!(events.len(), before + 1);
        assert_eq!(events[before]["reason"], "code_reused");
    }
}

#[testkit::both]
async fn a_code_ends_its_family_after_its_minute_too(kind: Kind) {
    let bed = Bed::new(kind).await;
    let code = bed.code("contacts:read").await;
    let tokens = issued(&bed.exchange(exchanging(&code)).await);
    bed.advance(3000);
    assert_eq!(refused(&bed.exchange(exchanging(&code)).await), "invalid_grant");
    assert!(bed.identity(&tokens.access).await.is_none());
}

#[testkit::both]
async fn parallel_authorizations_share_one_grant(kind: Kind) {
    let bed = Bed::new(kind).await;
    let (one, two) = tokio::join!(bed.code("contacts:read"), bed.code("tasks:read"));
    let (one, two) = (bed.exchange(exchanging(&one)).await, bed.exchange(exchanging(&two)).await);
    let one = bed.identity(&issued(&one).access).await.unwrap();
    let two = bed.identity(&issued(&two).access).await.unwrap();
    assert_eq!(one.key.key.id, two.key.key.id);
    assert_eq!(one.key.key.scopes.to_string(), "contacts:read,tasks:read");
}
