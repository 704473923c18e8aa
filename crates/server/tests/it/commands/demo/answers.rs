//! What the demo's agent answers with the model that `make run` uses.

use serde_json::json;
use std::path::Path;
use std::process::Command;
use testkit::{Kind, Program};

/// The model, which is fetched where it is not there yet.
fn model_file() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join(".cache/models/smollm2-135m-instruct.gguf");
    if !file.exists() {
        let fetched = Command::new("python3").arg(root.join("scripts/fetch-model")).status().unwrap();
        assert!(fetched.success(), "scripts/fetch-model failed");
    }
    file.display().to_string()
}

#[testkit::both]
async fn questions_about_products_get_what_the_shop_has(kind: Kind) {
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
    let program = program.with("SVC_MODEL_FILE", model_file()).with("SVC_MODEL_BALANCED", "local");
    let (serving, demo) = program.serve_demo().await;
    let client = program.client();
    for (question, answer) in [
        ("Do you have wooden trains?", "- Junior Wooden Train (price: 27.85, stock: 28)\n- Everyday"),
        ("And how much are they?", "- Junior Wooden Train (price: 27.85, stock: 28)\n- Everyday"),
        ("Do you sell bicycles?", "I found nothing like that."),
    ] {
        let run = json!({ "input": question, "conversation_id": "customer-1" });
        let asked =
            client.ask("POST", "/runs").header("authorization", &format!("Bearer {}", demo.live)).json(&run);
        let run = asked.send().await.expect(200);
        let output = run["output"].as_str().unwrap();
        assert!(output.contains(answer), "{question}: {output}");
    }
    serving.stop().await;
}
