//! A test of the whole crate with the real model. It checks only that answers are well formed, not what they say.
//!
//! It is a single test, because nextest runs each test in its own process, which would load the model again.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of a test")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use local_model::{
    Completion, Engine, Error, Event, Finish, Generation, Message, Options, Request, Role, Tool,
};
use serde_json::{Value, json};

/// Returns the file named by `SVC_MODEL_FILE`, or else the file that `scripts/fetch-model` puts into the cache.
fn model_file() -> PathBuf {
    if let Some(file) = std::env::var_os("SVC_MODEL_FILE") {
        return file.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let file = root.join(".cache/models/smollm2-135m-instruct.gguf");
    if !file.exists() {
        let status = Command::new("python3").arg(root.join("scripts/fetch-model")).status().unwrap();
        assert!(
            status.success(),
            "scripts/fetch-model failed; set SVC_MODEL_FILE or fetch the model by hand"
        );
    }
    file
}

fn request(question: &str, tokens: u32) -> Request {
    Request {
        messages: vec![Message::new(Role::User, question)],
        max_output_tokens: tokens,
        seed: 1,
        ..Request::default()
    }
}

/// Returns all tokens of a generation and its end.
async fn collect(mut generation: Generation) -> (Vec<String>, Result<Completion, Error>) {
    let mut tokens = Vec::new();
    while let Some(event) = generation.next().await {
        match event {
            Event::Token(token) => tokens.push(token),
            Event::Done(completion) => {
                assert_eq!(generation.next().await, None, "nothing follows the end");
                return (tokens, Ok(completion));
            }
            Event::Failed(error) => return (tokens, Err(error)),
        }
    }
    panic!("the generation ended without Done or Failed");
}

async fn answer(engine: &Engine, request: Request) -> Completion {
    let most = request.max_output_tokens;
    let (tokens, completion) = collect(engine.generate(request).unwrap()).await;
    let completion = completion.unwrap();
    assert_eq!(tokens.concat(), completion.text);
    assert!(completion.output_tokens <= most);
    assert!(completion.prompt_tokens > 0);
    assert_eq!(completion.finish == Finish::ToolCalls, !completion.tool_calls.is_empty());
    completion
}

fn weather() -> Tool {
    Tool {
        name: "get_weather".into(),
        description: "The current weather of a city".into(),
        parameters: json!({"type": "object", "additionalProperties": false, "required": ["city", "unit"],
            "properties": {"city": {"type": "string"}, "unit": {"enum": ["celsius", "fahrenheit"]}}}),
    }
}

#[tokio::test]
async fn the_real_model() {
    let engine = Engine::load(&model_file(), Options { queue: 2, ..Options::default() }).unwrap();
    assert_eq!(engine.label(), "smollm2-135m");
    assert!(engine.context_tokens() >= 2048);

    text(&engine).await;
    structured(&engine).await;
    tool_call(&engine).await;
    cancel(&engine).await;
    queue(&engine).await;
    threads(&engine).await;
}

async fn text(engine: &Engine) {
    let first = answer(engine, request("Say hello in one sentence.", 12)).await;
    assert!(matches!(first.finish, Finish::Stop | Finish::Length) && !first.text.trim().is_empty());
    let none = answer(engine, request("Say hello in one sentence.", 0)).await;
    assert_eq!((none.finish, none.output_tokens, none.text.as_str()), (Finish::Length, 0, ""));
    assert_eq!(none.prompt_tokens, first.prompt_tokens);
}

async fn structured(engine: &Engine) {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["city", "visitors", "tags"],
        "properties": {"city": {"type": "string"}, "visitors": {"type": "integer"},
            "tags": {"type": "array", "items": {"enum": ["old", "new"]}}}});
    let request = Request { output_schema: Some(schema.clone()), ..request("Describe Paris as JSON.", 48) };
    let done = answer(engine, request).await;
    assert_eq!(done.finish, Finish::Stop);
    let value: Value = serde_json::from_str(&done.text).unwrap();
    assert!(jsonschema::is_valid(&schema, &value), "{value}");
}

async fn tool_call(engine: &Engine) {
    let ask = Request { tools: vec![weather()], ..request("What is the weather in Oslo?", 48) };
    let done = answer(engine, ask.clone()).await;
    assert_eq!((done.finish, done.text.as_str()), (Finish::ToolCalls, ""));
    let call = done.tool_calls[0].clone();
    assert_eq!(call.name, "get_weather");
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
    assert!(jsonschema::is_valid(&weather().parameters, &arguments), "{arguments}");

    // A call with a result leads to text.
    let mut messages = ask.messages.clone();
    messages.push(Message { tool_calls: vec![call.clone()], ..Message::new(Role::Assistant, "") });
    messages.push(Message { tool_call_id: Some(call.id), ..Message::new(Role::Tool, r#"{"celsius":3}"#) });
    let done = answer(engine, Request { messages, max_output_tokens: 8, ..ask }).await;
    assert!(done.tool_calls.is_empty());
}

async fn cancel(engine: &Engine) {
    let mut generation = engine.generate(request("Tell a very long story.", 2000)).unwrap();
    assert!(matches!(generation.next().await, Some(Event::Token(_))));
    generation.cancel();
    let (tokens, end) = collect(generation).await;
    assert_eq!(end, Err(Error::Cancelled));
    // The tokens generated until the flag was seen, counted instead of timed.
    assert!(tokens.len() < 200, "{} tokens after cancelling", tokens.len());
}

async fn queue(engine: &Engine) {
    let mut running = engine.generate(request("Tell a very long story.", 2000)).unwrap();
    assert!(matches!(running.next().await, Some(Event::Token(_))));
    let waiting = engine.generate(request("Hello", 4)).unwrap();
    let dropped = engine.generate(request("Hello", 4)).unwrap();
    assert_eq!(engine.generate(request("Hello", 4)).unwrap_err(), Error::Busy);
    // A cancelled request frees its place; the others are answered in order.
    drop(dropped);
    let last = engine.generate(request("Hello", 4)).unwrap();
    drop(running);
    assert!(collect(waiting).await.1.is_ok());
    assert!(collect(last).await.1.is_ok());
}

/// Checks that candle's process-wide pool of busy-waiting threads, which large operations start, is never started.
/// The engine uses only its own pool.
async fn threads(engine: &Engine) {
    let long = "A sentence to make the prompt long. ".repeat(30);
    let done = answer(engine, request(&long, 2)).await;
    assert!(done.prompt_tokens > 256, "too short to tell");
    if let Ok(tasks) = std::fs::read_dir("/proc/self/task") {
        let name = |task: std::io::Result<std::fs::DirEntry>| {
            std::fs::read_to_string(task.unwrap().path().join("comm"))
        };
        let names: Vec<String> = tasks.filter_map(|task| name(task).ok()).collect();
        assert!(names.iter().any(|name| name.starts_with("local-model")), "{names:?}");
        assert!(!names.iter().any(|name| name.starts_with("candle")), "{names:?}");
    }
}
