//! What an agent may spend in a month, and in a run.

use crate::bed::{Bed, RECHARGE, refused};
use billing::ledger::sweep_expired_holds;
use chrono::Duration;
use futures::future::join_all;
use model::{Code, Error};
use ports::Charge;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::sync::Arc;
use testkit::Kind;

fn over(error: &Error) -> (Code, Option<&str>) {
    (error.code(), error.param_name())
}

const MONTHLY: (Code, Option<&str>) = (Code::EnergyDepleted, Some("energy_limit_monthly"));

#[testkit::both]
async fn runs_share_the_month_of_their_agent(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let key = bed.key(None, false).await;
    let run = || bed.limited(&key, Some(100), None);
    // An agent without a limit counts what it spends all the same.
    let before = bed.run(&key);
    bed.hold(&before, 30, 1).await.unwrap();
    bed.close(&before, 0, 20).await;
    let (first, second, third) = (run(), run(), run());
    assert_eq!(bed.hold(&first, 60, 10).await.unwrap(), 60);
    assert_eq!(bed.hold(&second, 60, 10).await.unwrap(), 20);
    let error = bed.hold(&third, 60, 10).await.unwrap_err();
    assert_eq!((over(&error), &error.body()["recharge_url"]), (MONTHLY, &RECHARGE.into()));
    assert_eq!(bed.agent_month().await, (20, 80));
    // What a run does not use the others may.
    bed.settle(&first, 0, 25).await;
    assert_eq!(bed.hold(&first, 60, 10).await.unwrap(), 35, "what others hold is not its own");
    bed.close(&first, 1, 5).await;
    assert_eq!(bed.hold(&third, 60, 10).await.unwrap(), 30);
    assert_eq!(bed.agent_month().await, (50, 50));
    // Nobody else's month is touched.
    let other = Charge { agent: model::AgentId(8), ..run() };
    assert_eq!(bed.hold(&other, 100, 100).await.unwrap(), 100);
    bed.close(&other, 0, 0).await;
    bed.close(&second, 0, 20).await;
    bed.close(&third, 0, 30).await;
    assert_eq!(bed.agent_month().await, (100, 0));
    assert_eq!(over(&bed.hold(&run(), 1, 1).await.unwrap_err()), MONTHLY);
    bed.expect(900, 0).await;
    bed.test.clock.advance(Duration::days(31));
    assert_eq!(bed.hold(&run(), 100, 100).await.unwrap(), 100);
}

#[testkit::both]
async fn what_comes_back_may_be_spent_again(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let key = bed.key(None, false).await;
    let run = || bed.limited(&key, Some(100), None);
    let failed = run();
    bed.hold(&failed, 100, 1).await.unwrap();
    bed.settle(&failed, 0, 60).await;
    bed.fail(&failed, 1, 40).await;
    assert_eq!(bed.agent_month().await, (0, 0));
    // It begins anew in another month, and counts there.
    bed.test.clock.advance(Duration::days(31));
    bed.reopen(&failed).await;
    assert_eq!(bed.hold(&failed, 70, 1).await.unwrap(), 70);
    assert_eq!(bed.hold(&run(), 70, 1).await.unwrap(), 30);
    assert_eq!(bed.agent_month().await, (0, 100));
    // Both die, and are swept; one lives after all, and finds what is left.
    bed.test.clock.advance(Duration::minutes(15));
    assert_eq!(bed.write(sweep_expired_holds).await.unwrap(), 2);
    assert_eq!(bed.agent_month().await, (0, 0));
    let meanwhile = run();
    bed.hold(&meanwhile, 90, 90).await.unwrap();
    assert_eq!(bed.settle(&failed, 2, 50).await, 0, "what is not held is not charged");
    assert_eq!(bed.hold(&failed, 70, 1).await.unwrap(), 10);
    bed.close(&failed, 3, 10).await;
    bed.close(&meanwhile, 0, 90).await;
    assert_eq!(bed.agent_month().await, (100, 0));
    bed.expect(900, 0).await;
}

#[testkit::both]
async fn a_run_of_last_month_counts_there(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let key = bed.key(None, false).await;
    let run = || bed.limited(&key, Some(100), None);
    let old = run();
    bed.hold(&old, 80, 1).await.unwrap();
    bed.test.clock.advance(Duration::days(31));
    assert_eq!(bed.hold(&run(), 100, 1).await.unwrap(), 100);
    bed.settle(&old, 0, 70).await;
    assert_eq!(bed.hold(&old, 80, 1).await.unwrap(), 30);
    assert_eq!(bed.agent_month().await, (0, 100));
    bed.check().await;
}

#[testkit::both]
async fn the_first_limit_that_refuses_answers(kind: Kind) {
    let bed = Bed::with_energy(kind, 50).await;
    // Five cents are 50 Energy.
    let (key, capped) = (bed.key(None, false).await, bed.key(Some(5), true).await);
    for (key, month, run, least, expected) in [
        (&capped, 55, 55, 60, (Code::BudgetExceeded, None)),
        (&key, 55, 55, 60, (Code::EnergyDepleted, None)),
        (&key, 40, 30, 50, MONTHLY),
        (&key, 50, 30, 50, (Code::EnergyDepleted, Some("energy_limit_per_run"))),
    ] {
        let run = bed.limited(key, Some(month), Some(run));
        assert_eq!(over(&bed.hold(&run, 100, least).await.unwrap_err()), expected);
        assert_eq!(over(&bed.admit(&run, least).await.unwrap_err()), expected);
    }
    bed.expect(50, 0).await;
    // The smallest room binds.
    let run = bed.limited(&capped, Some(40), Some(30));
    assert_eq!(bed.hold(&run, 100, 10).await.unwrap(), 30);
    bed.settle(&run, 0, 25).await;
    assert_eq!(bed.hold(&run, 100, 5).await.unwrap(), 5);
    assert_eq!(refused(bed.hold(&run, 100, 6).await), Code::EnergyDepleted);
    bed.close(&run, 1, 5).await;
    bed.expect(20, 0).await;
}

#[testkit::both]
async fn whoever_is_let_in_to_wait_holds_nothing(kind: Kind) {
    let bed = Bed::with_energy(kind, 50).await;
    let key = bed.key(Some(5), true).await;
    let run = bed.limited(&key, Some(40), Some(30));
    bed.admit(&run, 30).await.unwrap();
    bed.expect(50, 0).await;
    assert_eq!((bed.agent_month().await, bed.month(&key).await), ((0, 0), (0, 0)));
    let going = bed.run(&key);
    bed.hold(&going, 45, 1).await.unwrap();
    assert_eq!(refused(bed.admit(&run, 10).await), Code::BudgetExceeded);
    bed.close(&going, 0, 0).await;
    bed.admit(&run, 10).await.unwrap();
}

#[testkit::both]
async fn settling_reports_the_charge(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let run = bed.run(&bed.key(None, false).await);
    bed.hold(&run, 100, 1).await.unwrap();
    for _ in 0..2 {
        assert_eq!(bed.settle(&run, 0, 70).await, 70);
    }
    for _ in 0..2 {
        assert_eq!(bed.settle_with(&run, 1, 70, Some(false)).await.unwrap(), 30, "what was held");
    }
    assert_eq!(bed.settle_with(&run, 2, 0, Some(false)).await.unwrap(), 0);
    bed.expect(900, 0).await;
}

#[testkit::both]
async fn parallel_runs_never_pass_the_month(kind: Kind) {
    let bed = Arc::new(Bed::with_energy(kind, 10_000).await);
    let keys = [bed.key(None, false).await, bed.key(Some(10_000), true).await];
    let tasks = (0..60).map(|number: usize| {
        let (bed, run) = (bed.clone(), bed.limited(&keys[number % 2], Some(500), None));
        tokio::spawn(async move {
            for step in 0..3 {
                let held = match bed.hold(&run, 40, 10).await {
                    Ok(held) => held,
                    Err(error) => {
                        assert_eq!(over(&error), MONTHLY);
                        break;
                    }
                };
                let used = i64::try_from((number * 13) % 50).unwrap();
                assert!(bed.settle(&run, step, used).await <= held);
                let (spent, reserved) = bed.agent_month().await;
                assert!(spent <= 500 && reserved <= 500, "{spent} and {reserved}");
            }
            bed.settle_with(&run, 3, 0, Some(number.is_multiple_of(5))).await.unwrap();
        })
    });
    join_all(tasks.collect::<Vec<_>>()).await.into_iter().for_each(|done| done.unwrap());
    let (spent, reserved) = bed.agent_month().await;
    assert!((100..=500).contains(&spent), "the month is used: {spent}");
    assert_eq!(reserved, 0);
    bed.expect(10_000 - spent, 0).await;
}

/// The most that the agent may spend in a month.
const LIMIT: i64 = 300;

#[derive(Debug, Clone)]
enum Act {
    Hold { run: usize, wanted: i64, least: i64 },
    Settle { run: usize, energy: i64 },
    Close { run: usize, energy: i64, refund: bool, again: bool },
    Wait(i64),
    Sweep,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0usize..4, 0i64..150, 0i64..30).prop_map(|(run, wanted, least)| Act::Hold { run, wanted, least }),
        5 => (0usize..4, 0i64..120).prop_map(|(run, energy)| Act::Settle { run, energy }),
        3 => (0usize..4, 0i64..60, any::<bool>(), any::<bool>())
            .prop_map(|(run, energy, refund, again)| Act::Close { run, energy, refund, again }),
        1 => (0i64..12).prop_map(Act::Wait),
        1 => Just(Act::Sweep),
    ]
}

async fn play(acts: &[Act], kind: Kind) {
    let bed = Bed::with_energy(kind, 5_000).await;
    let key = bed.key(None, false).await;
    let mut runs: Vec<Charge> = (0..4).map(|_| bed.limited(&key, Some(LIMIT), Some(200))).collect();
    for (step, act) in (0i64..).zip(acts) {
        match *act {
            Act::Hold { run, wanted, least } => {
                let before = bed.agent_month().await;
                match bed.hold(&runs[run], wanted, least).await {
                    Ok(held) => assert!(held >= least),
                    Err(error) => {
                        assert_eq!(error.code(), Code::EnergyDepleted);
                        assert_eq!(bed.agent_month().await, before, "a refusal leaves no trace");
                    }
                }
            }
            Act::Settle { run, energy } => assert!(bed.settle(&runs[run], step, energy).await <= energy),
            Act::Close { run, energy, refund, again } => {
                bed.settle_with(&runs[run], step, energy, Some(refund)).await.unwrap();
                if refund && again {
                    bed.reopen(&runs[run]).await;
                } else {
                    runs[run] = bed.limited(&key, Some(LIMIT), Some(200));
                }
            }
            Act::Wait(minutes) => bed.test.clock.advance(Duration::minutes(minutes)),
            Act::Sweep => drop(bed.write(sweep_expired_holds).await.unwrap()),
        }
        let (spent, reserved) = bed.agent_month().await;
        assert!(spent >= 0 && spent + reserved <= LIMIT, "{spent} and {reserved} after {act:?}");
        bed.check().await;
    }
}

fn schedules(kind: Kind) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases: 16, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&proptest::collection::vec(act(), 20..60), |acts| {
            runtime.block_on(play(&acts, kind));
            Ok(())
        })
        .unwrap();
}

#[test]
fn no_schedule_passes_the_month_on_sqlite() {
    schedules(Kind::Sqlite);
}

#[test]
fn no_schedule_passes_the_month_on_postgres() {
    schedules(Kind::Postgres);
}
