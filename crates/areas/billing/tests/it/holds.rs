//! Holding and settling.

use crate::bed::{Bed, RECHARGE, refused};
use billing::ledger::{check_invariants, sweep_expired_holds};
use billing::schema::{energy_entries, executions};
use chrono::Duration;
use diesel::prelude::*;
use model::Code;
use testkit::Kind;

#[testkit::both]
async fn a_run_holds_uses_and_gives_back(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let run = bed.run(&bed.key(None, false).await);
    assert_eq!(bed.hold(&run, 300, 10).await.unwrap(), 300);
    bed.expect(1_000, 300).await;
    bed.settle(&run, 0, 120).await;
    bed.expect(880, 180).await;
    // The next step needs more than what is left: only the difference is taken.
    assert_eq!(bed.hold(&run, 500, 10).await.unwrap(), 500);
    bed.expect(880, 500).await;
    // Less than what is left takes nothing.
    assert_eq!(bed.hold(&run, 200, 10).await.unwrap(), 200);
    bed.expect(880, 500).await;
    bed.close(&run, 1, 80).await;
    bed.expect(800, 0).await;
    assert_eq!(refused(bed.hold(&run, 1, 1).await), Code::InvalidState);
}

#[testkit::both]
async fn a_hold_takes_what_is_there_but_not_less_than_the_least(kind: Kind) {
    let bed = Bed::with_energy(kind, 100).await;
    let key = bed.key(None, false).await;
    let (first, second) = (bed.run(&key), bed.run(&key));
    assert_eq!(bed.hold(&first, 80, 10).await.unwrap(), 80);
    assert_eq!(bed.hold(&second, 80, 10).await.unwrap(), 20);
    bed.expect(100, 100).await;
    let error = bed.hold(&bed.run(&key), 80, 1).await.unwrap_err();
    assert_eq!(error.code(), Code::EnergyDepleted);
    assert_eq!(error.body()["recharge_url"], RECHARGE);
    // What the run has unused counts for its least.
    assert_eq!(bed.hold(&second, 80, 15).await.unwrap(), 20);
    assert_eq!(refused(bed.hold(&second, 80, 21).await), Code::EnergyDepleted);
    bed.expect(100, 100).await;
    // Free runs need nothing.
    assert_eq!(bed.hold(&bed.run(&key), 0, 0).await.unwrap(), 0);
    bed.close(&first, 0, 80).await;
    bed.close(&second, 0, 20).await;
    bed.expect(0, 0).await;
    assert_eq!(bed.account().await.2, "depleted");
}

#[testkit::both]
async fn settling_again_changes_nothing(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let key = bed.key(None, false).await;
    let run = bed.run(&key);
    bed.hold(&run, 100, 1).await.unwrap();
    for _ in 0..3 {
        bed.settle(&run, 0, 30).await;
        bed.expect(970, 70).await;
    }
    // The step was settled, the run not closed: now it is.
    for _ in 0..3 {
        bed.close(&run, 0, 30).await;
        bed.expect(970, 0).await;
    }
    // A closed run is not refunded afterwards.
    bed.fail(&run, 0, 30).await;
    bed.expect(970, 0).await;
    assert_eq!(bed.month(&key).await, (30_000, 0));
    assert_eq!(bed.entries().await, [("debit".into(), -30), ("grant".into(), 1_000)]);
    let count: i64 =
        bed.db().read(|read| Ok(executions::table.count().get_result(read.connection())?)).await.unwrap();
    assert_eq!(count, 1);
}

#[testkit::both]
async fn a_failed_run_gets_everything_back(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let key = bed.key(None, false).await;
    let run = bed.run(&key);
    bed.hold(&run, 100, 1).await.unwrap();
    bed.settle(&run, 0, 30).await;
    bed.settle(&run, 1, 20).await;
    assert_eq!(bed.month(&key).await, (50_000, 0));
    for _ in 0..2 {
        bed.fail(&run, 2, 10).await;
        bed.expect(1_000, 0).await;
    }
    assert_eq!(bed.month(&key).await, (0, 0));
    let entries = bed.entries().await;
    assert_eq!(entries.len(), 5);
    assert!(entries.contains(&("refund".into(), 60)), "{entries:?}");
    let rows: Vec<(String, i64, i64)> = bed
        .db()
        .read(|read| {
            Ok(executions::table
                .select((executions::status, executions::energy, executions::usd_micros))
                .load(read.connection())?)
        })
        .await
        .unwrap();
    assert_eq!(rows, [("failed".into(), 0, 0)]);
    // A run that failed before it used anything has nothing to get back.
    let run = bed.run(&key);
    bed.hold(&run, 100, 1).await.unwrap();
    bed.fail(&run, 0, 0).await;
    bed.expect(1_000, 0).await;
    // One that never held is recorded all the same, once.
    let run = bed.run(&key);
    bed.fail(&run, 0, 0).await;
    bed.fail(&run, 0, 0).await;
    let count: i64 =
        bed.db().read(|read| Ok(executions::table.count().get_result(read.connection())?)).await.unwrap();
    assert_eq!(count, 3);
}

#[testkit::both]
async fn an_execution_sums_its_steps(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let mut run = bed.run(&bed.key(None, false).await);
    // 1 Energy costs a third of a micro, and each step is rounded up by itself.
    let workspace = std::sync::Arc::make_mut(&mut run.caller.workspace);
    workspace.plan.usd_micros_per_1000_energy = 333;
    bed.hold(&run, 100, 1).await.unwrap();
    bed.settle(&run, 0, 1).await;
    bed.settle(&run, 1, 1).await;
    bed.close(&run, 2, 1).await;
    let rows: Vec<(i64, i64, Option<String>)> = bed
        .db()
        .read(|read| {
            Ok(executions::table
                .select((executions::energy, executions::usd_micros, executions::model))
                .load(read.connection())?)
        })
        .await
        .unwrap();
    assert_eq!(rows, [(3, 3, Some("test-model".into()))]);
    bed.expect(997, 0).await;
}

#[testkit::both]
async fn the_platform_pays_what_was_not_held(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let key = bed.key(None, false).await;
    let run = bed.run(&key);
    bed.hold(&run, 100, 1).await.unwrap();
    bed.settle(&run, 0, 130).await;
    bed.settle(&run, 0, 130).await;
    bed.expect(900, 0).await;
    bed.close(&run, 1, 5).await;
    bed.close(&run, 1, 5).await;
    bed.expect(900, 0).await;
    // A run that never held is not charged at all.
    bed.settle(&bed.run(&key), 0, 7).await;
    bed.expect(900, 0).await;
    assert_eq!(bed.month(&key).await, (100_000, 0));
    let absorbed: Vec<i64> = bed
        .db()
        .read(|read| {
            Ok(energy_entries::table
                .filter(energy_entries::counter_account.eq("platform_absorbed"))
                .order(energy_entries::amount.asc())
                .select(energy_entries::amount)
                .load(read.connection())?)
        })
        .await
        .unwrap();
    assert_eq!(absorbed, [5, 7, 30]);
}

#[testkit::both]
async fn forgotten_holds_expire(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let key = bed.key(Some(1_000), true).await;
    let (dead, alive) = (bed.run(&key), bed.run(&key));
    bed.hold(&dead, 300, 1).await.unwrap();
    bed.settle(&dead, 0, 100).await;
    bed.hold(&alive, 50, 1).await.unwrap();
    assert_eq!(bed.month(&key).await, (100_000, 250_000));
    bed.test.clock.advance(Duration::minutes(10));
    // A hold that is used stays.
    bed.hold(&alive, 50, 1).await.unwrap();
    assert_eq!(bed.write(sweep_expired_holds).await.unwrap(), 0);
    bed.test.clock.advance(Duration::minutes(5));
    assert_eq!(bed.write(sweep_expired_holds).await.unwrap(), 1);
    assert_eq!(bed.write(sweep_expired_holds).await.unwrap(), 0);
    // What was used stays debited.
    bed.expect(900, 50).await;
    assert_eq!(bed.month(&key).await, (100_000, 50_000));
    // The run was not dead after all: it holds anew, and ends like any other.
    assert_eq!(bed.hold(&dead, 200, 1).await.unwrap(), 200);
    bed.expect(900, 250).await;
    bed.close(&dead, 1, 40).await;
    bed.expect(860, 50).await;
    bed.close(&alive, 0, 50).await;
    bed.expect(810, 0).await;
    assert_eq!(bed.month(&key).await, (190_000, 0));
}

#[testkit::both]
async fn an_expired_run_is_closed_without_a_charge(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let run = bed.run(&bed.key(None, false).await);
    bed.hold(&run, 300, 1).await.unwrap();
    bed.settle(&run, 0, 100).await;
    bed.test.clock.advance(Duration::minutes(15));
    bed.write(sweep_expired_holds).await.unwrap();
    bed.expect(900, 0).await;
    bed.fail(&run, 1, 20).await;
    bed.expect(1_000, 0).await;
}

#[testkit::both]
async fn a_refusal_that_is_survived_leaves_no_trace(kind: Kind) {
    let bed = Bed::with_energy(kind, 100).await;
    let key = bed.key(Some(5), true).await;
    let run = bed.run(&key);
    let (ledger, workspace) = (bed.ledger.clone(), bed.workspace);
    bed.write(move |tx| {
        use ports::EnergyMeter;
        assert_eq!(refused(ledger.hold(tx, &run, 60, 51)), Code::BudgetExceeded);
        assert_eq!(check_invariants(tx, workspace)?, Vec::<String>::new());
        Ok(())
    })
    .await
    .unwrap();
    bed.expect(100, 0).await;
    assert_eq!(bed.month(&key).await, (0, 0));
}

#[testkit::both]
async fn absurd_numbers_do_no_harm(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let key = bed.key(None, false).await;
    let run = bed.run(&key);
    assert_eq!(bed.hold(&run, i64::MAX, -5).await.unwrap(), 1_000);
    assert_eq!(refused(bed.hold(&run, i64::MAX, i64::MAX).await), Code::EnergyDepleted);
    bed.settle(&run, 0, -50).await;
    bed.expect(1_000, 1_000).await;
    bed.close(&run, 1, i64::MAX).await;
    bed.expect(0, 0).await;
    assert_eq!(bed.hold(&bed.run(&key), -1, -1).await.unwrap(), 0);
}
