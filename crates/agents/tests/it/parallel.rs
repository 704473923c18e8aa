//! Many runs at once.

use crate::{check_books, number};
use futures::future::join_all;
use model::Env;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testkit::{Script, TestApp};

testkit::on_both! {
    async fn two_hundred_runs_share_little_energy(kind: Kind) {
        let app = TestApp::new(kind).await;
        let workspace = app.bare_workspace("scale", 150).await;
        let mut keys = vec![app.key(workspace, Env::Live, &["*"]).await];
        for cents in [1, 1000] {
            let key = app.key_with(workspace, Env::Live, &["runs:execute", "runs:read"], move |new| new.budget_cents = Some(cents));
            keys.push(key.await);
        }
        let agent = json!({ "name": "A", "status": "active", "max_output_tokens": 64, "memory": { "mode": "none" } });
        app.post("/agents", &keys[0], agent).await.expect(201);
        app.model.usage(40, 40);
        for number in 0..200 {
            app.model.then(if number % 17 == 5 {
                Script::Fail(svc_agents::providers::ProviderError::Unavailable("down".into()))
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
        })).await;
        let mut outcomes: BTreeMap<(u16, String), usize> = BTreeMap::new();
        for answer in &answers {
            let code = answer.body["error"]["code"].as_str().unwrap_or_default().to_owned();
            *outcomes.entry((answer.status, code)).or_default() += 1;
        }
        let known = ["", "energy_depleted", "budget_exceeded", "conversation_busy", "model_unavailable", "rate_limited"];
        assert!(outcomes.keys().all(|(_, code)| known.contains(&code.as_str())), "{outcomes:?}");
        assert!(outcomes.contains_key(&(200, String::new())), "{outcomes:?}");
        check_books(&app, workspace).await;

        let unfinished = "SELECT COUNT(*) AS n FROM runs WHERE status IN ('queued', 'in_progress') OR lease_until IS NOT NULL";
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
            after = format!("&starting_after={}", rows.as_array().unwrap().last().unwrap()["id"].as_str().unwrap());
        }
        let prompted: Vec<String> = app.model.prompts().iter().map(|prompt| prompt.messages.last().unwrap().content.clone()).collect();
        for (name, mut runs) in conversations {
            runs.sort();
            let places: Vec<usize> = runs.iter().filter_map(|(_, input)| prompted.iter().position(|text| text == input)).collect();
            assert!(places.is_sorted(), "{name}: {places:?}");
        }
    }
}
