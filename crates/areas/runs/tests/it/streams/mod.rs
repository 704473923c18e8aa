//! Runs that are told as they go on: `stream: true`.

mod events;
mod lifetime;

use serde_json::{Value, json};
use testkit::{Answer, Asking, Heard, Key, Listening, Script, TestApp};

pub fn asking<'a>(app: &'a TestApp, key: &Key, mut run: Value) -> Asking<'a> {
    run["stream"] = true.into();
    app.ask("POST", "/runs").key(key).json(&run)
}

pub async fn listen(app: &TestApp, key: &Key, run: Value) -> Listening {
    asking(app, key, run).listen().await
}

/// A request with an `Idempotency-Key`.
pub fn once<'a>(app: &'a TestApp, key: &Key) -> Asking<'a> {
    asking(app, key, json!({ "input": "Hi" })).header("idempotency-key", "k1")
}

pub fn pieces(pieces: &[&str]) -> Script {
    Script::Pieces(pieces.iter().map(|piece| (*piece).to_owned()).collect())
}

pub fn names(events: &[Heard]) -> Vec<&str> {
    events.iter().map(|event| event.name.as_str()).collect()
}

/// What a reader has of each step's text in the end.
pub fn texts(events: &[Heard]) -> Vec<String> {
    let mut texts: Vec<(String, Vec<char>)> = Vec::new();
    for event in events.iter().filter(|event| event.name == "output.delta") {
        let step = event.data["step_id"].as_str().unwrap();
        if texts.last().is_none_or(|(last, _)| last != step) {
            texts.push((step.to_owned(), Vec::new()));
        }
        let text = &mut texts.last_mut().unwrap().1;
        text.truncate(event.data["offset"].as_u64().unwrap() as usize);
        text.extend(event.data["delta"].as_str().unwrap().chars());
    }
    texts.into_iter().map(|(_, text)| text.into_iter().collect()).collect()
}

/// The run that the last event tells.
pub fn last_run(events: &[Heard]) -> Value {
    let last = events.last().unwrap();
    assert_eq!(last.data["success"], true, "{last:?}");
    last.data["data"].clone()
}

pub fn is_replayed(answer: &Answer) -> bool {
    answer.headers.get("idempotent-replayed").is_some_and(|value| value == "true")
}
