//! Plans that do not meter Energy: nothing is paid, and everything is recorded.

use crate::app::App;
use crate::bed::{Bed, refused};
use billing::ledger::sweep_expired_holds;
use billing::plans;
use chrono::Duration;
use futures::future::join_all;
use model::{Code, SubscriptionStatus};
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::Kind;

#[testkit::both]
async fn work_without_energy_is_let_in_and_recorded(kind: Kind) {
    let app = App::new(kind).await;
    let workspace = app.bed.workspace;
    app.bed
        .write(move |tx| {
            plans::set_plan(tx, workspace, "unlimited", SubscriptionStatus::Active, None)?;
            plans::grant_included(tx, workspace)
        })
        .await
        .unwrap();
    let access = app.get("/billing/access").await;
    assert_eq!((&access["subscription_status"], &access["reason"]), (&json!("active"), &Value::Null));
    assert_eq!(access["energy"], json!({ "available": 0, "reserved": 0, "state": "ok", "metered": false }));

    let run = app.bed.unmetered(&app.key);
    app.bed.admit(&run, 1_000).await.unwrap();
    assert_eq!(app.bed.hold(&run, 500, 100).await.unwrap(), 500);
    app.bed.expect(0, 0).await;
    assert_eq!(app.bed.settle(&run, 0, 40).await, 40);
    assert_eq!(app.bed.hold(&run, 600, 100).await.unwrap(), 600);
    app.bed.close(&run, 1, 2).await;
    // Nothing came of this one, so it costs nothing.
    let failed = app.bed.unmetered(&app.key);
    app.bed.hold(&failed, 100, 1).await.unwrap();
    app.bed.fail(&failed, 0, 30).await;
    app.bed.expect(0, 0).await;
    assert_eq!(app.bed.agent_month().await, (42, 0));
    assert_eq!(app.bed.month(&app.key).await, (42_000, 0));

    let usage = app.get("/billing/usage?group_by=agent").await;
    assert_eq!(usage["rows"], json!([{ "group": "7", "energy": 42, "usd_micros": 42_000, "count": 3 }]));
    let executions = app.get("/billing/executions").await;
    let energy = executions.as_array().unwrap().iter().map(|one| one["energy"].as_i64().unwrap());
    let mut energy: Vec<i64> = energy.collect();
    energy.sort_unstable();
    assert_eq!(energy, [0, 42]);
    let balance = app.get("/billing/energy").await;
    assert_eq!((&balance["spent_this_month"], &balance["state"]), (&json!(42), &json!("ok")));
    assert_eq!((&balance["metered"], &balance["forecast_days"]), (&json!(false), &Value::Null));
    let ledger = app.get("/billing/energy/ledger").await;
    let mut entries: Vec<String> = ledger
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            json!([entry["type"], entry["amount"], entry["balance_after"], entry["metered"]]).to_string()
        })
        .collect();
    entries.sort();
    let of_runs = ["debit\",-2", "debit\",-30", "debit\",-40", "refund\",30"];
    assert_eq!(entries, of_runs.map(|entry| format!("[\"{entry},0,false]")));
    let all = app.get("/billing/plans").await;
    let unlimited = all.as_array().unwrap().iter().find(|plan| plan["id"] == "unlimited").unwrap();
    assert_eq!(
        (&unlimited["energy_metered"], &unlimited["limits"]["contacts"]),
        (&json!(false), &Value::Null)
    );
}

#[testkit::both]
async fn a_run_stays_as_its_plan_was(kind: Kind) {
    let bed = Bed::with_energy(kind, 1_000).await;
    let key = bed.key(None, false).await;
    let (mut one, mut other) = (bed.run(&key), bed.unmetered(&key));
    bed.hold(&one, 100, 1).await.unwrap();
    bed.hold(&other, 100, 1).await.unwrap();
    bed.expect(1_000, 100).await;
    std::mem::swap(&mut one.caller.workspace, &mut other.caller.workspace);
    bed.hold(&one, 200, 1).await.unwrap();
    bed.hold(&other, 2_000, 1).await.unwrap();
    bed.close(&one, 0, 150).await;
    bed.close(&other, 0, 1_500).await;
    bed.expect(850, 0).await;
    // What a dead run has held is no loss of the account.
    let dead = bed.unmetered(&key);
    bed.hold(&dead, 5_000, 1).await.unwrap();
    bed.test.clock.advance(Duration::minutes(16));
    assert_eq!(bed.write(sweep_expired_holds).await.unwrap(), 1);
    bed.expect(850, 0).await;
}

#[testkit::both]
async fn budgets_of_keys_and_limits_of_agents_hold_all_the_same(kind: Kind) {
    let bed = Bed::new(kind).await;
    let key = bed.key(Some(10), true).await;
    let run = bed.unmetered(&key);
    assert_eq!(bed.hold(&run, 500, 1).await.unwrap(), 100);
    bed.close(&run, 0, 100).await;
    assert_eq!(refused(bed.hold(&bed.unmetered(&key), 10, 1).await), Code::BudgetExceeded);
    let free = bed.key(None, false).await;
    let mut limited = bed.limited(&free, None, Some(20));
    Arc::make_mut(&mut limited.caller.workspace).plan.energy_metered = false;
    let error = bed.hold(&limited, 100, 50).await.unwrap_err();
    assert_eq!(error.param_name(), Some("energy_limit_per_run"));
    assert_eq!(bed.hold(&limited, 100, 10).await.unwrap(), 20);
    bed.close(&limited, 0, 0).await;
    bed.expect(0, 0).await;
}

#[testkit::both]
async fn many_at_once_are_recorded_beside_those_that_pay(kind: Kind) {
    let bed = Arc::new(Bed::with_energy(kind, 1_000).await);
    let key = bed.key(None, false).await;
    let new = |place: i64| if place % 2 == 0 { bed.unmetered(&key) } else { bed.run(&key) };
    let runs: Vec<_> = (0..8).map(new).collect();
    let held = bed.hold_all(runs.iter().map(|run| (run.clone(), 50)).collect()).await;
    assert_eq!(held, [true; 8]);
    for run in &runs {
        bed.hold(run, 50, 50).await.unwrap();
    }
    bed.expect(1_000, 200).await;
    let charged = bed.close_all(runs.iter().map(|run| (run.clone(), 0, 20)).collect()).await;
    assert_eq!(charged, [20; 8]);
    bed.expect(920, 0).await;
    assert_eq!(bed.agent_month().await, (160, 0));
    let tasks = (0..40).map(|number| {
        let (bed, run) = (bed.clone(), bed.unmetered(&key));
        tokio::spawn(async move {
            bed.hold(&run, 40, 10).await.unwrap();
            bed.settle(&run, 0, 30).await;
            if number % 4 == 0 { bed.fail(&run, 1, 5).await } else { bed.close(&run, 1, 5).await }
        })
    });
    join_all(tasks).await.into_iter().for_each(|done| done.unwrap());
    bed.expect(920, 0).await;
    assert_eq!(bed.agent_month().await, (160 + 30 * 35, 0));
    assert_eq!(bed.test.deadlocks().await, 0);
}
