//! What `svc serve --demo` sets where nobody did: a model server that is there, and receivers on this machine.

use serde_json::{Value, json};
use testkit::{Kind, Program, completion};

const SVC: &str = env!("CARGO_BIN_EXE_svc");

/// An installation that sets no models. Its model server lists several.
async fn without_models(kind: Kind) -> Program {
    let program = Program::new(kind, SVC).await.with("SVC_MODEL_FAST", "");
    let program = program.with("SVC_MODEL_BALANCED", "").with("SVC_MODEL_ADVANCED", "");
    program.model.answer(|request: &Value| match request {
        Value::Null => json!({ "object": "list", "data": [{ "id": "bge-m3" }, { "id": "llama3.2" }] }),
        _ => completion("Paris."),
    });
    program
}

/// How often the server was asked for its models.
fn searches(program: &Program) -> usize {
    program.model.heads().iter().filter(|head| head.starts_with("get /v1/models ")).count()
}

#[testkit::both]
async fn the_demo_uses_a_model_server_that_is_there(kind: Kind) {
    let program = without_models(kind).await;
    let (serving, demo) = program.serve_demo().await;
    let (model, url) = ("llama3.2", program.model.base_url());
    assert!(demo.printed.contains(&format!("the model {model} of {url}")), "{}", demo.printed);
    assert_eq!(searches(&program), 1);
    let bearer = format!("Bearer {}", demo.live);
    let client = program.client();
    let asking = client.ask("POST", "/runs").header("authorization", &bearer);
    let run = asking.json(&json!({ "input": "What is the capital of France?" })).send().await.expect(200);
    assert_eq!(run["output"], "Paris.");
    assert_eq!(program.model.bodies().last().unwrap()["model"], model);
    serving.stop().await;
}

#[testkit::both]
async fn models_that_are_set_win_and_only_the_demo_searches(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    let (serving, demo) = program.serve_demo().await;
    assert_eq!(searches(&program), 0);
    assert!(!demo.printed.contains("The agent uses"), "{}", demo.printed);
    serving.stop().await;
    // A file may say what is the default, too.
    let program = without_models(kind).await;
    let file = program.data_dir().join("svc.toml");
    std::fs::write(&file, "model_fast = \"local\"").unwrap();
    let refused = program.fails_with("SVC_CONFIG", file.to_str().unwrap(), &["serve", "--demo"]);
    assert!(refused.contains("the demo needs a model"), "{refused}");
    program.serve().await.stop().await;
    assert_eq!(searches(&program), 0);
}

#[testkit::both]
async fn a_model_server_that_cannot_be_used_is_named(kind: Kind) {
    let program = without_models(kind).await.with("SVC_OPENAI_API_KEY", "sk-a-key-that-is-wrong");
    program.model.then(401, None, json!({}));
    let mut command = program.command();
    // The server of the test answers on its thread.
    let output = tokio::task::spawn_blocking(move || command.args(["serve", "--demo"]).output()).await;
    let refused = String::from_utf8(output.unwrap().unwrap().stderr).unwrap();
    assert!(refused.contains("the demo needs a model"), "{refused}");
    assert!(refused.contains("does not accept the key"), "{refused}");
    testkit::assert_absent(&refused, "sk-a-key-that-is-wrong");
}

#[testkit::both]
async fn the_demo_reaches_receivers_on_this_machine(kind: Kind) {
    let program = Program::new(kind, SVC).await;
    let client = program.client();
    let (serving, demo) = program.serve_demo().await;
    let add = async |url: &str| {
        let body = json!({ "url": url, "enabled_events": ["item.*"] });
        let bearer = format!("Bearer {}", demo.live);
        let asking = client.ask("POST", "/webhook-endpoints").header("authorization", &bearer);
        asking.json(&body).send().await.status
    };
    assert!(demo.printed.contains("SVC_ALLOW_OUTBOUND"), "{}", demo.printed);
    for url in ["http://127.0.0.1:9000/hook", "http://localhost:9000/hook", "http://[::1]:9000/hook"] {
        assert_eq!(add(url).await, 201, "{url}");
    }
    for url in ["http://10.0.0.1:9000/hook", "http://169.254.169.254/latest"] {
        assert_eq!(add(url).await, 400, "{url}");
    }
    serving.stop().await;
    // What is set wins.
    let program = program.with("SVC_ALLOW_OUTBOUND", "10.0.0.1:9000");
    let (serving, _) = program.serve_demo_again().await;
    assert_eq!(add("http://127.0.0.1:9000/hook").await, 400);
    assert_eq!(add("http://10.0.0.1:9000/hook").await, 201);
    serving.stop().await;
}
