//! The service inside another program.

use serde_json::json;
use server::{Config, OperationInput, Service};
use std::time::Duration;
use store::Backend;
use testkit::{Kind, OpenAiServer, TestDb};

/// A service on a database of its own, with a scripted model.
async fn open(data: &TestDb, folder: &tempfile::TempDir, model: &OpenAiServer) -> anyhow::Result<Service> {
    let (Backend::Sqlite(place) | Backend::Postgres(place)) = &data.backend;
    let scheme = if matches!(data.backend, Backend::Sqlite(_)) { "sqlite:" } else { "" };
    Service::open(Config {
        database_url: Some(format!("{scheme}{place}")),
        data_dir: folder.path().to_owned(),
        secret_key: Some("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_owned()),
        model_balanced: "openai:test".to_owned(),
        openai_base_url: model.base_url(),
        ..Config::default()
    })
    .await
}

#[testkit::both]
async fn operations_are_called_without_a_socket(kind: Kind) {
    let (data, folder, model) =
        (TestDb::new(kind), tempfile::tempdir().unwrap(), OpenAiServer::start().await);
    model.answer(|_| testkit::completion("A toy that flies."));
    let service = open(&data, &folder, &model).await.unwrap();
    let key = service.key_of("Library").await.unwrap();
    let input = || OperationInput::with_key(&key);
    let call = async |operation: &str, input: OperationInput| {
        let answer = service.call(operation, &input).await.unwrap();
        (answer.status, answer.body)
    };

    let fields = json!([{ "label": "Name", "type": "text" }, { "label": "Price", "type": "number" }]);
    let products = json!({ "name": "Products", "fields": fields });
    let (status, made) = call("createCollection", input().body(products)).await;
    assert_eq!(status, 201, "{made}");
    let of_products = || input().path("collectionId", &made["data"]["id"]);
    let kite = of_products().body(json!({ "data": { "name": "Kite & co", "price": 19.9 } }));
    let kite = kite.header("idempotency-key", "first");
    let (first, again) = (call("createItem", kite.clone()).await, call("createItem", kite).await);
    assert_eq!((first.0, &first.1["data"]["id"]), (201, &again.1["data"]["id"]));
    let named = |name: &str| of_products().query("filter[name]", name).query("filter[price][gt]", 10);
    let (_, found) = call("listItems", named("Kite & co")).await;
    assert_eq!(found["data"][0]["data"]["name"], "Kite & co");
    assert_eq!(call("listItems", named("Kite")).await.1["data"], json!([]));

    let agent = json!({ "name": "Assistant", "status": "active" });
    let (status, agent) = call("createAgent", input().body(agent)).await;
    assert_eq!(status, 201, "{agent}");
    let run = json!({ "agent_id": agent["data"]["id"], "input": "What is a kite?" });
    let (status, run) = call("createRun", input().body(run)).await;
    assert_eq!((status, &run["data"]["output"]), (200, &json!("A toy that flies.")), "{run}");

    // The gates are those of requests.
    let (status, refused) = call("listAgents", OperationInput::with_key("unknown")).await;
    assert_eq!((status, &refused["error"]["code"]), (401, &json!("invalid_api_key")));
    let (status, refused) = call("createItem", of_products().body(json!({ "data": { "price": "x" } }))).await;
    assert_eq!((status, &refused["error"]["param"]), (400, &json!("data.price")));
    let (status, refused) = call("listItems", of_products().query("filter[nothing]", 1)).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("validation_error")));

    let misused = async |operation: &str, input: OperationInput| {
        service.call(operation, &input).await.unwrap_err().to_string()
    };
    assert!(misused("makeCoffee", input()).await.contains("`makeCoffee`"));
    assert!(misused("listItems", input()).await.contains("collectionId"));
    assert!(misused("uploadFile", input()).await.contains("form"));
    service.stop(Duration::from_secs(5)).await;
}

#[testkit::both]
async fn a_sqlite_file_has_one_service(kind: Kind) {
    let (data, folder, model) =
        (TestDb::new(kind), tempfile::tempdir().unwrap(), OpenAiServer::start().await);
    let first = open(&data, &folder, &model).await.unwrap();
    let second = open(&data, &folder, &model).await;
    assert_eq!(second.is_err(), matches!(kind, Kind::Sqlite));
    first.stop(Duration::from_secs(5)).await;
    open(&data, &folder, &model).await.unwrap();
}

#[test]
fn the_document_shows_the_example() {
    let example = include_str!("../../../examples/library.rs");
    let document = include_str!("../../../../../docs/library.md");
    let shown = format!("```rust\n{example}```\n");
    assert!(document.contains(&shown), "docs/library.md: copy examples/library.rs into it");
}

#[test]
fn settings_have_defaults_without_variables() {
    let config = Config::default();
    assert_eq!((config.data_dir.to_str(), config.model_fast.as_str()), (Some("data"), "local"));
}
