//! Many runs at once.

use crate::{check_books, number};
use futures::future::join_all;
use model::Env;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testkit::{Kind, Script, TestApp};

#[testkit::both]
async fn runs_of_many_workspaces_begin_and_end_side_by_side(kind: Kind) {
    let app = TestApp::new(kind).await;
    app.model.usage(40, 40);
    let agents = [
        (100_000, json!({})),
        (0, json!({})),
        (100_000, json!({ "energy_limit_per_run": 5_000 })),
        (
            100_000,
            json!({ "guardrails": [{ "on": ["input"], "type": "blocklist", "words": ["bomb"], "action": "block" }] }),
        ),
        (100_000, json!({ "instructions": "Greet {{vars.greeting}}." })),
    ];
    let mut keys = Vec::new();
    for (energy, more) in agents {
        let workspace = app.bare_workspace("scale", energy).await;
        let key = app.key(workspace, Env::Live, &["*"]).await;
        let mut agent = json!({ "name": "A", "status": "active", "max_output_tokens": 64 });
        agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        app.post("/agents", &key, agent).await.expect(201);
        keys.push(key);
    }
    for _ in 0..100 {
        app.model.then(Script::Say("ok".into()));
    }
    let ask =
        |number: usize| app.post("/runs", &keys[number % keys.len()], json!({ "input": number.to_string() }));
    let answers = join_all((0..100).map(ask)).await;
    for (number, answer) in answers.iter().enumerate() {
        match number % keys.len() {
            1 => {
                answer.expect_error(402, "energy_depleted");
            }
            _ => {
                assert_eq!(answer.expect(200)["input"], number.to_string());
            }
        }
    }
    app.deliver().await;
    for (place, key) in keys.iter().enumerate() {
        check_books(&app, key.workspace).await;
        let expected = if place == 1 { 0 } else { 20 };
        for counted in [
            "runs WHERE status = 'completed' AND lease_until IS NULL AND",
            "executions WHERE status = 'completed' AND",
            "energy_entries WHERE kind = 'debit' AND",
            "energy_holds WHERE state = 'settled' AND used > 0 AND",
            "run_steps WHERE kind = 'model' AND status = 'completed' AND",
            "events WHERE kind = 'run.completed' AND",
        ] {
            let sql = format!("SELECT COUNT(*) AS n FROM {counted} workspace_id = {}", key.workspace);
            assert_eq!(number(&app, &sql).await, expected, "{counted} of workspace {place}");
        }
    }
}

#[testkit::both]
async fn two_hundred_runs_share_little_energy(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 150).await;
    let mut keys = vec![app.key(workspace, Env::Live, &["*"]).await];
    for cents in [1, 1000] {
        let key = app.key_with(workspace, Env::Live, &["runs:execute", "runs:read"], move |new| {
            new.budget_cents = Some(cents);
        });
        keys.push(key.await);
    }
    let agent =
        json!({ "name": "A", "status": "active", "max_output_tokens": 64, "memory": { "mode": "none" } });
    app.post("/agents", &keys[0], agent).await.expect(201);
    app.model.usage(40, 40);
    for number in 0..200 {
        app.model.then(if number % 17 == 5 {
            Script::Fail(providers::ProviderError::Unavailable("down".into()))
        } else {
            Script::Say("ok".into())
        });
    }
    let answers = join_all((0..200).map(|number| {
        let mut run = json!({ "input": format!("{number}"), "conversation_id": format!("c{}", number % 4) });
        if number % 3 == 0 {
            run.as_object_mut().unwrap().remove("conversation_id");
        }
        app.post("/runs", &keys[number % 3], run)
    }))
    .await;
    let mut outcomes: BTreeMap<(u16, String), usize> = BTreeMap::new();
    for answer in &answers {
        let code = answer.body["error"]["code"].as_str().unwrap_or_default().to_owned();
        *outcomes.entry((answer.status, code)).or_default() += 1;
    }
    let known =
        ["", "energy_depleted", "budget_exceeded", "conversation_busy", "model_unavailable", "rate_limited"];
    assert!(outcomes.keys().all(|(_, code)| known.contains(&code.as_str())), "{outcomes:?}");
    assert!(outcomes.contains_key(&(200, String::new())), "{outcomes:?}");
    check_books(&app, workspace).await;

    let unfinished =
        "SELECT COUNT(*) AS n FROM runs WHERE status IN ('queued', 'in_progress') OR lease_until IS NOT NULL";
    assert_eq!(number(&app, unfinished).await, 0);
    let spent = number(&app, "SELECT CAST(COALESCE(SUM(energy), 0) AS BIGINT) AS n FROM runs").await;
    let balance = app.energy_balance().await;
    let debited = app.energy_spent().await;
    assert_eq!((balance, debited), (150 - spent, spent));

    let mut conversations: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut after = String::new();
    loop {
        let page = app.get(&format!("/runs?limit=100{after}"), &keys[0]).await;
        let rows = page.expect(200);
        for run in rows.as_array().unwrap() {
            let text = |field: &str| run[field].as_str().unwrap().to_owned();
            conversations.entry(text("conversation_id")).or_default().push((text("id"), text("input")));
        }
        if page.body["has_more"] == Value::Bool(false) {
            break;
        }
        after =
            format!("&starting_after={}", rows.as_array().unwrap().last().unwrap()["id"].as_str().unwrap());
    }
    let prompted: Vec<String> =
        app.model.prompts().iter().map(|prompt| prompt.messages.last().unwrap().content.clone()).collect();
    for (name, mut runs) in conversations {
        runs.sort();
        let places: Vec<usize> =
            runs.iter().filter_map(|(_, input)| prompted.iter().position(|text| text == input)).collect();
        assert!(places.is_sorted(), "{name}: {places:?}");
    }
}
