//! Grants: how Energy comes, burns, ends and is taken back.

use crate::bed::{Bed, refused};
use billing::ledger::{
    GrantKind, GrantSource, NewGrant, adjust, grant, sweep_expired_grants, sweep_pending_grants, void_grant,
};
use billing::schema::{energy_entries, energy_grants};
use chrono::Duration;
use diesel::prelude::*;
use model::{Code, GrantId, WorkspaceId};
use testkit::Kind;

async fn remaining(bed: &Bed, id: &GrantId) -> i64 {
    let id = id.clone();
    let query = energy_grants::table.find(id).select(energy_grants::remaining);
    bed.db().read(move |read| Ok(query.first(read.connection())?)).await.unwrap()
}

async fn spend(bed: &Bed, energy: i64) {
    let run = bed.run(&bed.key(None, false).await);
    bed.hold(&run, energy, energy).await.unwrap();
    bed.close(&run, 0, energy).await;
}

#[testkit::both]
async fn grants_burn_in_order(kind: Kind) {
    let bed = Bed::new(kind).await;
    let now = bed.db().clock().now();
    let new = |amount, priority, days: Option<i64>| NewGrant {
        priority,
        expires_at: days.map(|days| now.plus(Duration::days(days))),
        ..NewGrant::new(GrantKind::Promo, amount)
    };
    // In the order in which they should burn, made in another.
    let mut ids = vec![None; 5];
    for (place, amount, priority, days) in
        [(3, 10, 50, None), (1, 10, 20, Some(9)), (4, 10, 50, None), (0, 10, 20, Some(3)), (2, 10, 20, None)]
    {
        ids[place] = Some(bed.give(new(amount, priority, days)).await.unwrap());
        bed.test.clock.advance(Duration::milliseconds(1));
    }
    let ids: Vec<GrantId> = ids.into_iter().flatten().collect();
    for (energy, expected) in [(4, [6, 10, 10, 10, 10]), (6, [0, 10, 10, 10, 10]), (25, [0, 0, 0, 5, 10])] {
        spend(&bed, energy).await;
        let mut left = Vec::new();
        for id in &ids {
            left.push(remaining(&bed, id).await);
        }
        assert_eq!(left, expected);
        bed.check().await;
    }
}

#[testkit::both]
async fn many_small_grants_are_burnt_together(kind: Kind) {
    let bed = Bed::new(kind).await;
    for _ in 0..45 {
        bed.give(NewGrant::new(GrantKind::Promo, 2)).await.unwrap();
    }
    spend(&bed, 89).await;
    bed.expect(1, 0).await;
    let run = bed.run(&bed.key(None, false).await);
    bed.hold(&run, 1, 1).await.unwrap();
    bed.fail(&run, 0, 1).await;
    bed.expect(1, 0).await;
}

#[testkit::both]
async fn a_recharge_ends_depletion(kind: Kind) {
    let bed = Bed::new(kind).await;
    let state = async || bed.account().await.2;
    assert_eq!(state().await, "depleted");
    assert_eq!(refused(bed.hold(&bed.run(&bed.key(None, false).await), 1, 1).await), Code::EnergyDepleted);
    bed.give(NewGrant::new(GrantKind::Purchase, 100)).await.unwrap();
    assert_eq!(state().await, "ok");
    spend(&bed, 90).await;
    assert_eq!(state().await, "ok");
    spend(&bed, 1).await;
    assert_eq!(state().await, "low");
    // A correction is no recharge: what is low is measured by what was bought or came with the plan.
    bed.give(NewGrant::new(GrantKind::Adjustment, 1)).await.unwrap();
    assert_eq!(state().await, "ok");
    spend(&bed, 10).await;
    assert_eq!(state().await, "depleted");
    // Neither is a gift.
    bed.give(NewGrant::new(GrantKind::Promo, 9)).await.unwrap();
    assert_eq!(state().await, "low");
    bed.give(NewGrant::new(GrantKind::Plan, 5)).await.unwrap();
    assert_eq!(state().await, "ok");
    bed.expect(14, 0).await;
    // What waits for Energy hears of it.
    let told = bed.events_of("billing.recharged").await;
    let shown: Vec<_> =
        told.iter().map(|data| (&data["source"], &data["energy"], &data["available"])).collect();
    let number = serde_json::Value::from;
    assert_eq!(
        shown,
        [(&"purchase".into(), &number(100), &number(100)), (&"plan".into(), &number(5), &number(14))]
    );
}

#[testkit::both]
async fn the_same_cause_is_granted_once(kind: Kind) {
    let bed = Bed::new(kind).await;
    let source = GrantSource { kind: "recharge", id: "rch_1".into() };
    let new = NewGrant { source: Some(source), ..NewGrant::new(GrantKind::Purchase, 100) };
    let first = bed.give(new.clone()).await.unwrap();
    assert_eq!(bed.give(new.clone()).await.unwrap(), first);
    bed.expect(100, 0).await;
    let other = bed.other_workspace().await;
    let error = bed.write(move |tx| grant(tx, other, &new)).await;
    assert_eq!(refused(error), Code::DuplicateValue);
}

#[testkit::both]
async fn a_purchase_costs_the_plans_price(kind: Kind) {
    let bed = Bed::new(kind).await;
    bed.give(NewGrant::new(GrantKind::Purchase, 2_500)).await.unwrap();
    bed.give(NewGrant::new(GrantKind::Promo, 2_500)).await.unwrap();
    let micros: Vec<i64> = bed
        .db()
        .read(|read| {
            Ok(energy_entries::table
                .order(energy_entries::usd_micros.asc())
                .select(energy_entries::usd_micros)
                .load(read.connection())?)
        })
        .await
        .unwrap();
    assert_eq!(micros, [0, 2_500_000]);
}

#[testkit::both]
async fn grants_that_cannot_be_are_refused(kind: Kind) {
    let bed = Bed::new(kind).await;
    let now = bed.db().clock().now();
    let base = || NewGrant::new(GrantKind::Purchase, 10);
    let most = 1_000_000_000_000_000;
    for (new, param) in [
        (NewGrant { amount: 0, ..base() }, "amount"),
        (NewGrant { amount: -1, ..base() }, "amount"),
        (NewGrant { amount: i64::MAX, ..base() }, "amount"),
        (NewGrant { amount: most, usd_micros_per_1000: Some(4_000_001), ..base() }, "amount"),
        (NewGrant { priority: 101, ..base() }, "priority"),
        (NewGrant { priority: -1, ..base() }, "priority"),
        (NewGrant { usd_micros_per_1000: Some(-1), ..base() }, "usd_micros_per_1000"),
        (NewGrant { expires_at: Some(now), ..base() }, "expires_at"),
        (NewGrant { note: Some("x".repeat(501)), ..base() }, "note"),
    ] {
        let error = bed.give(new).await.unwrap_err();
        assert_eq!((error.code(), error.param_name()), (Code::ValidationError, Some(param)));
    }
    bed.give(NewGrant { amount: most, ..base() }).await.unwrap();
    let error = bed.give(NewGrant { amount: 1, ..base() }).await.unwrap_err();
    assert_eq!(error.param_name(), Some("amount"));
    bed.expect(most, 0).await;
    let nowhere = bed.write(|tx| grant(tx, WorkspaceId(404), &NewGrant::new(GrantKind::Promo, 1))).await;
    assert_eq!(refused(nowhere), Code::WorkspaceNotFound);
}

#[testkit::both]
async fn expired_energy_cannot_be_held(kind: Kind) {
    let bed = Bed::new(kind).await;
    let end = bed.db().clock().now().plus(Duration::hours(1));
    bed.give(NewGrant { expires_at: Some(end), ..NewGrant::new(GrantKind::Promo, 100) }).await.unwrap();
    bed.give(NewGrant::new(GrantKind::Purchase, 50)).await.unwrap();
    let key = bed.key(None, false).await;
    let early = bed.run(&key);
    bed.hold(&early, 30, 1).await.unwrap();
    bed.test.clock.advance(Duration::hours(1));
    // Nobody has swept yet, and still only what was bought may be taken; the running work's 30 are safe.
    assert_eq!(bed.hold(&bed.run(&key), 500, 1).await.unwrap_or(0), 20);
    bed.expect(50, 50).await;
    bed.settle(&early, 0, 20).await;
    bed.close(&early, 1, 0).await;
    bed.expect(30, 20).await;
    assert_eq!(bed.write(sweep_expired_grants).await.unwrap(), 0);
    let entries = bed.entries().await;
    assert_eq!(
        entries,
        [("debit".into(), -20), ("expire".into(), -100), ("grant".into(), 50), ("grant".into(), 100),]
    );
}

#[testkit::both]
async fn energy_held_before_its_end_may_be_used(kind: Kind) {
    let bed = Bed::new(kind).await;
    let end = bed.db().clock().now().plus(Duration::hours(1));
    bed.give(NewGrant { expires_at: Some(end), ..NewGrant::new(GrantKind::Promo, 100) }).await.unwrap();
    let run = bed.run(&bed.key(None, false).await);
    bed.hold(&run, 30, 1).await.unwrap();
    bed.test.clock.advance(Duration::hours(1));
    assert_eq!(bed.write(sweep_expired_grants).await.unwrap(), 1);
    bed.expect(30, 30).await;
    assert_eq!(bed.write(sweep_expired_grants).await.unwrap(), 0);
    bed.settle(&run, 0, 20).await;
    bed.close(&run, 1, 0).await;
    bed.expect(10, 0).await;
    assert_eq!(bed.write(sweep_expired_grants).await.unwrap(), 1);
    bed.expect(0, 0).await;
    let entries = bed.entries().await;
    assert_eq!(
        entries,
        [("debit".into(), -20), ("expire".into(), -70), ("expire".into(), -10), ("grant".into(), 100),]
    );
}

#[testkit::both]
async fn adjustments_give_and_take(kind: Kind) {
    let bed = Bed::new(kind).await;
    let workspace = bed.workspace;
    let adjust = async |amount| bed.write(move |tx| adjust(tx, workspace, amount)).await;
    let end = bed.db().clock().now().plus(Duration::hours(1));
    bed.give(NewGrant { expires_at: Some(end), ..NewGrant::new(GrantKind::Promo, 30) }).await.unwrap();
    // More lots than are looked at together.
    for _ in 0..24 {
        bed.test.clock.advance(Duration::milliseconds(1));
        bed.give(NewGrant::new(GrantKind::Purchase, 10)).await.unwrap();
    }
    let given = adjust(7).await.unwrap().expect("a grant");
    bed.expect(277, 0).await;
    let run = bed.run(&bed.key(None, false).await);
    bed.hold(&run, 20, 20).await.unwrap();
    // In the order in which grants burn: the gift, the correction, and 218 of what was bought.
    assert_eq!(adjust(-255).await.unwrap(), None);
    assert_eq!(remaining(&bed, &given).await, 0);
    bed.expect(22, 20).await;
    let error = adjust(-3).await.unwrap_err();
    assert_eq!((error.code(), error.param_name()), (Code::ValidationError, Some("amount")));
    for amount in [0, i64::MIN, i64::MAX] {
        assert_eq!(refused(adjust(amount).await), Code::ValidationError, "{amount}");
    }
    adjust(-2).await.unwrap();
    assert_eq!(bed.account().await.2, "depleted");
    bed.close(&run, 0, 20).await;
    bed.expect(0, 0).await;
    let adjusted: Vec<(i64, i64, String)> = bed
        .db()
        .read(|read| {
            Ok(energy_entries::table
                .filter(energy_entries::kind.eq("adjust"))
                .order(energy_entries::amount.asc())
                .select((energy_entries::amount, energy_entries::usd_micros, energy_entries::operation))
                .load(read.connection())?)
        })
        .await
        .unwrap();
    let word = "adjustment".to_owned();
    assert_eq!(
        adjusted,
        [(-255, -218_000, word.clone()), (-2, -2_000, word.clone()), (7, 0, word)],
        "what was bought is worth what it cost"
    );
    let nowhere = bed.write(|tx| billing::ledger::adjust(tx, WorkspaceId(404), -1)).await;
    assert_eq!(refused(nowhere), Code::WorkspaceNotFound);
}

#[testkit::both]
async fn an_adjustment_takes_nothing_that_has_ended(kind: Kind) {
    let bed = Bed::new(kind).await;
    let workspace = bed.workspace;
    let end = bed.db().clock().now().plus(Duration::hours(1));
    bed.give(NewGrant { expires_at: Some(end), ..NewGrant::new(GrantKind::Promo, 30) }).await.unwrap();
    bed.give(NewGrant::new(GrantKind::Purchase, 10)).await.unwrap();
    bed.test.clock.advance(Duration::hours(1));
    let error = bed.write(move |tx| adjust(tx, workspace, -11)).await;
    assert_eq!(refused(error), Code::ValidationError);
    bed.write(move |tx| adjust(tx, workspace, -10)).await.unwrap();
    bed.expect(0, 0).await;
}

#[testkit::both]
async fn a_pending_grant_is_given_when_its_time_comes(kind: Kind) {
    let bed = Bed::new(kind).await;
    let now = bed.db().clock().now();
    let later = |minutes| Some(now.plus(Duration::minutes(minutes)));
    let new = NewGrant { effective_at: later(10), ..NewGrant::new(GrantKind::Purchase, 100) };
    let id = bed.give(new.clone()).await.unwrap();
    let voided = bed.give(new.clone()).await.unwrap();
    let workspace = bed.workspace;
    assert_eq!(bed.write(move |tx| void_grant(tx, workspace, &voided)).await.unwrap(), 0);
    bed.test.clock.advance(Duration::minutes(10) - Duration::milliseconds(1));
    assert_eq!(bed.write(sweep_pending_grants).await.unwrap(), 0);
    bed.expect(0, 0).await;
    assert_eq!(refused(bed.hold(&bed.run(&bed.key(None, false).await), 1, 1).await), Code::EnergyDepleted);
    bed.test.clock.advance(Duration::milliseconds(1));
    assert_eq!(bed.write(sweep_pending_grants).await.unwrap(), 1);
    assert_eq!(bed.write(sweep_pending_grants).await.unwrap(), 0);
    bed.expect(100, 0).await;
    assert_eq!((remaining(&bed, &id).await, bed.account().await.2), (100, "ok".to_owned()));
    spend(&bed, 60).await;
    bed.expect(40, 0).await;
    // What is given later cannot end before, and has no cause that could come twice.
    let source = GrantSource { kind: "recharge", id: "rch_1".into() };
    for (new, param) in [
        (NewGrant { effective_at: later(30), expires_at: later(30), ..new.clone() }, "expires_at"),
        (NewGrant { effective_at: later(30), source: Some(source), ..new.clone() }, "effective_at"),
    ] {
        assert_eq!(bed.give(new).await.unwrap_err().param_name(), Some(param));
    }
    // A time that has passed is now.
    bed.give(NewGrant { effective_at: later(1), ..new }).await.unwrap();
    bed.expect(140, 0).await;
}

#[testkit::both]
async fn voiding_takes_what_no_work_holds(kind: Kind) {
    let bed = Bed::new(kind).await;
    let id = bed.give(NewGrant::new(GrantKind::Promo, 100)).await.unwrap();
    let run = bed.run(&bed.key(None, false).await);
    bed.hold(&run, 40, 1).await.unwrap();
    let (workspace, wanted) = (bed.workspace, id.clone());
    let void = async || {
        let wanted = wanted.clone();
        bed.write(move |tx| void_grant(tx, workspace, &wanted)).await.unwrap()
    };
    assert_eq!(void().await, 60);
    bed.expect(40, 40).await;
    assert_eq!(void().await, 0);
    bed.settle(&run, 0, 10).await;
    bed.close(&run, 1, 0).await;
    bed.expect(30, 0).await;
    // What was set free belongs to nobody any more.
    assert_eq!(refused(bed.hold(&bed.run(&bed.key(None, false).await), 1, 1).await), Code::EnergyDepleted);
    assert_eq!(void().await, 30);
    bed.expect(0, 0).await;
    let (other, wanted) = (bed.other_workspace().await, id.clone());
    let error = bed.write(move |tx| void_grant(tx, other, &wanted)).await;
    assert_eq!(refused(error), Code::NotFound);
}

#[testkit::both]
async fn a_refund_to_an_ended_grant_ends_too(kind: Kind) {
    let bed = Bed::new(kind).await;
    let end = bed.db().clock().now().plus(Duration::minutes(5));
    let new = NewGrant { expires_at: Some(end), ..NewGrant::new(GrantKind::Promo, 100) };
    let id = bed.give(new).await.unwrap();
    let run = bed.run(&bed.key(None, false).await);
    bed.hold(&run, 100, 1).await.unwrap();
    bed.settle(&run, 0, 70).await;
    bed.test.clock.advance(Duration::minutes(5));
    bed.write(sweep_expired_grants).await.unwrap();
    bed.expect(30, 30).await;
    bed.fail(&run, 1, 0).await;
    bed.expect(100, 0).await;
    assert_eq!(remaining(&bed, &id).await, 100);
    bed.write(sweep_expired_grants).await.unwrap();
    bed.expect(0, 0).await;
}
