//! Memory with a summary: older turns are folded by the fast tier, as a step of the run with its price.

use crate::{ask, awaited, begin, check_books, prompted, read, say, texts, with_agent};
use chrono::Duration;
use model::Env;
use providers::ProviderError;
use serde_json::{Value, json};
use testkit::{Key, Kind, Script, TestApp};

/// A conversation of three turns with an agent that sees two in full.
async fn talked(app: &TestApp) -> (Key, Value) {
    let memory = json!({ "mode": "summary", "max_messages": 4 });
    let (key, agent) = with_agent(app, json!({ "instructions": "Be kind.", "memory": memory })).await;
    for number in 1..=3 {
        app.model.then(say(&format!("answer {number}")));
        turn(app, &key, &format!("question {number}")).await;
    }
    (key, agent)
}

async fn turn(app: &TestApp, key: &Key, input: &str) -> Value {
    let run = ask(app, key, json!({ "input": input, "conversation_id": "c" })).await.expect(200);
    read(app, key, &run).await
}

async fn summaries(app: &TestApp) -> Vec<Option<String>> {
    texts(app, "SELECT summary AS t FROM conversation_memories").await
}

fn kinds(run: &Value) -> Vec<(&str, &str)> {
    let steps = run["steps"].as_array().unwrap();
    steps.iter().map(|step| (step["type"].as_str().unwrap(), step["status"].as_str().unwrap())).collect()
}

#[testkit::both]
async fn older_turns_are_folded_and_paid(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = talked(&app).await;
    assert_eq!(summaries(&app).await, []);
    let before = app.get("/billing/energy", &key).await.expect(200)["available"].as_i64().unwrap();
    app.model.usage(1000, 500).then(say("They asked twice.\u{0}")).then(say("answer 4"));
    let run = turn(&app, &key, "question 4").await;
    assert_eq!(run["output"], "answer 4");
    let prompts = app.model.prompts();
    let fold = &prompts[prompts.len() - 2];
    assert_eq!(
        fold.messages[1].content,
        "User: question 1\nAssistant: answer 1\nUser: question 2\nAssistant: answer 2\n"
    );
    assert_eq!(fold.max_output_tokens, 512);
    let reported = app.model.last_texts();
    assert!(
        reported[0].starts_with("Be kind.\n\n")
            && reported[0].ends_with("<summary>\nThey asked twice.\n</summary>"),
        "{reported:?}"
    );
    assert_eq!(reported[1..], ["question 3", "answer 3", "question 4"]);
    // 1,000 and 500 tokens of the fast tier, then of the balanced one.
    assert_eq!(kinds(&run), [("memory", "completed"), ("model", "completed")]);
    assert_eq!((&run["steps"][0]["energy"], &run["steps"][1]["energy"]), (&json!(3), &json!(15)));
    assert_eq!(run["steps"][0]["output"]["summary"], "They asked twice.");
    assert_eq!(
        (&run["energy"]["amount"], &run["usage"]["model_calls"], &run["usage"]["input_tokens"]),
        (&json!(18), &json!(1), &json!(2000))
    );
    assert_eq!(app.get("/billing/energy", &key).await.expect(200)["available"], before - 18);
    // It is kept, and what came since goes on behind it.
    turn(&app, &key, "question 5").await;
    let reported = app.model.last_texts();
    assert!(reported[0].contains("They asked twice."));
    assert_eq!(reported[1..], ["question 3", "answer 3", "question 4", "answer 4", "question 5"]);
    // The next summary holds the one before.
    app.model.then(say("They asked often."));
    turn(&app, &key, "question 6").await;
    let prompts = app.model.prompts();
    let fold = &prompts[prompts.len() - 2].messages[1].content;
    assert!(
        fold.starts_with("Summary of what came before:\nThey asked twice.\n\nUser: question 3\n"),
        "{fold}"
    );
    assert_eq!(summaries(&app).await, [Some("They asked often.".to_owned())]);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_full_context_is_folded_too(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = with_agent(&app, json!({})).await;
    let long = "word ".repeat(10_000);
    turn(&app, &key, &long).await;
    app.model.then(say("They sent words."));
    let run = turn(&app, &key, &long).await;
    assert_eq!(kinds(&run), [("memory", "completed"), ("model", "completed")]);
    assert!(app.model.last_texts()[0].contains("They sent words."));
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_run_goes_on_where_folding_fails(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = talked(&app).await;
    for failure in [Script::Fail(ProviderError::Unavailable("down".into())), say(" \n ")] {
        app.model.then(failure).then(say("answer"));
        let run = turn(&app, &key, "more").await;
        assert_eq!(kinds(&run), [("memory", "failed"), ("model", "completed")]);
        assert!(app.model.last_texts().contains(&"question 1".to_owned()));
    }
    assert_eq!(summaries(&app).await, []);
    // Too little is left for both: it goes into the answer.
    app.reserve_all_but(key.workspace, 6).await;
    let run = turn(&app, &key, "more").await;
    app.free_energy(key.workspace).await;
    assert_eq!(kinds(&run), [("model", "completed")]);
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn a_worker_that_dies_over_it_loses_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, _) = talked(&app).await;
    let take_over = async |other: &TestApp| {
        app.data.clock.advance(Duration::seconds(31));
        assert_eq!(other.service.engine.resume_silent().await.unwrap(), 1);
    };
    let run = json!({ "input": "question 4", "conversation_id": "c" });
    let other = app.replica(auth::RateWindows::local()).await;
    // In the middle of folding.
    app.model.then(Script::Wait("too late".into()));
    let first = begin(&app, &key, run.clone()).await;
    prompted(&app, 4).await;
    take_over(&other).await;
    let first = awaited(&app, &key, &first, "completed").await;
    assert_eq!(kinds(&first), [("memory", "unknown"), ("model", "completed")]);
    assert_eq!(summaries(&app).await, []);
    app.model.release();
    app.service.engine.idle().await;
    // After folding, in the middle of the answer.
    app.model.then(say("They asked.")).then(Script::Wait("too late".into()));
    let second = begin(&app, &key, run).await;
    prompted(&app, 6).await;
    take_over(&other).await;
    let second = awaited(&app, &key, &second, "completed").await;
    assert_eq!(kinds(&second), [("memory", "completed"), ("model", "unknown"), ("model", "completed")]);
    assert!(other.model.last_texts()[0].contains("They asked."));
    assert_eq!(second["energy"]["amount"], 2, "10 and 5 tokens of each tier");
    app.model.release();
    other.service.engine.idle().await;
    check_books(&app, key.workspace).await;
}

#[testkit::both]
async fn tests_and_ephemeral_conversations(kind: Kind) {
    let app = TestApp::new(kind).await;
    let memory = json!({ "mode": "summary", "max_messages": 2 });
    let (key, _) = with_agent(&app, json!({ "memory": memory })).await;
    let test = app.key(key.workspace, Env::Test, &["runs:execute", "runs:read"]).await;
    let mut name = Value::Null;
    for number in 0..3 {
        let mut run = json!({ "input": format!("{number}") });
        if number > 0 {
            run["conversation_id"] = name.clone();
        }
        let run = ask(&app, &test, run).await.expect(200);
        name = run["conversation_id"].clone();
        if number == 2 {
            assert_eq!(run["energy"], json!({ "amount": 0, "simulated": 2 }));
        }
    }
    assert_eq!(summaries(&app).await, [Some("ok".to_owned())]);
    assert_eq!(app.debits().await, 0);
    app.data.clock.advance(Duration::hours(73));
    assert_eq!(app.service.engine.purge_ephemeral().await.unwrap(), 3);
    assert_eq!(summaries(&app).await, []);
}
