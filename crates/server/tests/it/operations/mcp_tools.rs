//! The lists of tools: sizes, selection, schemas, discovery, results.

use crate::operations::over_mcp::{call, rpc, snake};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::{Key, Kind, TestApp};

async fn list(app: &TestApp, key: &Key, query: &str) -> Vec<Value> {
    let answer = rpc(app, key, query, "tools/list", json!({})).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    answer.body["result"]["tools"].as_array().unwrap().clone()
}

fn names(tools: &[Value]) -> Vec<String> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// What keeps a schema from being read by some host: the path of the first offence.
fn offence(schema: &Value, path: &str) -> Option<String> {
    let Value::Object(parts) = schema else { return Some(format!("{path} is {schema}")) };
    for word in
        ["$ref", "$defs", "oneOf", "allOf", "not", "if", "propertyNames", "patternProperties", "const"]
    {
        if parts.contains_key(word) {
            return Some(format!("{path} has {word}"));
        }
    }
    match (parts.get("type"), parts.get("anyOf")) {
        (Some(Value::String(_)), None) | (None, Some(Value::Array(_))) => {}
        other => return Some(format!("{path} has the types {other:?}")),
    }
    if parts.get("type").is_some_and(|kind| kind == "array") && !parts.contains_key("items") {
        return Some(format!("{path} has no items"));
    }
    let below = parts.get("properties").and_then(Value::as_object).into_iter().flatten();
    let below = below.map(|(name, part)| (format!("{path}/{name}"), part));
    let choices = parts.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let choices = choices.map(|part| (format!("{path}/anyOf"), part));
    let others = ["items", "additionalProperties"]
        .into_iter()
        .filter_map(|word| Some((format!("{path}/{word}"), parts.get(word)?)));
    below
        .chain(choices)
        .chain(others.filter(|(_, part)| **part != json!(false)))
        .find_map(|(path, part)| offence(part, &path))
}

/// Whether a key can call an operation by MCP.
fn is_tool(meta: &operation::Meta) -> bool {
    !meta.json_rpc && !meta.is_partner_only() && meta.session.is_none()
}

#[testkit::both]
async fn every_schema_is_portable(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let tools = list(&app, &key, "?toolsets=all&output_schemas=true").await;
    let operations = server::registry().unwrap();
    let public = operations.operations().iter().filter(|one| is_tool(one.meta()));
    assert_eq!(tools.len(), public.count() + 5);
    let mut seen = BTreeSet::new();
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(seen.insert(name) && name.len() <= 64, "{name}");
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
            "{name}"
        );
        assert!(!tool["description"].as_str().unwrap().is_empty(), "{name}");
        let input = &tool["inputSchema"];
        assert_eq!(
            (&input["type"], &input["additionalProperties"]),
            (&json!("object"), &json!(false)),
            "{name}"
        );
        assert!(input["properties"].is_object(), "{name}");
        for root in [Some(input), tool.get("outputSchema")].into_iter().flatten() {
            assert_eq!(root["type"], "object", "{name}");
            assert_eq!(offence(root, ""), None, "{name}");
        }
        for required in input["required"].as_array().into_iter().flatten() {
            assert!(input["properties"].get(required.as_str().unwrap()).is_some(), "{name}: {required}");
        }
    }
}

#[testkit::both]
async fn the_default_list_is_short_and_stable(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let first = rpc(&app, &key, "", "tools/list", json!({})).await.text;
    let again = rpc(&app, &app.full_key().await, "", "tools/list", json!({})).await.text;
    assert_eq!(first, again, "the same bytes for the same kind of credential");
    let tools = list(&app, &key, "").await;
    let size = serde_json::to_string(&tools).unwrap().chars().count();
    assert!(
        tools.len() <= mcp::MOST_LISTED && size <= mcp::MOST_CHARACTERS_LISTED,
        "{} tools, {size}",
        tools.len()
    );
    let found = names(&tools);
    for name in
        ["svc_find_operations", "svc_describe_operation", "svc_read", "svc_write", "svc_delete", "svc_get_me"]
    {
        assert!(found.contains(&name.to_owned()), "{name} in {found:?}");
    }
}

#[testkit::both]
async fn a_header_narrows_what_the_query_chose(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let with = async |query: &str, headers: &[(&str, &str)]| {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        let mut asking = app.ask("POST", &format!("/mcp{query}")).key(&key).json(&message);
        for (name, value) in headers {
            asking = asking.header(name, value);
        }
        asking.send().await
    };
    let chosen = async |query: &str, headers: &[(&str, &str)]| {
        let answer = with(query, headers).await;
        names(answer.body["result"]["tools"].as_array().unwrap_or_else(|| panic!("{}", answer.text)))
    };
    let contacts = chosen("?toolsets=contacts", &[]).await;
    assert!(contacts.len() > 20 && contacts.contains(&"svc_merge_contact".to_owned()));
    assert_eq!(chosen("", &[("x-svc-toolsets", "contacts")]).await, contacts);
    assert_eq!(chosen("?toolsets=contacts,tasks", &[("x-svc-toolsets", "contacts,runs")]).await, contacts);
    assert_eq!(
        chosen("?toolsets=tasks", &[("x-svc-tools", "svc_merge_contact")]).await,
        Vec::<String>::new()
    );
    assert_eq!(chosen("?tools=svc_get_me,svc_read", &[]).await, ["svc_read", "svc_get_me"]);
    let reading = chosen("?toolsets=contacts&read_only=true", &[]).await;
    assert!(
        reading.contains(&"svc_get_contact".to_owned()) && !reading.contains(&"svc_merge_contact".to_owned())
    );
    assert_eq!(chosen("?toolsets=contacts&read_only=false", &[("x-svc-read-only", "true")]).await, reading);
    assert_eq!(chosen("?toolsets=contacts&read_only=true", &[("x-svc-read-only", "false")]).await, reading);
    for (query, header, param, says) in [
        ("?toolsets=contact", None, "toolsets", "nown are"),
        ("?tools=svc_get_mee", None, "tools", "nown are"),
        ("?read_only=yes", None, "read_only", "must be `true` or `false`"),
        ("?toolset=contacts", None, "toolset", "nown are"),
        ("", Some(("x-svc-toolsets", "nope")), "X-Svc-Toolsets", "nown are"),
    ] {
        let answer = with(query, header.as_slice()).await;
        answer.expect_error(400, "validation_error");
        assert_eq!(answer.body["error"]["param"], param);
        assert!(answer.text.contains(says), "{}", answer.text);
    }
}

#[testkit::both]
async fn read_only_holds_when_a_tool_is_called(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let new = json!({ "phone": "+34911234567" });
    for (name, arguments) in [
        ("svc_create_contact", new.clone()),
        ("svc_write", json!({ "operation": "createContact", "arguments": new })),
        ("svc_delete", json!({ "operation": "deleteContact", "arguments": { "contact_id": 1 } })),
    ] {
        let params = json!({ "name": name, "arguments": arguments });
        let answer = rpc(&app, &key, "?read_only=true", "tools/call", params).await;
        assert_eq!(answer.body["result"]["isError"], true, "{}", answer.text);
        assert!(answer.text.contains("read-only"), "{}", answer.text);
    }
    // A host may run `svc_read` without asking, so it changes nothing, whatever it is asked for.
    let sneaky = json!({ "operation": "createContact", "arguments": new });
    let result = call(&app, &key, "svc_read", sneaky).await;
    assert!(
        result["isError"] == true && result["content"][0]["text"].as_str().unwrap().contains("`svc_write`")
    );
    assert_eq!(app.get("/contacts", &key).await.expect(200), json!([]));
}

#[testkit::both]
async fn an_operation_is_found_described_and_called(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let found =
        call(&app, &key, "svc_find_operations", json!({ "query": "add a tag to a contact", "limit": 3 }))
            .await;
    let rows = found["structuredContent"]["data"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    assert!(rows.iter().any(|row| row["operation"] == "addContactTag"), "{rows:?}");
    let described = call(&app, &key, "svc_describe_operation", json!({ "operation": "createContact" })).await;
    let described = &described["structuredContent"];
    assert_eq!(described["call_with"], "svc_write");
    let once = json!({ "operation": "createContact", "arguments": described["example"], "idempotency_key": "once", "fields": ["/id"] });
    let first = call(&app, &key, "svc_write", once.clone()).await;
    assert_ne!(first["isError"], true, "{first}");
    assert_eq!(first["structuredContent"].as_object().unwrap().len(), 1);
    assert_eq!(call(&app, &key, "svc_write", once).await["structuredContent"], first["structuredContent"]);
    let list = json!({ "operation": "listContacts", "fields": ["/id", "/object"] });
    let listed = call(&app, &key, "svc_read", list).await;
    let id = &first["structuredContent"]["id"];
    assert_eq!(listed["structuredContent"]["data"], json!([{ "id": id, "object": "contact" }]));
    let wrong = call(&app, &key, "svc_get_contact", json!({ "contact": id })).await;
    let text = wrong["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`contact`") && text.contains("did you mean `contact_id`"), "{text}");
    let unknown = call(&app, &key, "svc_read", json!({ "operation": "listContact" })).await;
    assert!(unknown["content"][0]["text"].as_str().unwrap().contains("`listContacts`"), "{unknown}");
}

#[testkit::both]
async fn large_lists_go_on_at_a_whole_row(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    for number in 0..12 {
        let body = json!({ "name": format!("Agent {number:02}"), "instructions": "x".repeat(9_000) });
        app.post("/agents", &key, body).await.expect(201);
    }
    let (mut seen, mut after, mut calls) = (Vec::new(), Value::Null, 0);
    loop {
        let mut arguments = json!({ "limit": 100 });
        if !after.is_null() {
            arguments["starting_after"] = after.clone();
        }
        let result = call(&app, &key, "svc_list_agents", arguments).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.len() <= 48_000, "{}", text.len());
        let page = &result["structuredContent"];
        seen.extend(page["data"].as_array().unwrap().iter().map(|agent| agent["id"].clone()));
        calls += 1;
        after = page["next_cursor"].clone();
        if page["has_more"] == false {
            break;
        }
    }
    let all = app.get("/agents", &key).await.expect(200);
    let all: Vec<Value> = all.as_array().unwrap().iter().map(|agent| agent["id"].clone()).collect();
    assert_eq!(seen, all);
    assert!(calls > 2, "{calls}");
}

/// The requests were written before the search, and its words were not chosen by them.
#[tokio::test]
async fn plain_requests_find_their_operation() {
    let app = TestApp::new(Kind::Sqlite).await;
    let key = app.full_key().await;
    let requests = include_str!("../../../../faces/mcp/tests/it/requests.tsv");
    let requests: Vec<(&str, &str)> = requests.lines().map(|line| line.split_once('\t').unwrap()).collect();
    assert_eq!(requests.len(), 120);
    let mut missed = Vec::new();
    for (query, operation) in &requests {
        app.data.clock.advance(chrono::Duration::seconds(61));
        let found = call(&app, &key, "svc_find_operations", json!({ "query": query, "limit": 5 })).await;
        let rows = found["structuredContent"]["data"].as_array().unwrap().clone();
        let rows: Vec<&str> = rows.iter().map(|row| row["operation"].as_str().unwrap()).collect();
        if !rows.contains(operation) {
            missed.push(format!("{query}: {operation} is not in {rows:?}"));
        }
    }
    assert!(missed.len() * 10 <= requests.len(), "{}", missed.join("\n"));
}

#[testkit::both]
async fn tools_are_named_as_operations(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.full_key().await;
    let listed = names(&list(&app, &key, "?toolsets=all").await);
    for operation in server::registry().unwrap().operations() {
        let (meta, name) = (operation.meta(), format!("svc_{}", snake(operation.meta().id)));
        assert_eq!(listed.contains(&name), is_tool(meta), "{name}");
    }
    let unknown = rpc(&app, &key, "", "tools/call", json!({ "name": "svc_post_mcp", "arguments": {} })).await;
    assert_eq!(unknown.body["error"]["code"], -32602, "{}", unknown.text);
}
