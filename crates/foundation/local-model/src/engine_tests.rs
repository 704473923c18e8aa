//! Tests of the engine with the tiny model: loading, the forward pass and grammars. Answers of this model are noise.

use std::fs;

use serde_json::{Value, json};

use crate::{
    Completion, Engine, Error, Event, Finish, Generation, Message, Options, Request, Role, Tool,
    tiny::{CONTEXT, file, file_with, qwen2},
};

fn engine() -> Engine {
    let (_folder, path) = file();
    Engine::load(&path, Options { threads: Some(2), queue: 1 }).unwrap()
}

fn request(question: &str) -> Request {
    Request {
        messages: vec![Message::new(Role::User, question)],
        max_output_tokens: 40,
        temperature: Some(0.7),
        seed: 5,
        ..Request::default()
    }
}

async fn end(mut generation: Generation) -> (String, Result<Completion, Error>) {
    let mut text = String::new();
    loop {
        match generation.next().await.unwrap() {
            Event::Token(token) => text.push_str(&token),
            Event::Done(completion) => return (text, Ok(completion)),
            Event::Failed(error) => return (text, Err(error)),
        }
    }
}

async fn answer(engine: &Engine, request: Request) -> Completion {
    let (text, completion) = end(engine.generate(request).unwrap()).await;
    let completion = completion.unwrap();
    assert_eq!(completion.text, text);
    completion
}

fn load_error(path: &std::path::Path) -> Error {
    Engine::load(path, Options::default()).unwrap_err()
}

#[tokio::test]
async fn equal_seeds_give_equal_answers_and_a_cached_prefix_changes_nothing() {
    let first = engine();
    let one = answer(&first, request("question")).await;
    let again = answer(&first, request("question")).await;
    let other = answer(&engine(), request("question")).await;
    assert_eq!(one.text, again.text);
    assert_eq!(one.text, other.text);
    assert_eq!(one.prompt_tokens, again.prompt_tokens);
    assert_eq!(first.label(), "Tiny");
    assert_eq!(first.context_tokens(), CONTEXT);
}

#[tokio::test]
async fn the_architecture_qwen2_answers_with_its_own_positions_and_biases() {
    let (_folder, path) = qwen2();
    let engine = Engine::load(&path, Options { threads: Some(2), queue: 1 }).unwrap();
    let one = answer(&engine, request("question")).await;
    assert_eq!(one.text, answer(&engine, request("question")).await.text);
    assert_ne!(one.text, answer(&self::engine(), request("question")).await.text);
}

#[tokio::test]
async fn any_prompt_length_works() {
    let engine = engine();
    for length in [0, 1, 60, 700, 5000] {
        let mut request = request(&"long ".repeat(length));
        request.max_output_tokens = 3;
        request.messages.insert(0, Message::new(Role::Assistant, "x".repeat(length)));
        let done = answer(&engine, request).await;
        assert!(done.prompt_tokens as usize + 3 <= CONTEXT);
    }
    let all = Request { max_output_tokens: u32::MAX, temperature: Some(2.), ..request("x") };
    let done = answer(&engine, all).await;
    assert!((done.prompt_tokens + done.output_tokens) as usize <= CONTEXT);
}

#[tokio::test]
async fn noise_still_makes_valid_json() {
    let engine = engine();
    let schema = json!({"type": "object", "required": ["a", "b"], "additionalProperties": false, "properties": {
        "a": {"type": "string"}, "b": {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        "c": {"type": "number"}}});
    for seed in 0..5 {
        let request =
            Request { output_schema: Some(schema.clone()), seed, max_output_tokens: 200, ..request("json") };
        let done = answer(&engine, request).await;
        assert_eq!(done.finish, Finish::Stop, "{}", done.text);
        let value: Value = serde_json::from_str(&done.text).unwrap();
        assert!(jsonschema::is_valid(&schema, &value), "{value}");
    }
    let schema = Some(json!({"type": "nonsense"}));
    let failed = end(engine.generate(Request { output_schema: schema, ..request("json") }).unwrap()).await.1;
    assert!(matches!(failed, Err(Error::InvalidRequest(_))));
}

#[tokio::test]
async fn noise_still_makes_valid_calls() {
    let engine = engine();
    let parameters = json!({"type": "object", "required": ["city"], "additionalProperties": false,
        "properties": {"city": {"type": "string"}}});
    let tool = |name: &str| Tool {
        name: name.into(),
        description: "weather".into(),
        parameters: parameters.clone(),
    };
    let tools = vec![tool("weather_now"), tool("weather_then")];
    for question in ["weather", "weather_then please"] {
        let request = Request { tools: tools.clone(), max_output_tokens: 200, ..request(question) };
        let done = answer(&engine, request).await;
        assert_eq!(done.finish, Finish::ToolCalls);
        let call = &done.tool_calls[0];
        assert!(tools.iter().any(|tool| tool.name == call.name) && call.id.starts_with("call_"));
        assert!(jsonschema::is_valid(&parameters, &serde_json::from_str(&call.arguments).unwrap()));
    }
    // No word in common: the random model writes text or a call.
    let done = answer(&engine, Request { tools: tools.clone(), ..request("hello") }).await;
    assert!(done.text.is_empty() || done.tool_calls.is_empty());
    // Truncated: neither an incomplete call nor text.
    let done =
        answer(&engine, Request { tools: tools.clone(), max_output_tokens: 5, ..request("weather_now") })
            .await;
    assert_eq!((done.finish, done.text.as_str(), done.tool_calls.len()), (Finish::Length, "", 0));
    // A tool whose parameters have no grammar is not called.
    let odd = Tool { parameters: json!({"properties": {"x": {"type": "nonsense"}}}), ..tool("weather_odd") };
    let done = answer(&engine, Request { tools: vec![odd], ..request("weather_odd") }).await;
    assert!(done.tool_calls.is_empty());
}

#[tokio::test]
async fn a_full_queue_is_busy_and_cancelling_makes_room() {
    let engine = engine();
    let long = Request { max_output_tokens: 800, ..request("long") };
    let mut running = engine.generate(long.clone()).unwrap();
    assert!(running.next().await.is_some());
    let waiting = engine.generate(request("b")).unwrap();
    assert_eq!(engine.generate(request("c")).unwrap_err(), Error::Busy);
    waiting.cancel();
    let last = engine.generate(request("d")).unwrap();
    assert_eq!(end(waiting).await.1, Err(Error::Cancelled));
    drop(running);
    assert!(end(last).await.1.is_ok());
    // The last handle may be dropped during an answer.
    let last = engine.generate(request("e")).unwrap();
    drop(engine);
    assert!(end(last).await.1.is_ok());
}

#[test]
fn says_what_is_wrong_with_a_file() {
    let (folder, path) = file();
    let missing = folder.path().join("missing.gguf");
    assert_eq!(load_error(&missing), Error::FileMissing(missing));
    assert!(matches!(load_error(folder.path()), Error::NotGguf(_) | Error::Load(_)));

    let whole = fs::read(&path).unwrap();
    for length in [0, 3, 10, whole.len() / 2, whole.len() - 1000] {
        let cut = folder.path().join("cut.gguf");
        fs::write(&cut, &whole[..length]).unwrap();
        assert!(matches!(load_error(&cut), Error::NotGguf(_)), "{length}: {}", load_error(&cut));
    }

    // The type of a tensor follows its name and two dimensions.
    let mut unknown = whole.clone();
    let name = b"token_embd.weight";
    let place = whole.windows(name.len()).position(|window| window == name).unwrap() + name.len() + 4 + 16;
    unknown[place] = 200;
    fs::write(&path, unknown).unwrap();
    assert!(matches!(load_error(&path), Error::UnsupportedQuantisation(_)), "{}", load_error(&path));
}

#[test]
fn says_what_is_wrong_with_a_model() {
    use candle_core::quantized::gguf_file::Value;
    let with = |key: &'static str, value: Value| {
        let (_folder, path) = file_with(|metadata| {
            metadata.retain(|(other, _)| *other != key);
            metadata.push((key, value));
        });
        load_error(&path)
    };
    let unsupported = [
        with("general.architecture", Value::String("mamba".into())),
        with("tokenizer.ggml.model", Value::String("llama".into())),
        with("llama.attention.head_count", Value::U32(0)),
        with("llama.attention.head_count", Value::U32(5)),
        with("tokenizer.ggml.token_type", Value::Array(vec![Value::I32(1)])),
    ];
    for error in unsupported {
        assert!(matches!(error, Error::UnsupportedArchitecture(_)), "{error}");
    }
    for (key, value) in [
        ("llama.block_count", Value::U32(9)),
        ("llama.block_count", Value::String("two".into())),
        ("llama.embedding_length", Value::U32(128)),
        ("tokenizer.ggml.tokens", Value::U32(1)),
    ] {
        let error = with(key, value);
        assert!(matches!(error, Error::NotGguf(_)), "{key}: {error}");
    }
}
