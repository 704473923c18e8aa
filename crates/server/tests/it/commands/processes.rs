//! Two processes of the program on one PostgreSQL and one Redis: whichever is asked, it happens once.

use futures::future::join_all;
use serde_json::json;
use testkit::{Answer, Client, Kind, Program};

#[tokio::test]
async fn two_processes_are_one_service() {
    let redis = std::env::var("SVC_TEST_REDIS_URL").expect("run tests with `scripts/with-services`");
    let program = Program::new(Kind::Postgres, env!("CARGO_BIN_EXE_svc")).await.with("SVC_REDIS_URL", redis);
    let key = program.key("agents:write,agents:read,runs:execute,runs:read,billing:read");
    program.run(&["energy", "grant", "--workspace", &key.workspace.to_string(), "--amount", "1000000"]);
    let other = Program::address();
    let serving = [program.serve().await, program.serve_at(&other).await];
    let clients = [program.client(), Client::new(&format!("http://{other}"))];

    // Eight at once, four to each: all get the answer of the one that came first.
    let eight = async |path: &str, once: &str, body: serde_json::Value| -> Vec<Answer> {
        let asks = (0..8).map(|number| {
            let client = &clients[number % 2];
            client.ask("POST", path).key(&key).header("idempotency-key", once).json(&body).send()
        });
        join_all(asks).await
    };
    for (path, once, body) in [
        ("/agents", "agent", json!({ "name": "Assistant", "status": "active" })),
        ("/runs", "run", json!({ "input": "Hello" })),
    ] {
        let answers = eight(path, once, body).await;
        let first = &answers[0].body["data"]["id"];
        assert!(!first.is_null(), "{}", answers[0].text);
        assert!(answers.iter().all(|answer| answer.body["data"]["id"] == *first), "{path}");
        let fresh = answers.iter().filter(|answer| !answer.headers.contains_key("idempotent-replayed"));
        assert_eq!(fresh.count(), 1, "{path}");
    }
    assert_eq!(program.model.requests(), 1);

    // What one does the other sees, and both count in the same window.
    let remaining = async |client: &Client| -> i64 {
        let answer = client.ask("GET", "/agents").key(&key).send().await;
        assert_eq!(answer.body["data"].as_array().unwrap().len(), 1);
        answer.headers["x-ratelimit-remaining"].parse().unwrap()
    };
    let before = remaining(&clients[0]).await;
    assert_eq!(remaining(&clients[1]).await, before - 1);
    let [first, second] = serving;
    first.stop().await;
    assert_eq!(remaining(&clients[1]).await, before - 2);
    second.stop().await;
}
