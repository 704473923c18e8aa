//! The operations of both areas.

use crate::app::{App, ids, keys, registry};
use crate::bed::Key;
use auth::schema::key_requests;
use billing::ledger::{GrantKind, NewGrant, grant, sweep_expired_grants, sweep_pending_grants};
use billing::plans;
use chrono::Duration;
use diesel::prelude::*;
use model::{Code, Env, Scope, SubscriptionStatus};
use operation::{Contract, document};
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn me_says_who_the_key_is(kind: Kind) {
    let app = App::new(kind).await;
    let me = app.get("/me").await;
    assert_eq!(
        me,
        json!({
            "object": "identity",
            "livemode": true,
            "api_key": {
                "id": app.key.stored.key.id,
                "object": "api_key",
                "owner_type": "workspace",
                "env": "live",
                "scopes": ["billing:read", "runs:read"],
                "rate_limit_rpm": 300,
                "monthly_quota": 50_000,
            },
            "workspace": { "object": "workspace", "id": app.bed.workspace, "slug": "acme" },
            "partner": null,
            "app": null,
        })
    );
    let workspace = app.bed.workspace;
    let test = app.bed.key_of(workspace, Env::Test, vec![Scope::RunsRead], None, false).await;
    let (_, body) = app.get_with(&test, "/me").await;
    assert_eq!((&body["data"]["livemode"], &body["data"]["api_key"]["env"]), (&json!(false), &json!("test")));
    let none = app.bed.key_of(workspace, Env::Live, vec![Scope::BillingRead], None, false).await;
    assert_eq!(app.get_with(&none, "/me").await.0, 403);
}

#[testkit::both]
async fn access_predicts_the_answers_of_energy_operations(kind: Kind) {
    let app = App::new(kind).await;
    let access = app.get("/billing/access").await;
    assert_eq!(
        access,
        json!({
            "object": "billing_access", "blocked": false, "subscription_status": "energy_depleted",
            "reason": "The workspace has no Energy left.",
            "energy": { "available": 0, "reserved": 0, "state": "depleted", "metered": true },
            "recharge_url": "https://svc.test/billing",
        })
    );
    app.bed.give(NewGrant::new(GrantKind::Purchase, 100)).await.unwrap();
    let run = app.bed.run(&app.key);
    app.bed.hold(&run, 95, 1).await.unwrap();
    let access = app.get("/billing/access").await;
    assert_eq!(access["subscription_status"], "active");
    assert_eq!(access["reason"], Value::Null);
    assert_eq!(access["energy"], json!({ "available": 5, "reserved": 95, "state": "low", "metered": true }));
    // What has ended does not count, swept or not.
    let end = app.bed.db().clock().now().plus(Duration::hours(1));
    let new = NewGrant { expires_at: Some(end), ..NewGrant::new(GrantKind::Promo, 50) };
    app.bed.give(new).await.unwrap();
    assert_eq!(app.get("/billing/access").await["energy"]["available"], 55);
    app.bed.test.clock.advance(Duration::hours(1));
    assert_eq!(app.get("/billing/access").await["energy"]["available"], 5);
    app.bed.check().await;
}

#[testkit::both]
async fn plans_and_the_subscription(kind: Kind) {
    let app = App::new(kind).await;
    let workspace = app.bed.workspace;
    // Any key will do, whatever its scopes.
    let other = app.bed.key_of(workspace, Env::Live, vec![Scope::RunsRead], None, false).await;
    let (status, body) = app.get_with(&other, "/billing/plans").await;
    assert_eq!(status, 200);
    assert_eq!(ids(&body["data"]), ["trial", "starter", "pro", "scale"]);
    assert_eq!(body["data"][3]["limits"]["monthly_quota"], Value::Null);
    let subscription = app.get("/billing/subscription").await;
    assert_eq!(
        subscription,
        json!({
            "object": "subscription",
            "plan": { "id": "starter", "name": "Starter" },
            "status": "active",
            "period_start": "2026-01-15T12:00:00.000Z",
            "period_end": "2026-02-15T12:00:00.000Z",
            "cancel_at_period_end": false,
            "premium_rate": false,
            "usd_micros_per_1000_energy": 1_000_000,
            "limits": {
                "rate_limit_rpm": 300, "monthly_quota": 50_000, "test_runs_per_day": 100, "contacts": 2_000,
            },
        })
    );
    app.bed
        .write(move |tx| plans::set_plan(tx, workspace, "partner_zero", SubscriptionStatus::Sponsored, None))
        .await
        .unwrap();
    app.pipeline.directory.forget();
    let subscription = app.get("/billing/subscription").await;
    assert_eq!((&subscription["premium_rate"], &subscription["status"]), (&json!(true), &json!("sponsored")));
    assert_eq!(ids(&app.get("/billing/plans").await).len(), 5);
    // A blocked workspace hears nothing else.
    app.bed.write(move |tx| auth::workspaces::block(tx, workspace, "Unpaid.")).await.unwrap();
    app.pipeline.directory.forget();
    assert_eq!(app.refused("/billing/access").await.1, Code::WorkspaceBlocked.as_str());
}

#[testkit::both]
async fn energy_shows_grants_and_a_forecast(kind: Kind) {
    let app = App::new(kind).await;
    assert_eq!(app.get("/billing/energy").await["forecast_days"], Value::Null);
    let now = app.bed.db().clock().now();
    let first = NewGrant::new(GrantKind::Promo, 10);
    app.bed.give(first).await.unwrap();
    let ending = |days| NewGrant {
        expires_at: Some(now.plus(Duration::days(days))),
        ..NewGrant::new(GrantKind::Plan, 100)
    };
    app.bed.give(ending(9)).await.unwrap();
    let soon = app.bed.give(ending(3)).await.unwrap();
    app.bed.give(NewGrant::new(GrantKind::Purchase, 1_000)).await.unwrap();
    app.spend(70).await;
    let run = app.bed.run(&app.key);
    app.bed.hold(&run, 40, 1).await.unwrap();
    let energy = app.get("/billing/energy").await;
    let numbers: Vec<&Value> =
        ["balance", "reserved", "available", "spent_this_month"].iter().map(|name| &energy[*name]).collect();
    assert_eq!(numbers, [1_140, 40, 1_100, 70]);
    // 1,100 at 10 a day.
    assert_eq!(energy["forecast_days"], 110);
    assert_eq!(energy["expiring_next"]["grant_id"], json!(soon));
    assert_eq!(energy["expiring_next"]["amount"], 40);
    let statuses: Vec<(&Value, &Value)> = energy["grants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|grant| (&grant["remaining"], &grant["status"]))
        .collect();
    assert_eq!(
        statuses,
        [
            (&json!(40), &json!("active")),
            (&json!(100), &json!("active")),
            (&json!(1_000), &json!("active")),
            (&json!(0), &json!("exhausted")),
        ]
    );
    app.bed.test.clock.advance(Duration::days(3));
    app.pipeline.directory.forget();
    let energy = app.get("/billing/energy").await;
    assert_eq!(energy["grants"][0]["status"], "expired");
    assert_eq!(energy["available"], 1_060);
    assert_eq!(energy["expiring_next"]["amount"], 100);
}

#[testkit::both]
async fn grants_say_how_they_ended(kind: Kind) {
    let app = App::new(kind).await;
    let now = app.bed.db().clock().now();
    let hour = |hours| Some(now.plus(Duration::hours(hours)));
    let new = |amount| NewGrant { expires_at: hour(2), ..NewGrant::new(GrantKind::Promo, amount) };
    let used_up = app.bed.give(new(10)).await.unwrap();
    app.spend(10).await;
    let lapsed = app.bed.give(new(20)).await.unwrap();
    app.spend(5).await;
    let pending = NewGrant { effective_at: hour(3), ..NewGrant::new(GrantKind::Promo, 30) };
    let pending = app.bed.give(pending).await.unwrap();
    let status = async |id: &model::GrantId| {
        let energy = app.get("/billing/energy").await;
        let grants = energy["grants"].as_array().unwrap();
        let grant = grants.iter().find(|grant| grant["id"] == json!(id)).unwrap();
        (grant["status"].as_str().unwrap().to_owned(), grant["remaining"].as_i64().unwrap())
    };
    assert_eq!(status(&used_up).await, ("exhausted".to_owned(), 0));
    assert_eq!(status(&lapsed).await, ("active".to_owned(), 15));
    assert_eq!(status(&pending).await, ("pending".to_owned(), 0));
    app.bed.test.clock.advance(Duration::hours(2));
    assert_eq!(status(&lapsed).await, ("expired".to_owned(), 15));
    app.bed.write(sweep_expired_grants).await.unwrap();
    assert_eq!(status(&used_up).await, ("exhausted".to_owned(), 0));
    assert_eq!(status(&lapsed).await, ("expired".to_owned(), 0));
    app.bed.test.clock.advance(Duration::hours(1));
    app.bed.write(sweep_pending_grants).await.unwrap();
    assert_eq!(status(&pending).await, ("active".to_owned(), 30));
}

#[testkit::both]
async fn what_ends_next_is_found_behind_a_hundred_grants(kind: Kind) {
    let app = App::new(kind).await;
    let now = app.bed.db().clock().now();
    let workspace = app.bed.workspace;
    app.bed
        .write(move |tx| {
            for _ in 0..100 {
                grant(tx, workspace, &NewGrant::new(GrantKind::Promo, 1))?;
            }
            Ok(())
        })
        .await
        .unwrap();
    let ending =
        NewGrant { expires_at: Some(now.plus(Duration::days(1))), ..NewGrant::new(GrantKind::Purchase, 7) };
    let id = app.bed.give(ending).await.unwrap();
    let energy = app.get("/billing/energy").await;
    let found = (&energy["expiring_next"]["grant_id"], &energy["expiring_next"]["amount"]);
    assert_eq!(found, (&json!(id), &json!(7)));
}

#[testkit::both]
async fn only_a_healthy_plan_is_called_depleted(kind: Kind) {
    let app = App::new(kind).await;
    let workspace = app.bed.workspace;
    let due = app.bed.db().clock().now();
    for (status, until, shown) in [
        (SubscriptionStatus::Sponsored, None, "energy_depleted"),
        (SubscriptionStatus::Trialing, Some(due.plus(Duration::days(1))), "energy_depleted"),
        (SubscriptionStatus::PastDue, Some(due), "past_due"),
        (SubscriptionStatus::Canceled, Some(due.plus(Duration::days(1))), "canceled"),
    ] {
        app.bed.write(move |tx| plans::set_plan(tx, workspace, "starter", status, until)).await.unwrap();
        app.pipeline.directory.forget();
        let access = app.get("/billing/access").await;
        assert_eq!((&access["subscription_status"], &access["blocked"]), (&json!(shown), &json!(false)));
        assert_eq!(access["energy"]["state"], "depleted");
    }
}

#[testkit::both]
async fn the_ledger_comes_in_pages(kind: Kind) {
    let app = App::new(kind).await;
    app.bed.give(NewGrant::new(GrantKind::Purchase, 1_000)).await.unwrap();
    for energy in 1..=5 {
        app.bed.test.clock.advance(Duration::milliseconds(1));
        app.spend(energy).await;
    }
    let over = app.bed.run(&app.key);
    app.bed.settle(&over, 0, 9).await;
    let whole = app.page("/billing/energy/ledger").await;
    assert_eq!(keys(&whole), ["success", "data"]);
    let whole = &whole["data"];
    assert_eq!(whole.as_array().unwrap().len(), 6, "what the platform absorbed is not listed");
    assert_eq!((&whole[0]["type"], &whole[0]["amount"]), (&json!("debit"), &json!(-5)));
    assert_eq!((&whole[0]["balance_after"], &whole[0]["usd_micros"]), (&json!(985), &json!(-5_000)));
    assert_eq!(whole[0]["key_id"], json!(app.key.stored.key.id));
    assert_eq!((&whole[0]["operation"], &whole[0]["agent_id"]), (&json!("run"), &json!(7)));
    assert_eq!((&whole[5]["type"], &whole[5]["run_id"]), (&json!("grant"), &Value::Null));
    let mut seen = Vec::new();
    let mut address = "/billing/energy/ledger?paginate=true&limit=4".to_owned();
    loop {
        let page = app.page(&address).await;
        seen.extend(ids(&page["data"]));
        if page["has_more"] == false {
            assert_eq!(page["next_cursor"], Value::Null);
            break;
        }
        let cursor = page["next_cursor"].as_str().unwrap();
        address = format!("/billing/energy/ledger?limit=4&starting_after={cursor}");
    }
    assert_eq!(seen, ids(whole));
    let refusal = (400, "validation_error".to_owned(), "starting_after".to_owned());
    assert_eq!(app.refused("/billing/energy/ledger?starting_after=garbage").await, refusal);
}

#[testkit::both]
async fn executions_have_steps_and_entries(kind: Kind) {
    let app = App::new(kind).await;
    app.bed.give(NewGrant::new(GrantKind::Purchase, 1_000)).await.unwrap();
    for energy in 1..=3 {
        app.bed.test.clock.advance(Duration::milliseconds(1));
        app.spend(energy).await;
    }
    let run = app.spend(20).await;
    app.write_steps(&run, 0..1);
    let page = app.page("/billing/executions?limit=2&offset=2&starting_after=exe_ignored").await;
    assert_eq!(page["pagination"], json!({ "page": 2, "limit": 2, "total": 4, "pages": 2 }));
    let all = app.get("/billing/executions").await;
    assert_eq!(ids(&page["data"]), ids(&all)[2..]);
    let with_steps = all.as_array().unwrap().iter().find(|row| row["source_id"] == json!(run)).unwrap();
    assert!(with_steps.get("steps").is_none());
    let detail = app.get(&format!("/billing/executions/{}", with_steps["id"].as_str().unwrap())).await;
    assert_eq!((&detail["energy"], &detail["usd_micros"]), (&json!(20), &json!(20_000)));
    assert_eq!((&detail["status"], &detail["livemode"]), (&json!("completed"), &json!(true)));
    assert_eq!(detail["steps"][0]["output_tokens"], 12);
    assert_eq!(detail["entries"][0]["amount"], -20);
    for address in ["/billing/executions/exe_unknown", "/billing/executions/17"] {
        assert_eq!(app.refused(address).await.1, "not_found");
    }
    // Another workspace sees none of it.
    let other = app.bed.other_workspace().await;
    let foreign = app.bed.key_of(other, Env::Live, vec![Scope::BillingRead], None, false).await;
    let address = format!("/billing/executions/{}", with_steps["id"].as_str().unwrap());
    assert_eq!(app.get_with(&foreign, &address).await.0, 404);
    assert_eq!(app.get_with(&foreign, "/billing/executions").await.1["pagination"]["total"], 0);
    assert_eq!(app.get_with(&foreign, "/billing/energy/ledger").await.1["data"], json!([]));
}

#[testkit::both]
async fn usage_is_summed_up(kind: Kind) {
    let app = App::new(kind).await;
    app.bed.give(NewGrant::new(GrantKind::Purchase, 1_000)).await.unwrap();
    app.spend(10).await;
    let failed = app.bed.run(&app.key);
    app.bed.hold(&failed, 50, 1).await.unwrap();
    app.bed.fail(&failed, 0, 50).await;
    app.bed.test.clock.advance(Duration::days(1));
    app.spend(5).await;
    app.spend(6).await;
    let (workspace, lineage) = (app.bed.workspace, app.key.stored.key.lineage.clone());
    app.bed
        .write(move |tx| {
            for (day, requests) in [("2026-01-14", 3), ("2026-01-15", 4)] {
                diesel::insert_into(key_requests::table)
                    .values((
                        key_requests::lineage_id.eq(&lineage),
                        key_requests::day.eq(day),
                        key_requests::workspace_id.eq(workspace),
                        key_requests::requests.eq(requests),
                    ))
                    .execute(tx.connection())?;
            }
            Ok(())
        })
        .await
        .unwrap();
    let row = |group: &str, requests: i64, energy: i64, count: i64| {
        json!({
            "group": group, "requests": requests, "energy": energy, "usd_micros": energy * 1_000,
            "count": count,
        })
    };
    let usage = app.get("/billing/usage?to=2026-01-16&from=2026-01-10").await;
    assert_eq!(
        usage["rows"],
        json!([row("2026-01-14", 3, 0, 0), row("2026-01-15", 4, 10, 2), row("2026-01-16", 0, 11, 2)])
    );
    let usage = app.get("/billing/usage?from=2026-01-15&to=2026-01-15&group_by=key").await;
    assert_eq!(usage["rows"], json!([row(app.key.stored.key.id.as_str(), 4, 10, 2)]));
    assert_eq!((&usage["from"], &usage["group_by"]), (&json!("2026-01-15"), &json!("key")));
    for (group, name) in [("agent", "7"), ("operation", "run"), ("model", "test-model")] {
        let usage = app.get(&format!("/billing/usage?group_by={group}")).await;
        let expected = json!({ "group": name, "energy": 21, "usd_micros": 21_000, "count": 4 });
        assert_eq!(usage["rows"], json!([expected]), "{group}");
    }
    for (query, param) in [
        ("from=2026-01-16&to=2026-01-15", "from"),
        ("from=2025-01-01&to=2026-01-01", "to"),
        ("from=yesterday", "from"),
        ("to=2026-02-30", "to"),
        ("group_by=colour", "group_by"),
    ] {
        let refusal = (400, "validation_error".to_owned(), param.to_owned());
        assert_eq!(app.refused(&format!("/billing/usage?{query}")).await, refusal, "{query}");
    }
}

#[testkit::both]
async fn budgets_show_how_far_they_are_used(kind: Kind) {
    let app = App::new(kind).await;
    app.bed.give(NewGrant::new(GrantKind::Purchase, 10_000)).await.unwrap();
    app.bed.key(None, false).await;
    app.spend(555).await;
    let cutoff = app.bed.key(Some(20), true).await;
    let run = app.bed.run(&cutoff);
    app.bed.hold(&run, 100, 1).await.unwrap();
    let budgets = app.get("/billing/budgets").await;
    assert_eq!(budgets.as_array().unwrap().len(), 2);
    let of = |key: &Key| {
        let id = json!(key.stored.key.id);
        budgets.as_array().unwrap().iter().find(|budget| budget["key_id"] == id).unwrap().clone()
    };
    assert_eq!(
        of(&app.key),
        json!({
            "object": "budget", "key_id": app.key.stored.key.id, "key_name": "a key", "env": "live",
            "limit_cents": 100, "cutoff_enabled": false, "cutoff": "all", "spent_cents": 55,
            "reserved_cents": 0, "percent": 55,
            "period_start": "2026-01-01T00:00:00.000Z", "period_end": "2026-02-01T00:00:00.000Z",
            "cap_version": 1,
        })
    );
    assert_eq!((&of(&cutoff)["reserved_cents"], &of(&cutoff)["percent"]), (&json!(10), &json!(0)));
    // A key that has expired has no budget to watch.
    let (id, soon) = (cutoff.stored.key.id.clone(), app.bed.db().clock().now().plus(Duration::minutes(1)));
    app.bed
        .write(move |tx| {
            use auth::schema::api_keys;
            diesel::update(api_keys::table.find(&id))
                .set(api_keys::expires_at.eq(soon))
                .execute(tx.connection())?;
            Ok(())
        })
        .await
        .unwrap();
    assert_eq!(app.get("/billing/budgets").await.as_array().unwrap().len(), 2);
    app.bed.test.clock.advance(Duration::minutes(1));
    assert_eq!(app.get("/billing/budgets").await.as_array().unwrap().len(), 1);
}

#[testkit::both]
async fn each_attempt_of_a_run_is_an_execution_of_its_own(kind: Kind) {
    let app = App::new(kind).await;
    app.bed.give(NewGrant::new(GrantKind::Purchase, 1_000)).await.unwrap();
    let run = app.bed.run(&app.key);
    app.bed.hold(&run, 100, 1).await.unwrap();
    app.write_steps(&run.run, 0..3);
    app.bed.settle(&run, 0, 10).await;
    // The last step of the trace is a tool's, which has no price.
    app.bed.fail(&run, 1, 20).await;
    app.bed.reopen(&run).await;
    app.bed.hold(&run, 100, 1).await.unwrap();
    app.write_steps(&run.run, 3..5);
    app.bed.test.clock.advance(Duration::milliseconds(1));
    app.bed.close(&run, 3, 40).await;
    let mut found = Vec::new();
    for id in ids(&app.get("/billing/executions").await) {
        let detail = app.get(&format!("/billing/executions/{id}")).await;
        let of = |list: &str, name: &str| -> Vec<i64> {
            detail[list].as_array().unwrap().iter().map(|row| row[name].as_i64().unwrap()).collect()
        };
        found.push((detail["status"].clone(), of("steps", "position"), of("entries", "amount")));
    }
    assert_eq!(
        found,
        [(json!("completed"), vec![3, 4], vec![-40]), (json!("failed"), vec![0, 1, 2], vec![-10, -20, 30]),]
    );
}

/// The rows of the table for these areas: method, path, operation id, scope, paging and summary.
const TABLE: &str = "\
GET /me getMe runs:read - Who this key is, what it may do and whether its actions are real
GET /billing/access getBillingAccess billing:read - Whether the workspace may operate, and why not
GET /billing/plans listPlans - - The plans and their limits
GET /billing/subscription getSubscription billing:read - The current plan, its period and limits
GET /billing/energy getEnergyBalance billing:read - Energy balance, reserved and spent
GET /billing/energy/ledger listEnergyLedger billing:read opt_in Every grant, recharge, debit and refund
GET /billing/executions listExecutions billing:read offset What spent Energy
GET /billing/executions/{executionId} getExecution billing:read - One execution's cost in detail
GET /billing/usage getUsage billing:read - Requests and Energy by day, key and agent
GET /billing/budgets listBudgets billing:read - Each key's Energy budget and how far it is used
GET /billing/invoices listInvoices billing:read opt_in Invoices
GET /billing/invoices/{invoiceId} getInvoice billing:read - One invoice
GET /billing/payment-methods listPaymentMethods billing:read - Saved payment methods, masked
";

#[test]
fn the_declarations_are_the_tables() {
    let registry = registry();
    let mut found = String::new();
    for operation in registry.operations() {
        let meta = operation.meta();
        let scope = meta.scope.map_or("-", Scope::as_str);
        let paging = meta.paging.map_or("-", operation::Paging::as_str);
        found += &format!("{} {} {} {scope} {paging} {}\n", meta.method, meta.path, meta.id, meta.summary);
    }
    assert_eq!(found, TABLE);
    let contract: Value =
        serde_json::from_str(&document(&registry, Contract::Public, "v0.1.0").unwrap()).unwrap();
    assert_eq!(contract["paths"].as_object().unwrap().len(), 13);
}
