//! Questions to a contact, and its answers.

use super::shop::Shop;
use bytes::Bytes;
use conversations::Transcriber;
use operation::BoxFuture;
use serde_json::{Value, json};
use simulator::Action;
use std::sync::Arc;
use testkit::{Kind, TestApp};

fn question(more: Value) -> Value {
    let mut config = json!({ "text": "Which size?", "expects": "number", "save_to": "size" });
    for (name, value) in more.as_object().unwrap() {
        config[name] = value.clone();
    }
    json!({ "size": ["ask", config], "done": ["end", { "output": "{{ $flow.size }}" }] })
}

async fn ask(shop: &Shop, more: Value) -> String {
    let kind = if more["expects"] == "text" { "text" } else { "number" };
    let variables = json!([{ "name": "size", "type": kind }]);
    let flow =
        shop.flow(question(more), &["start>size", "size>done"], json!({ "variables": variables })).await;
    shop.start(&flow).await
}

#[testkit::both]
async fn a_wrong_answer_is_answered_and_the_right_one_counts(kind: Kind) {
    let shop = Shop::open(kind).await;
    let asked = shop.asked();
    let run = ask(&shop, json!({ "invalid_text": "A number, please." })).await;
    assert_eq!(shop.last(), "Which size?");
    let waiting = shop.expect(&run, "waiting").await;
    assert_eq!(waiting["waiting_for"][0]["type"], "reply");
    shop.says("large").await;
    assert_eq!(shop.last(), "A number, please.");
    shop.says("42,5").await;
    let run = shop.expect(&run, "completed").await;
    assert_eq!(run["output"], json!(42.5));
    // The agent had nothing to do with it, and answers what comes afterwards.
    assert_eq!(shop.asked(), asked);
    shop.says("Thanks").await;
    assert_eq!(shop.asked(), asked + 1);
}

#[testkit::both]
async fn after_too_many_wrong_answers_the_run_leaves_at_invalid(kind: Kind) {
    let shop = Shop::open(kind).await;
    let run = ask(&shop, json!({ "retries": 1 })).await;
    shop.says("large").await;
    assert_eq!(shop.last(), "Which size?");
    shop.expect(&run, "waiting").await;
    shop.says("larger").await;
    assert_eq!(shop.port(&run, "size").await, "completed invalid");
}

#[testkit::both]
async fn a_question_times_out_and_a_late_answer_is_left_to_the_agent(kind: Kind) {
    let shop = Shop::open(kind).await;
    let run = ask(&shop, json!({ "timeout_seconds": 600 })).await;
    shop.after(599).await;
    shop.expect(&run, "waiting").await;
    shop.after(2).await;
    assert_eq!(shop.port(&run, "size").await, "completed timeout");
    let asked = shop.asked();
    shop.says("42").await;
    assert_eq!(shop.asked(), asked + 1);
}

const CHOICES: &[&str] = &["Red", "Green", "Blue", "Black"];

async fn choose(shop: &Shop, count: usize) -> String {
    let choices: Vec<Value> =
        CHOICES[..count].iter().map(|title| json!({ "id": title.to_lowercase(), "title": title })).collect();
    let nodes = json!({
        "color": ["ask", { "text": "Which color?", "expects": "choice", "choices": choices }],
        "red": ["end", { "output": "red it is" }],
        "other": ["end", { "output": "{{ $nodes.color.output.value }}" }],
    });
    let flow = shop.flow(nodes, &["start>color", "color:red>red", "color>other"], json!({})).await;
    let run = shop.start(&flow).await;
    shop.expect(&run, "waiting").await;
    assert_eq!(shop.last(), "interactive");
    run
}

#[testkit::both]
async fn a_choice_is_pressed_or_typed(kind: Kind) {
    let shop = Shop::open(kind).await;
    let run = choose(&shop, 3).await;
    shop.presses("Red").await;
    assert_eq!(shop.expect(&run, "completed").await["output"], "red it is");
    assert_eq!(shop.port(&run, "color").await, "completed red");
    // More than three choices are a list.
    let run = choose(&shop, 4).await;
    shop.presses("Black").await;
    assert_eq!(shop.expect(&run, "completed").await["output"], "black");
    let run = choose(&shop, 3).await;
    shop.says("yellow").await;
    shop.says("GREEN!").await;
    assert_eq!(shop.expect(&run, "completed").await["output"], "green");
}

#[testkit::both]
async fn a_button_of_another_question_is_no_answer(kind: Kind) {
    let shop = Shop::open(kind).await;
    let old = choose(&shop, 3).await;
    shop.cancel(&old).await;
    let run = ask(&shop, json!({ "expects": "text" })).await;
    // The last message with buttons is that of the run that was cancelled.
    shop.presses("Red").await;
    shop.expect(&run, "waiting").await;
    shop.says("Large").await;
    assert_eq!(shop.expect(&run, "completed").await["output"], "Large");
    shop.expect(&old, "cancelled").await;
}

#[testkit::both]
async fn the_newest_run_gets_the_answer(kind: Kind) {
    let shop = Shop::open(kind).await;
    let first = ask(&shop, json!({})).await;
    shop.after(1).await;
    let second = ask(&shop, json!({})).await;
    shop.says("2").await;
    assert_eq!(shop.expect(&second, "completed").await["output"], 2);
    shop.expect(&first, "waiting").await;
    shop.says("1").await;
    assert_eq!(shop.expect(&first, "completed").await["output"], 1);
}

#[testkit::both]
async fn a_run_that_was_cancelled_takes_no_answer(kind: Kind) {
    let shop = Shop::open(kind).await;
    let run = ask(&shop, json!({})).await;
    shop.cancel(&run).await;
    let asked = shop.asked();
    shop.says("42").await;
    assert_eq!(shop.asked(), asked + 1);
    shop.expect(&run, "cancelled").await;
}

#[testkit::both]
async fn what_was_written_before_the_question_is_no_answer(kind: Kind) {
    let shop = Shop::open(kind).await;
    shop.desk.network.write(&shop.ana.user_id, "41").unwrap();
    shop.settle().await;
    let run = ask(&shop, json!({})).await;
    shop.settle().await;
    shop.expect(&run, "waiting").await;
}

#[testkit::both]
async fn messages_are_gathered_for_a_while(kind: Kind) {
    let shop = Shop::open(kind).await;
    let wait = json!({ "buffer_seconds": 20, "keywords": ["order"], "timeout_seconds": 600 });
    let nodes = json!({ "wait": ["wait_for_reply", wait] });
    let flow = shop.flow(nodes, &["start>wait"], json!({})).await;
    let run = shop.start(&flow).await;
    let asked = shop.asked();
    shop.says("Good morning").await;
    assert_eq!(shop.asked(), asked + 1, "a message without the keyword is left to the agent");
    shop.says("My ORDER is late.").await;
    shop.after(10).await;
    shop.says("It is 1042.").await;
    shop.expect(&run, "waiting").await;
    shop.after(11).await;
    let run = shop.expect(&run, "completed").await;
    assert_eq!(run["output"]["text"], "My ORDER is late.\nIt is 1042.");
    assert_eq!(shop.asked(), asked + 1);
}

#[testkit::both]
async fn a_question_outside_the_window_fails_or_becomes_a_task(kind: Kind) {
    let shop = Shop::open(kind).await;
    shop.after(25 * 3600).await;
    let run = ask(&shop, json!({})).await;
    let failed = shop.expect(&run, "failed").await;
    assert_eq!(failed["error"]["code"], "window_closed");
    let run = ask(&shop, json!({ "if_window_closed": "task" })).await;
    shop.expect(&run, "waiting").await;
    let tasks = shop.desk.get(&format!("/workspaces/{}/tasks", shop.desk.workspace)).await.expect(200);
    assert_eq!(tasks.as_array().unwrap().len(), 1, "{tasks}");
    shop.says("7").await;
    assert_eq!(shop.expect(&run, "completed").await["output"], 7);
}

/// Hears a number in every voice note.
struct Listener;

impl Transcriber for Listener {
    fn transcribe(&self, _: Bytes, _: String) -> BoxFuture<model::Result<String>> {
        Box::pin(async { Ok("42".to_owned()) })
    }
}

#[testkit::both]
async fn a_voice_note_answers_by_its_transcript(kind: Kind) {
    let shop = Shop::around(TestApp::with_transcriber(kind, Arc::new(Listener)).await).await;
    let run = ask(&shop, json!({})).await;
    let note = Action::VoiceNote { words: "42".to_owned() };
    shop.desk.network.act(&shop.ana.user_id, &note).unwrap();
    shop.desk.let_pass(3).await;
    shop.settle().await;
    assert_eq!(shop.expect(&run, "completed").await["output"], 42);
}
