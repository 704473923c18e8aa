//! Budgets of keys, and their thresholds.

use crate::bed::{Bed, refused};
use chrono::Duration;
use diesel::RunQueryDsl;
use model::Code;
use serde_json::json;
use testkit::Kind;

#[testkit::both]
async fn a_budget_with_cutoff_is_never_passed(kind: Kind) {
    let bed = Bed::with_energy(kind, 10_000).await;
    // 10 cents are 100 Energy.
    let key = bed.key(Some(10), true).await;
    let (first, second) = (bed.run(&key), bed.run(&key));
    assert_eq!(bed.hold(&first, 60, 1).await.unwrap(), 60);
    // What running work has set aside counts.
    assert_eq!(bed.hold(&second, 60, 1).await.unwrap(), 40);
    assert_eq!(refused(bed.hold(&bed.run(&key), 60, 1).await), Code::BudgetExceeded);
    assert_eq!(bed.month(&key).await, (0, 100_000));
    bed.close(&first, 0, 10).await;
    assert_eq!(bed.month(&key).await, (10_000, 40_000));
    assert_eq!(bed.hold(&second, 1_000, 1).await.unwrap(), 90);
    bed.close(&second, 0, 90).await;
    assert_eq!(bed.month(&key).await, (100_000, 0));
    let error = bed.hold(&bed.run(&key), 1, 0).await.unwrap_err();
    assert_eq!(error.code(), Code::BudgetExceeded);
    assert_eq!(error.body()["details"], json!({ "resets_at": "2026-02-01T00:00:00.000Z" }));
    assert_eq!(error.retry_after_seconds(), None);
    bed.expect(9_900, 0).await;
    // The next month is another one.
    bed.test.clock.advance(Duration::days(17));
    assert_eq!(bed.hold(&bed.run(&key), 1_000, 1).await.unwrap(), 100);
}

#[testkit::both]
async fn a_run_belongs_to_the_month_of_its_admission(kind: Kind) {
    let bed = Bed::with_energy(kind, 10_000).await;
    let key = bed.key(Some(10), true).await;
    bed.test.clock.advance(Duration::days(16) + Duration::minutes(11 * 60 + 55));
    let run = bed.run(&key);
    bed.hold(&run, 70, 1).await.unwrap();
    bed.test.clock.advance(Duration::minutes(10));
    bed.settle(&run, 0, 70).await;
    assert_eq!(bed.month(&key).await, (0, 0));
    assert_eq!(bed.hold(&run, 70, 1).await.unwrap(), 30);
    bed.close(&run, 1, 30).await;
    assert_eq!(bed.month(&key).await, (0, 0));
    bed.expect(9_900, 0).await;
}

#[testkit::both]
async fn spending_that_would_leave_its_range_is_refused_and_leaves_no_trace(kind: Kind) {
    let bed = Bed::with_energy(kind, 10_000).await;
    let key = bed.key(None, false).await;
    let run = bed.run(&key);
    bed.hold(&run, 20, 1).await.unwrap();
    bed.settle(&run, 0, 1).await;
    // Nobody spends as much, so the books are made to say so.
    let near = 4_000_000_000_000_000_000_i64;
    for table in ["key_months SET spent_micros", "agent_months SET spent"] {
        let statement = format!("UPDATE {table} = {near}");
        let raised = bed.write(move |tx| Ok(diesel::sql_query(&statement).execute(tx.connection())?)).await;
        assert_eq!(raised.unwrap(), 1, "{table}");
        let refused = bed.settle_with(&run, 1, 1, None).await.unwrap_err();
        assert_eq!(refused.code(), Code::InternalError, "{table}");
        let (balance, reserved, _) = bed.account().await;
        assert_eq!((balance, reserved), (9_999, 19), "{table}");
        let statement = format!("UPDATE {table} = 0");
        bed.write(move |tx| Ok(diesel::sql_query(&statement).execute(tx.connection())?)).await.unwrap();
    }
}

#[testkit::both]
async fn a_budget_without_cutoff_only_warns(kind: Kind) {
    let bed = Bed::with_energy(kind, 10_000).await;
    let key = bed.key(Some(10), false).await;
    let run = bed.run(&key);
    assert_eq!(bed.hold(&run, 5_000, 1).await.unwrap(), 5_000);
    bed.settle(&run, 0, 49).await;
    assert!(bed.thresholds().await.is_empty());
    bed.settle(&run, 1, 1).await;
    assert_eq!(bed.thresholds().await, [50]);
    // One debit may pass several.
    bed.settle(&run, 2, 100).await;
    bed.settle(&run, 2, 100).await;
    bed.close(&run, 3, 100).await;
    assert_eq!(bed.thresholds().await, [50, 80, 100]);
    let events = bed.events().await;
    assert_eq!(
        events[0],
        json!({
            "key_id": key.stored.key.id, "threshold": 50, "percent": 50, "spent_cents": 5, "cap_cents": 10,
            "period": "2026-01", "cutoff_enabled": false, "workspace_id": bed.workspace,
        })
    );
    assert_eq!(events[2]["percent"], 150);
    // Next month they come again.
    bed.test.clock.advance(Duration::days(20));
    let run = bed.run(&key);
    bed.hold(&run, 100, 1).await.unwrap();
    bed.close(&run, 0, 100).await;
    assert_eq!(bed.thresholds().await, [50, 80, 100, 50, 80, 100]);
}

#[testkit::both]
async fn a_new_budget_reports_what_is_passed_and_arms_the_rest(kind: Kind) {
    let bed = Bed::with_energy(kind, 10_000).await;
    let key = bed.key(Some(10), false).await;
    let run = bed.run(&key);
    bed.hold(&run, 5_000, 1).await.unwrap();
    bed.settle(&run, 0, 60).await;
    assert_eq!(bed.thresholds().await, [50]);
    // Six of seven cents are spent.
    bed.budget(&key, Some(7), false).await;
    assert_eq!(bed.thresholds().await, [50, 50, 80]);
    // The same budget again is no news, and neither is its cut-off.
    bed.budget(&key, Some(7), true).await;
    bed.budget(&key, Some(7), false).await;
    assert_eq!(bed.thresholds().await, [50, 50, 80]);
    // Six of a hundred are nothing, and later all come again.
    bed.budget(&key, Some(100), false).await;
    assert_eq!(bed.thresholds().await, [50, 50, 80]);
    bed.settle(&run, 1, 440).await;
    assert_eq!(bed.thresholds().await, [50, 50, 80, 50]);
    bed.budget(&key, None, false).await;
    assert_eq!(bed.thresholds().await.len(), 4);
    // A budget of nothing is used up from the start.
    bed.budget(&key, Some(0), false).await;
    assert_eq!(bed.thresholds().await, [50, 50, 80, 50, 50, 80, 100]);
}

#[testkit::both]
async fn a_new_budget_reaches_running_work(kind: Kind) {
    let bed = Bed::with_energy(kind, 10_000).await;
    let key = bed.key(None, false).await;
    let run = bed.run(&key);
    assert_eq!(bed.hold(&run, 50, 1).await.unwrap(), 50);
    assert_eq!(bed.month(&key).await, (0, 0));
    // The run's copy of the key knows of no budget.
    bed.budget(&key, Some(10), true).await;
    assert_eq!(bed.hold(&run, 500, 1).await.unwrap(), 100);
    assert_eq!(bed.month(&key).await, (0, 100_000));
    bed.settle(&run, 0, 40).await;
    assert_eq!(bed.month(&key).await, (40_000, 60_000));
    bed.budget(&key, Some(20), true).await;
    assert_eq!(bed.hold(&run, 500, 1).await.unwrap(), 160);
    // Lowered, it refuses more, and what is set aside stays so.
    bed.budget(&key, Some(5), true).await;
    assert_eq!(refused(bed.hold(&run, 500, 20).await), Code::BudgetExceeded);
    assert_eq!(bed.hold(&run, 160, 20).await.unwrap(), 160);
    assert_eq!(bed.month(&key).await, (40_000, 160_000));
    // Without one nothing is set aside in the key's month, and the step costs all that it used.
    bed.budget(&key, None, true).await;
    assert_eq!(bed.hold(&run, 300, 1).await.unwrap(), 300);
    assert_eq!(bed.month(&key).await, (40_000, 0));
    bed.close(&run, 1, 300).await;
    assert_eq!(bed.month(&key).await, (340_000, 0));
    bed.expect(9_660, 0).await;
}

#[testkit::both]
async fn a_budget_set_during_a_run_is_reported(kind: Kind) {
    let bed = Bed::with_energy(kind, 10_000).await;
    let key = bed.key(None, false).await;
    let run = bed.run(&key);
    bed.hold(&run, 500, 1).await.unwrap();
    bed.budget(&key, Some(10), false).await;
    bed.settle(&run, 0, 60).await;
    assert_eq!(bed.thresholds().await, [50]);
    bed.close(&run, 1, 40).await;
    assert_eq!(bed.thresholds().await, [50, 80, 100]);
}

#[testkit::both]
async fn a_refund_takes_the_money_back(kind: Kind) {
    let bed = Bed::with_energy(kind, 10_000).await;
    let key = bed.key(Some(10), true).await;
    let run = bed.run(&key);
    bed.hold(&run, 100, 1).await.unwrap();
    bed.fail(&run, 0, 100).await;
    assert_eq!(bed.month(&key).await, (0, 0));
    // It was never really spent, so nobody is warned.
    assert!(bed.thresholds().await.is_empty());
    assert_eq!(bed.hold(&bed.run(&key), 100, 100).await.unwrap(), 100);
}

#[testkit::both]
async fn a_budget_of_nothing_cuts_off(kind: Kind) {
    let bed = Bed::with_energy(kind, 10_000).await;
    let key = bed.key(Some(0), true).await;
    assert_eq!(refused(bed.hold(&bed.run(&key), 1, 0).await), Code::BudgetExceeded);
}

#[testkit::both]
async fn rounding_never_passes_the_cap(kind: Kind) {
    let bed = Bed::with_energy(kind, 10_000_000).await;
    let key = bed.key(Some(1), true).await;
    let mut run = bed.run(&key);
    // A third of a micro for each: a cent pays for 30,030 Energy, but not when every one is rounded up.
    std::sync::Arc::make_mut(&mut run.caller.workspace).plan.usd_micros_per_1000_energy = 333;
    assert_eq!(bed.hold(&run, 1_000_000, 1).await.unwrap(), 30_030);
    for step in 0..20 {
        bed.settle(&run, step, 1).await;
    }
    bed.close(&run, 20, 30_010).await;
    let (spent, reserved) = bed.month(&key).await;
    assert!(spent <= 10_000 && spent > 9_990, "{spent}");
    assert_eq!(reserved, 0);
    bed.check().await;
}
