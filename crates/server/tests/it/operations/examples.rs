//! The examples of the contract: every operation has them, and what they promise is done.
//!
//! They are about one small shop, like that of `svc serve --demo`: collection 1 has its products, agent 1 answers its
//! customers. An id in a body is the one that the object has there.

use crate::operations::answers::{insert_file, seed};
use crate::operations::document::{Document, Op};
use crate::operations::sweep::Sweep;
use crate::operations::valid::address;
use operation::{Contract, document, lacking_examples};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testkit::{Answer, Key, Kind};

/// Texts that show nothing.
const PLACEHOLDERS: [&str; 9] = ["", "string", "text", "example", "foo", "bar", "test", "value", "x"];

/// Operations that need another object than the one that most of them need: operation, parameter and id.
const OTHERS: [(&str, &str, &str); 7] = [
    ("deleteAgent", "agentId", "2"),
    ("deleteField", "fieldId", "8"),
    ("deleteFieldOption", "optionId", "6"),
    // No message waits to be sent with it.
    ("deleteFile", "fileId", "2"),
    // No agent has it.
    ("deleteSkill", "skillId", "2"),
    ("restoreItem", "itemId", "3"),
    // A draft, and not the one that was sent.
    ("updateBroadcast", "broadcastId", "1"),
];

/// What must have been done before an operation, which others before it may have undone: method and path.
const BEFORE: [(&str, &str, &str); 3] = [
    ("enrichContact", "POST", "/agents/{agentId}/activate"),
    ("replayWebhookEndpoint", "POST", "/webhook-endpoints/{endpointId}/enable"),
    ("detachAgentTool", "PUT", "/agents/{agentId}/tools/{toolId}"),
];

/// Operations whose example needs a server or a person elsewhere, and what they answer without them.
const ELSEWHERE: [(&str, &str); 3] = [
    // A network that answers.
    ("connectChannel", "validation_error"),
    ("importFileFromUrl", "fetch_failed"),
    // Nobody knows the password of the member who asks.
    ("changeOwnPassword", "validation_error"),
];

/// Operations that come first, or last within their method, because what the others do gets in their way.
const FIRST: [&str; 2] = ["reorderFields", "retryWebhookDelivery"];

#[test]
fn the_input_of_every_operation_is_checked_by_its_schemas() {
    let registry = server::registry().unwrap();
    let unchecked = registry.operations().iter().filter(|one| !one.checks_all_input());
    let unchecked: Vec<&str> = unchecked.map(|one| one.meta().id).collect();
    assert!(unchecked.is_empty(), "`#[param(inline)]` at the query parameters of {unchecked:?}");
}

#[test]
fn every_operation_has_examples() {
    let registry = server::registry().unwrap();
    for contract in [Contract::Public, Contract::Partner, Contract::Dashboard] {
        let lacking = lacking_examples(&registry, contract).unwrap();
        assert!(
            lacking.is_empty(),
            "`#[schema(example = …)]` of the types must state:\n{}",
            lacking.join("\n")
        );
        let text = document(&registry, contract, server::VERSION).unwrap();
        let document = Document(serde_json::from_str(&text).unwrap());
        for op in document.operations() {
            if let Some(schema) = &op.body {
                let example = document.request_example(&op);
                let schema = document.standalone(schema);
                fits(&schema, &example, &format!("{} request", op.id));
            }
            for (status, example) in document.response_examples(&op) {
                let schema = document.answer_schema(&op, status).unwrap();
                fits(&schema, &example, &format!("{} {status}", op.id));
            }
        }
    }
}

#[track_caller]
fn fits(schema: &Value, example: &Value, what: &str) {
    let validator =
        jsonschema::options().should_validate_formats(true).build(schema).expect("the schema compiles");
    let errors: Vec<String> =
        validator.iter_errors(example).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{what}: {errors:?}: {example}");
    texts(example, "", &mut |path, text| {
        // What was asked for may be empty: no query, no description.
        let may_be_empty = path.ends_with(".query") || path.ends_with(".description");
        let shows_nothing =
            PLACEHOLDERS.contains(&text.to_lowercase().as_str()) && !(text.is_empty() && may_be_empty);
        // In a JSON Schema `string` is a type.
        let is_type = path.ends_with(".type") || path.ends_with(".x-svc-type");
        assert!(!shows_nothing || is_type, "{what}: {path} is a placeholder");
    });
}

/// All texts in a value, with their paths.
fn texts(value: &Value, path: &str, found: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) => found(path, text),
        Value::Array(rows) => rows.iter().for_each(|row| texts(row, path, found)),
        Value::Object(fields) => {
            for (name, field) in fields {
                texts(field, &format!("{path}.{name}"), found);
            }
        }
        _ => {}
    }
}

/// The shop of the examples, and the ids of everything in it by the names that paths have for them.
async fn shop(sweep: &Sweep) -> BTreeMap<String, String> {
    let (app, key) = (&sweep.app, &sweep.keys[&(false, true)]);
    let choices = |labels: &[&str]| json!({ "choices": labels.iter().map(|label| json!({ "label": label })).collect::<Vec<_>>() });
    let products = json!({ "name": "Products", "fields": [
        { "label": "Name", "type": "text", "required": true },
        { "label": "SKU", "type": "text", "unique": true, "options": { "pattern": "[A-Z]{3}-[0-9]{4}" } },
        { "label": "Category", "type": "select",
          "options": choices(&["Toys", "Home", "Kitchen", "Clothing", "Sports", "Garden"]) },
        { "label": "Price", "type": "currency", "options": { "currency": "EUR", "precision": 2, "min": 0 } },
        { "label": "Stock", "type": "integer", "default": 0, "options": { "min": 0 } },
        { "label": "Rating", "type": "rating" },
        { "label": "Tags", "type": "multi_select", "options": choices(&["bestseller", "new"]) },
        { "label": "Released", "type": "date" },
    ] });
    let products = app.post("/collections", key, products).await.expect(201);
    let fields: Vec<i64> =
        products["fields"].as_array().unwrap().iter().map(|field| field["id"].as_i64().unwrap()).collect();
    assert_eq!((&products["id"], fields), (&json!(1), (1..=8).collect()), "the ids of the examples");
    let storage = json!({ "name": "Storage", "fields": [{ "label": "Name", "type": "text" }] });
    assert_eq!(app.post("/collections", key, storage).await.expect(201)["id"], 2);
    for number in 1..=5 {
        let data = json!({ "name": format!("Wooden Train {number}"), "sku": format!("TOY-{number:04}"), "category": "toys", "price": 39.9, "stock": 29 });
        let item = app.post("/collections/1/items", key, json!({ "data": data })).await.expect(201);
        assert_eq!(item["id"], number);
    }
    let sales = app.post("/agents", key, json!({ "name": "Sales" })).await.expect(201);
    assert_eq!(sales["id"], 2, "agent 1 is the workspace's default, which cannot be deleted");
    // Before the import, which stores a file of its own.
    assert_eq!((insert_file(sweep, "manual").await, insert_file(sweep, "receipt").await), (1, 2));
    let made = [
        ("/collections/1/views", "viewId", json!({ "name": "Expensive toys", "sort": ["-price", "name"] })),
        ("/collections/1/indexes", "indexId", json!({ "fields": [{ "field": "name" }] })),
        ("/collections/1/items/1/comments", "commentId", json!({ "body": "The last two are reserved." })),
        (
            "/collections/1/items/1/links",
            "linkId",
            json!({ "to": { "type": "item", "id": 5 }, "role": "set" }),
        ),
        ("/collections/groups", "groupId", json!({ "name": "Garden" })),
        // Nothing refers to it.
        ("/variables", "variableId", json!({ "key": "shop.fax", "type": "string", "value": "+34911234568" })),
        ("/collections/1/items/import", "importId", json!({ "content": "name\nKite\n" })),
    ];
    let mut own = Vec::new();
    for (path, name, body) in made {
        let made = app.post(path, key, body).await.expect(201);
        own.push((name, made["id"].as_str().map_or_else(|| made["id"].to_string(), str::to_owned)));
    }
    let tool = json!({
        "type": "http", "description": "Looks up an order.", "http": { "url": "https://api.example.com/orders" },
    });
    app.put("/agents/1/tools/look_up_order", key, tool).await.expect(200);
    let mut ids = seed(sweep).await;
    // Only deliveries that have ended can be retried.
    app.sql("UPDATE webhook_deliveries SET status = 'failed', ended_at = created_at, due_at = NULL").await;
    own.extend(
        [
            ("collectionId", "1"),
            ("fieldId", "3"),
            ("optionId", "1"),
            ("itemId", "1"),
            ("fileId", "1"),
            ("agentId", "1"),
            ("toolId", "look_up_order"),
        ]
        .map(|(name, id)| (name, id.to_owned())),
    );
    ids.extend(own.into_iter().map(|(name, id)| (name.to_owned(), id)));
    ids
}

/// An answer to the example of an operation: the operation, the address, and what is promised.
pub struct Answered {
    pub op: Op,
    pub path: String,
    pub status: u16,
    pub example: Value,
    pub answer: Answer,
}

/// Sends the examples of all operations to a new shop, each with the key that `key` gives for it.
pub async fn send_examples(sweep: &Sweep, key: impl AsyncFn(&Op) -> Key) -> Vec<Answered> {
    let ids = shop(sweep).await;
    let mut operations: Vec<(&Document, Op)> = sweep.enveloped().collect();
    // What is in something is deleted before it.
    operations.sort_by_key(|(_, op)| {
        let depth = op.path.split('/').count();
        let deleted = (op.method == "DELETE").then_some(usize::MAX - depth);
        (deleted, !FIRST.contains(&op.id.as_str()))
    });
    let mut answered = Vec::new();
    for (document, op) in operations {
        let mut ids = ids.clone();
        let others = OTHERS.iter().filter(|(id, ..)| *id == op.id);
        ids.extend(others.map(|(_, name, id)| ((*name).to_owned(), (*id).to_owned())));
        let path = address(&op, document, &ids);
        for (_, method, before) in BEFORE.iter().filter(|(id, ..)| *id == op.id) {
            let is_it = |(_, op): &(&Document, Op)| op.path == *before && op.method == *method;
            let (document, before) = sweep.operations().find(is_it).unwrap();
            let body =
                before.body.is_some().then(|| document.request_example(&before).to_string().into_bytes());
            let path = address(&before, document, &ids);
            sweep.send(&before, &path, Some(sweep.key(&before, true)), body.as_deref()).await;
        }
        let body = op.body.is_some().then(|| document.request_example(&op).to_string().into_bytes());
        let (status, example) = document.response_example(&op);
        for query in document.query_examples(&op) {
            let path = format!("{path}{query}");
            let answer = sweep.send(&op, &path, Some(&key(&op).await), body.as_deref()).await;
            answered.push(Answered { op: op.clone(), path, status, example: example.clone(), answer });
        }
    }
    answered
}

#[testkit::both]
async fn examples_are_done(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let mut failed = Vec::new();
    let key = async |op: &Op| sweep.key(op, true).clone();
    for Answered { op, path, status, example, answer } in send_examples(&sweep, key).await {
        if let Some((_, code)) = ELSEWHERE.iter().find(|(id, _)| *id == op.id) {
            answer.expect_error(400, code);
            continue;
        }
        if answer.status != status {
            failed.push(format!("{} {path}: {}", op.id, answer.text));
            continue;
        }
        let object = |answer: &Value| answer["data"].get("object").cloned();
        assert_eq!(object(&answer.body), object(&example), "{}", op.id);
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
