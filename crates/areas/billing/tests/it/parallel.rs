//! Many runs at once, on the database as it is used.

use crate::bed::{Bed, PRICE};
use billing::ledger::{GrantKind, NewGrant, sweep_expired_grants, sweep_expired_holds};
use billing::schema::executions;
use diesel::prelude::*;
use futures::future::join_all;
use model::Code;
use ports::Charge;
use std::sync::Arc;
use testkit::Kind;

/// Three steps, each with a hold of its own; every fifth run fails. Gives what it cost.
async fn drive(bed: Arc<Bed>, run: Charge, number: i64) -> i64 {
    let mut used = 0;
    for step in 0..3 {
        match bed.hold(&run, 40, 10).await {
            Ok(held) => {
                assert!((10..=40).contains(&held), "{held}");
                let energy = held.min(7 + (number * 13 + step * 5) % 30);
                used += energy;
                // Settled twice, as a worker would that did not hear the answer.
                bed.settle(&run, step, energy).await;
                bed.settle(&run, step, energy).await;
            }
            Err(error) => {
                assert!(matches!(error.code(), Code::EnergyDepleted | Code::BudgetExceeded), "{error:?}");
                break;
            }
        }
    }
    if number % 5 == 0 {
        bed.fail(&run, 3, 0).await;
        0
    } else {
        bed.close(&run, 3, 0).await;
        used
    }
}

#[testkit::both]
async fn parallel_runs_never_overspend(kind: Kind) {
    let bed = Arc::new(Bed::with_energy(kind, 1_500).await);
    // 40 cents are 400 Energy, which the second key's runs would easily pass.
    let keys = [bed.key(None, false).await, bed.key(Some(40), true).await, bed.key(Some(40), false).await];
    let mut tasks = Vec::new();
    for number in 0..90 {
        let run = bed.run(&keys[number % 3]);
        tasks.push(tokio::spawn(drive(bed.clone(), run, i64::try_from(number).unwrap())));
    }
    let sweeper = {
        let bed = bed.clone();
        tokio::spawn(async move {
            for _ in 0..20 {
                bed.write(sweep_expired_grants).await.unwrap();
                bed.write(sweep_expired_holds).await.unwrap();
                bed.give(NewGrant::new(GrantKind::Promo, 10)).await.unwrap();
                bed.check().await;
            }
        })
    };
    let used: i64 = join_all(tasks).await.into_iter().map(Result::unwrap).sum();
    sweeper.await.unwrap();
    bed.expect(1_700 - used, 0).await;
    let recorded: Vec<i64> = bed
        .db()
        .read(|read| Ok(executions::table.select(executions::energy).load(read.connection())?))
        .await
        .unwrap();
    assert_eq!(recorded.len(), 90);
    assert_eq!(recorded.into_iter().sum::<i64>(), used);
    let mut spent = 0;
    for key in &keys {
        let (micros, reserved) = bed.month(key).await;
        assert_eq!(reserved, 0);
        spent += micros;
    }
    assert_eq!(spent, used * PRICE / 1_000);
    assert!(bed.month(&keys[1]).await.0 <= 400_000);
    // Every threshold of every budget at most once, whatever was refunded.
    let events = bed.events().await;
    let mut emitted: Vec<_> =
        events.iter().map(|event| (event["key_id"].to_string(), event["threshold"].as_i64())).collect();
    let count = emitted.len();
    emitted.sort();
    emitted.dedup();
    assert_eq!(emitted.len(), count, "{events:?}");
    assert_eq!(bed.test.deadlocks().await, 0);
}

#[testkit::both]
async fn runs_that_fail_and_runs_that_end_never_wait_in_a_circle(kind: Kind) {
    let bed = Arc::new(Bed::with_energy(kind, 100_000).await);
    let keys = [bed.key(None, false).await, bed.key(Some(1_000), true).await];
    let tasks = (0..120).map(|number| {
        let (bed, run) = (bed.clone(), bed.run(&keys[number % 2]));
        tokio::spawn(async move {
            bed.hold(&run, 40, 10).await.unwrap();
            bed.settle(&run, 0, 30).await;
            match number % 4 {
                0 | 1 => bed.fail(&run, 1, 0).await,
                _ => bed.close(&run, 1, 5).await,
            }
        })
    });
    join_all(tasks).await.into_iter().for_each(|done| done.unwrap());
    bed.expect(100_000 - 60 * 35, 0).await;
    assert_eq!(bed.test.deadlocks().await, 0);
}

#[testkit::both]
async fn the_same_step_settled_at_once_is_debited_once(kind: Kind) {
    let bed = Arc::new(Bed::with_energy(kind, 1_000).await);
    let key = bed.key(Some(10), false).await;
    for _ in 0..10 {
        let run = bed.run(&key);
        bed.hold(&run, 10, 10).await.unwrap();
        let settle = |_| {
            let (bed, run) = (bed.clone(), run.clone());
            tokio::spawn(async move { bed.close(&run, 0, 10).await })
        };
        join_all((0..8).map(settle)).await.into_iter().for_each(|done| done.unwrap());
    }
    bed.expect(900, 0).await;
    assert_eq!(bed.thresholds().await, [50, 80, 100]);
    assert_eq!(bed.month(&key).await, (100_000, 0));
}

#[testkit::both]
async fn the_same_recharge_at_once_is_granted_once(kind: Kind) {
    use billing::ledger::GrantSource;
    let bed = Arc::new(Bed::new(kind).await);
    let give = |_| {
        let bed = bed.clone();
        let source = Some(GrantSource { kind: "recharge", id: "rch_9".into() });
        tokio::spawn(async move {
            bed.give(NewGrant { source, ..NewGrant::new(GrantKind::Purchase, 100) }).await.unwrap()
        })
    };
    let ids: Vec<_> = join_all((0..8).map(give)).await.into_iter().map(Result::unwrap).collect();
    assert!(ids.iter().all(|id| *id == ids[0]));
    bed.expect(100, 0).await;
}
