//! The service inside another program: no socket, and the same checks as for a request.
//!
//! docs/library.md shows this file. Run it: `cargo run -p server --example library`

#![expect(clippy::indexing_slicing, reason = "JSON that is missing is null")]

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use server::{Config, OperationInput, Service};
use std::time::Duration;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "this is the output of the program")]
async fn main() -> Result<()> {
    // Open the service on a SQLite file. `database_url` names another database, and `model_file` the embedded model.
    let service = Service::open(Config {
        data_dir: std::env::temp_dir().join(format!("svc-library-{}", std::process::id())),
        model_file: std::env::var_os("SVC_MODEL_FILE").map(Into::into),
        ..Config::default()
    })
    .await?;
    let key = service.key_of("Library").await?;
    let shop = Shop { service: &service, key: &key };

    // Create a collection with an item, and list its items.
    let fields = json!([{ "label": "Name", "type": "text" }, { "label": "Price", "type": "number" }]);
    let products = json!({ "name": "Products", "fields": fields });
    let products = shop.call("createCollection", shop.input().body(products)).await?;
    let item = json!({ "data": { "name": "Kite", "price": 19.9 } });
    shop.call("createItem", shop.of(&products).body(item)).await?;
    let items = shop.call("listItems", shop.of(&products).query("filter[price][gt]", 10)).await?;
    println!("items: {items}");

    // Run an agent.
    let agent = json!({ "name": "Assistant", "instructions": "Answer briefly.", "status": "active" });
    let agent = shop.call("createAgent", shop.input().body(agent)).await?;
    let run = json!({ "agent_id": agent["id"], "input": "What is a kite?" });
    let run = shop.call("createRun", shop.input().body(run)).await?;
    println!("run: {}", run["output"]);

    service.stop(Duration::from_secs(5)).await;
    Ok(())
}

/// A workspace of the service.
struct Shop<'a> {
    service: &'a Service,
    key: &'a str,
}

impl Shop<'_> {
    fn input(&self) -> OperationInput {
        OperationInput::with_key(self.key)
    }

    /// Input for an operation of a collection.
    fn of(&self, collection: &Value) -> OperationInput {
        self.input().path("collectionId", &collection["id"])
    }

    /// Calls an operation, and returns the data that it answers.
    async fn call(&self, operation: &str, input: OperationInput) -> Result<Value> {
        let mut answer = self.service.call(operation, &input).await?;
        ensure!(answer.status < 300, "{operation}: {}", answer.body);
        Ok(answer.body.get_mut("data").map(Value::take).unwrap_or_default())
    }
}
