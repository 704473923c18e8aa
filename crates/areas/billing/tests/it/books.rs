//! The nightly check: what is wrong is found.

use crate::bed::Bed;
use auth::keys::{self, NewKey};
use auth::partners;
use billing::ledger::{check_all, check_invariants};
use diesel::prelude::*;
use model::{Env, KeyOwner, Scope};
use testkit::Kind;

async fn sql(bed: &Bed, statement: &'static str) {
    let done = bed.write(move |tx| Ok(diesel::sql_query(statement).execute(tx.connection())?)).await;
    assert!(done.unwrap() > 0, "{statement}");
}

#[testkit::both]
async fn wrong_books_are_found(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let key = bed.key(Some(1_000), true).await;
    let (done, failed, open) = (bed.run(&key), bed.run(&key), bed.run(&key));
    for run in [&done, &failed, &open] {
        bed.hold(run, 100, 1).await.unwrap();
        bed.settle(run, 0, 10).await;
    }
    bed.close(&done, 1, 20).await;
    bed.fail(&failed, 1, 20).await;
    bed.other_workspace().await;
    assert_eq!(check_all(bed.db()).await.unwrap(), 0);
    // Each is put right again by the next.
    for (wrong, right, sentence) in [
        (
            "UPDATE key_months SET spent_micros = spent_micros + 1",
            "UPDATE key_months SET spent_micros = spent_micros - 1",
            "months",
        ),
        (
            "UPDATE key_months SET reserved_micros = reserved_micros + 1",
            "UPDATE key_months SET reserved_micros = reserved_micros - 1",
            "months",
        ),
        (
            "UPDATE energy_entries SET usd_micros = usd_micros - 1 WHERE kind = 'refund'",
            "UPDATE energy_entries SET usd_micros = usd_micros + 1 WHERE kind = 'refund'",
            "months",
        ),
        ("UPDATE key_months SET month = '2025-12'", "UPDATE key_months SET month = '2026-01'", "months"),
        (
            "UPDATE energy_accounts SET reserved = reserved + 1 WHERE balance > 0",
            "UPDATE energy_accounts SET reserved = reserved - 1 WHERE balance > 0",
            "holds",
        ),
        (
            "UPDATE grant_burns SET amount = amount + 1 WHERE amount = 20",
            "UPDATE grant_burns SET amount = amount - 1 WHERE amount = 21",
            "grants that differ",
        ),
    ] {
        sql(&bed, wrong).await;
        assert!(check_all(bed.db()).await.unwrap() > 0, "{wrong}");
        let workspace = bed.workspace;
        let found = bed.db().read(move |read| check_invariants(read, workspace)).await.unwrap();
        assert!(found.iter().any(|finding| finding.contains(sentence)), "{wrong}: {found:?}");
        sql(&bed, right).await;
        bed.check().await;
    }
}

#[testkit::both]
async fn the_money_of_partners_is_checked_over_all_their_clients(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let (workspace, other) = (bed.workspace, bed.other_workspace().await);
    let stored = bed
        .write(move |tx| {
            let partner = partners::create(tx, "Agency")?;
            let new = NewKey {
                owner: KeyOwner::Partner(partner.id),
                ..NewKey::of_workspace("Partner", workspace, Env::Live, vec![Scope::RunsExecute])
            };
            Ok(keys::create(tx, new)?.0)
        })
        .await
        .unwrap();
    bed.write(move |tx| {
        let new = billing::ledger::NewGrant::new(billing::ledger::GrantKind::Promo, 100);
        billing::ledger::grant(tx, other, &new)
    })
    .await
    .unwrap();
    for place in [workspace, other] {
        let mut run = bed.run_of(stored.key.clone());
        std::sync::Arc::make_mut(&mut run.caller.workspace).id = place;
        bed.hold(&run, 10, 10).await.unwrap();
        bed.close(&run, 0, 10).await;
    }
    assert_eq!(check_all(bed.db()).await.unwrap(), 0);
    sql(&bed, "UPDATE key_months SET spent_micros = spent_micros - 10000").await;
    assert_eq!(check_all(bed.db()).await.unwrap(), 1);
}
