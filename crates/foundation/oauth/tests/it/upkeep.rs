//! The purge of rows, and the rotation of the service's key.

use crate::bed::{Bed, CLIENT, exchanging, issued, refreshing, refused};
use auth::{SecretKey, reseal};
use diesel::prelude::*;
use jobs::Runner;
use oauth::schema::{oauth_access_tokens, oauth_codes, oauth_families, oauth_used_refresh_tokens as used};
use testkit::Kind;

/// Rows of codes, families, used refresh tokens, answers and access tokens.
async fn rows(bed: &Bed) -> [i64; 5] {
    let count = bed.db().read(|read| {
        let connection = read.connection();
        Ok([
            oauth_codes::table.count().get_result(connection)?,
            oauth_families::table.count().get_result(connection)?,
            used::table.count().get_result(connection)?,
            used::table.filter(used::answer.is_not_null()).count().get_result(connection)?,
            oauth_access_tokens::table.count().get_result(connection)?,
        ])
    });
    count.await.unwrap()
}

async fn purge(bed: &Bed) {
    Runner::new(bed.db().clone()).with(oauth::jobs()).run_due().await.unwrap();
}

#[testkit::both]
async fn rows_are_deleted_after_their_time(kind: Kind) {
    let bed = Bed::new(kind).await;
    purge(&bed).await;
    let tokens = bed.tokens("contacts:read").await;
    let next = issued(&bed.refresh(refreshing(&tokens.refresh)).await);
    let over = bed.tokens("contacts:read").await;
    bed.revoke(CLIENT, &over.refresh).await;
    bed.code("contacts:read").await;
    assert_eq!(rows(&bed).await, [3, 2, 1, 1, 3]);
    bed.advance(601);
    purge(&bed).await;
    assert_eq!(rows(&bed).await, [3, 2, 1, 0, 3], "no answer can be asked for again");
    bed.advance(3600);
    purge(&bed).await;
    assert_eq!(rows(&bed).await, [3, 2, 1, 0, 0]);
    bed.advance(24 * 3600);
    purge(&bed).await;
    assert_eq!(rows(&bed).await, [0, 1, 1, 0, 0], "the family that ended is gone");
    let next = issued(&bed.refresh(refreshing(&next.refresh)).await);
    bed.advance(59 * 24 * 3600);
    purge(&bed).await;
    // The first token is forgotten after the time for which a token can be idle. The family lives on.
    assert_eq!(rows(&bed).await, [0, 1, 1, 0, 0]);
    assert_eq!(refused(&bed.refresh(refreshing(&tokens.refresh)).await), "invalid_grant");
    issued(&bed.refresh(refreshing(&next.refresh)).await);
    bed.advance(60 * 24 * 3600);
    purge(&bed).await;
    assert_eq!(rows(&bed).await, [0; 5]);
}

#[testkit::both]
async fn answers_are_sealed_and_follow_the_key(kind: Kind) {
    let bed = Bed::new(kind).await;
    let tokens = bed.tokens("contacts:read").await;
    let answer = bed.refresh(refreshing(&tokens.refresh)).await;
    let secret = issued(&answer);
    let stored = bed.db().read(|read| {
        Ok(used::table.select(used::answer.assume_not_null()).first::<String>(read.connection())?)
    });
    let stored = stored.await.unwrap();
    testkit::assert_absent(&stored, &secret.access);
    testkit::assert_absent(&stored, &secret.refresh);

    let key = |byte| SecretKey::new(&[byte; 32]).unwrap();
    bed.seal.set_keys(key(8), Some(key(7)));
    let piece = reseal::reseal_table(bed.db(), &bed.seal, oauth::SEALED[0]).await.unwrap();
    assert_eq!((piece.resealed, piece.unreadable), (1, 0));
    bed.seal.set_keys(key(8), None);
    assert_eq!(bed.refresh(refreshing(&tokens.refresh)).await, answer);
}

#[testkit::both]
async fn no_secret_is_stored(kind: Kind) {
    let bed = Bed::new(kind).await;
    let code = bed.code("contacts:read").await;
    let tokens = issued(&bed.exchange(exchanging(&code)).await);
    issued(&bed.refresh(refreshing(&tokens.refresh)).await);
    let hashes = bed.db().read(|read| {
        let connection = read.connection();
        let mut all: Vec<Vec<u8>> = oauth_codes::table.select(oauth_codes::code_hash).load(connection)?;
        all.extend(used::table.select(used::refresh_hash).load::<Vec<u8>>(connection)?);
        all.extend(
            oauth_access_tokens::table.select(oauth_access_tokens::token_hash).load::<Vec<u8>>(connection)?,
        );
        Ok(all)
    });
    let hashes = hashes.await.unwrap();
    assert_eq!(hashes.len(), 4);
    assert!(hashes.iter().all(|hash| hash.len() == 32));
}
