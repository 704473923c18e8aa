//! Tools that call the service's own operations.

use crate::approvals::{answer, path_of};
use crate::recovery::{replica, take_over};
use crate::{ask, awaited, begin, call, check_books, prompted, read, say, texts, with_agent};
use model::Env;
use serde_json::{Value, json};
use testkit::{Key, Kind, Script, TestApp};

/// A service with an agent that has one tool.
struct Granted {
    app: TestApp,
    key: Key,
    agent: Value,
}

impl Granted {
    async fn new(kind: Kind) -> Self {
        let app = TestApp::new(kind).await;
        let (key, agent) = with_agent(&app, json!({})).await;
        Self { app, key, agent }
    }

    async fn with(kind: Kind, name: &str, tool: Value) -> Self {
        let granted = Self::new(kind).await;
        granted.give(name, tool).await;
        granted
    }

    async fn give(&self, name: &str, tool: Value) -> Value {
        let path = format!("/agents/{}/tools/{name}", self.agent["id"]);
        self.app.put(&path, &self.key, tool).await.expect(200)
    }

    async fn contact(&self) -> String {
        let new = json!({ "data": { "$name": "Ana Souza", "$phone": "+5511987654321" } });
        self.app.post("/contacts", &self.key, new).await.expect(201)["id"].to_string()
    }

    async fn collection(&self) -> String {
        let fields = json!([
            { "field_key": "name", "label": "Name", "type": "text" },
            { "field_key": "price", "label": "Price", "type": "number" },
        ]);
        let new = json!({ "name": "Products", "fields": fields });
        self.app.post("/collections", &self.key, new).await.expect(201)["id"].to_string()
    }

    /// Runs the script and gives the steps of tools.
    async fn run(&self, key: &Key) -> Vec<Value> {
        let run = ask(&self.app, key, json!({ "input": "Hi" })).await.expect(200);
        assert_eq!(run["status"], "completed", "{run}");
        tools(&read(&self.app, key, &run).await)
    }

    async fn notes(&self, contact: &str) -> Value {
        self.app.get(&format!("/contacts/{contact}/notes"), &self.key).await.expect(200)
    }
}

fn tools(run: &Value) -> Vec<Value> {
    run["steps"].as_array().unwrap().iter().filter(|step| step["type"] == "tool").cloned().collect()
}

fn result(step: &Value) -> &Value {
    &step["output"]["result"]
}

#[testkit::both]
async fn an_agent_finds_and_changes_a_contact(kind: Kind) {
    let granted =
        Granted::with(kind, "contacts", json!({ "type": "contacts", "access": "read_write" })).await;
    let Granted { app, key, .. } = &granted;
    let id = granted.contact().await;
    let phone = "phone:+55 11 98765-4321";
    app.model
        .then(call("contacts_find", json!({ "q": "souza", "limit": 5 })))
        .then(call("contacts_get", json!({ "contact_id": phone })))
        .then(call(
            "contacts_update",
            json!({ "contact_id": id.parse::<i64>().unwrap(), "data": { "$stage": "won" } }),
        ))
        .then(call("contacts_add_note", json!({ "contact_id": id, "body": "Called back." })))
        .then(call("contacts_tag", json!({ "contact_id": id, "tag": "VIP" })))
        .then(say("done"));
    let steps = granted.run(key).await;
    assert!(steps.iter().all(|step| step["status"] == "completed"), "{steps:?}");
    assert_eq!(result(&steps[0])["data"][0]["name"], "Ana Souza");
    assert_eq!(result(&steps[1])["data"]["id"].to_string(), id);
    let contact = app.get(&format!("/contacts/{id}"), key).await.expect(200);
    assert_eq!((&contact["data"]["$stage"], &contact["tags"]), (&json!("won"), &json!(["vip"])));
    // The agent did it, in this run.
    let run = texts(app, "SELECT id AS t FROM runs").await[0].clone().unwrap();
    let actor = json!({ "type": "agent", "id": granted.agent["id"].to_string(), "run_id": run });
    assert_eq!(contact["updated_by"], actor);
    assert_eq!(granted.notes(&id).await[0]["author"], actor);
    let events =
        texts(app, "SELECT actor AS t FROM events WHERE kind IN ('contact.updated', 'contact.note.created')")
            .await;
    assert_eq!(events.len(), 3);
    for event in events {
        assert_eq!(serde_json::from_str::<Value>(&event.unwrap()).unwrap(), actor);
    }
    // The model knows what it can call, and the functions are not requests of the key's month.
    let names: Vec<String> = app.model.prompts()[0].tools.iter().map(|tool| tool.name.clone()).collect();
    assert_eq!(
        names,
        ["contacts_find", "contacts_get", "contacts_update", "contacts_add_note", "contacts_tag"]
    );
    check_books(app, key.workspace).await;
}

#[testkit::both]
async fn a_grant_for_reading_changes_nothing(kind: Kind) {
    let granted =
        Granted::with(kind, "people", json!({ "type": "contacts", "description": "Only customers." })).await;
    let Granted { app, key, .. } = &granted;
    let id = granted.contact().await;
    app.model.then(call("people_add_note", json!({ "contact_id": id, "body": "x" }))).then(say("no"));
    let steps = granted.run(key).await;
    assert_eq!(
        (&steps[0]["status"], result(&steps[0])),
        (&json!("failed"), &json!("there is no tool called `people_add_note`"))
    );
    assert_eq!(granted.notes(&id).await, json!([]));
    let offered = &app.model.prompts()[0].tools;
    assert_eq!(offered.len(), 2);
    assert!(offered[0].description.ends_with("Only customers."), "{}", offered[0].description);
    let shown = app.get(&format!("/agents/{}/tools", granted.agent["id"]), key).await.expect(200);
    assert_eq!(
        (&shown[0]["access"], &shown[0]["http"], &shown[0]["ref"]),
        (&json!("read"), &Value::Null, &Value::Null)
    );
    assert_eq!(shown[0]["functions"][0]["operation_id"], "listContacts");
}

#[testkit::both]
async fn items_are_written_found_and_searched(kind: Kind) {
    let granted = Granted::new(kind).await;
    let Granted { app, key, .. } = &granted;
    let collection = granted.collection().await.parse::<i64>().unwrap();
    granted
        .give("products", json!({ "type": "collection_items", "ref": collection, "access": "read_write" }))
        .await;
    granted.give("catalogue", json!({ "type": "collection_search", "ref": collection })).await;
    app.model
        .then(call("products_fields", json!({})))
        .then(call("products_create", json!({ "data": { "name": "Red lamp", "price": 12.5 } })))
        .then(call("products_update", json!({ "item_id": 1, "data": { "price": 13 } })))
        .then(call("products_find", json!({ "filter_tree": { "field": "price", "op": "gt", "value": 12 } })))
        .then(call("products_get", json!({ "item_id": 1 })))
        .then(call("catalogue_search", json!({ "q": "lamp" })))
        .then(say("done"));
    let steps = granted.run(key).await;
    assert!(steps.iter().all(|step| step["status"] == "completed"), "{steps:?}");
    assert_eq!(result(&steps[0])["data"]["properties"]["price"]["title"], "Price");
    assert_eq!(result(&steps[3])["data"][0]["data"]["price"], 13);
    assert_eq!(result(&steps[4])["data"]["data"]["name"], "Red lamp");
    assert_eq!(result(&steps[5])["data"][0]["data"]["name"], "Red lamp");
    assert!(
        app.model.prompts()[0]
            .tools
            .iter()
            .any(|tool| tool.description.contains("the collection \"Products\""))
    );
}

#[testkit::both]
async fn wrong_arguments_are_the_models_to_correct(kind: Kind) {
    let granted =
        Granted::with(kind, "contacts", json!({ "type": "contacts", "access": "read_write" })).await;
    let Granted { app, key, .. } = &granted;
    let id = granted.contact().await;
    let stages = json!([{ "key": "won", "label": "Sold" }, { "key": "lost", "label": "Lost" }, { "label": "Test ride" }]);
    let stages = json!({ "options": { "choices": stages } });
    app.patch("/variables/contact-fields/$stage", key, stages).await.expect(200);
    let update = |data: Value| call("contacts_update", json!({ "contact_id": id, "data": data }));
    app.model
        .then(call("contacts_get", json!({ "id": id })))
        .then(update(json!({ "$stage": "nowhere" })))
        .then(call("contacts_get", json!({ "contact_id": "phone:+34911111111" })))
        .then(call("contacts_tag", json!({ "contact_id": id, "tag": "a\u{0}b" })))
        .then(update(json!({ "$stage": "test_ride" })))
        .then(say("done"));
    let steps = granted.run(key).await;
    assert!(result(&steps[0]).as_str().unwrap().starts_with("the arguments do not fit: "), "{}", steps[0]);
    let refused = result(&steps[1]).as_str().unwrap();
    assert!(
        refused.starts_with("the arguments were refused: ") && refused.contains("data.$stage"),
        "{refused}"
    );
    // So the model knows the stages of the workspace.
    assert!(refused.contains("`won`, `lost`, `test_ride`"), "{refused}");
    assert_eq!(result(&steps[2])["code"], "not_found");
    assert_eq!(steps[3]["status"], "failed");
    assert_eq!(steps[4]["status"], "completed");
}

#[testkit::both]
async fn what_cannot_be_granted_is_refused_when_it_is_saved(kind: Kind) {
    let granted = Granted::new(kind).await;
    let Granted { app, key, agent } = &granted;
    let path = |name: &str| format!("/agents/{}/tools/{name}", agent["id"]);
    let collection = granted.collection().await.parse::<i64>().unwrap();
    let (stranger, theirs) = {
        let workspace = app.bare_workspace("scale", 0).await;
        let stranger = app.key(workspace, Env::Live, &["*"]).await;
        let new = json!({ "name": "Theirs" });
        let theirs = app.post("/collections", &stranger, new).await.expect(201)["id"].clone();
        (stranger, theirs)
    };
    for (body, param) in [
        (json!({ "type": "contacts", "ref": collection }), "ref"),
        (json!({ "type": "contacts", "http": { "url": "https://example.com" } }), "http"),
        (json!({ "type": "contacts", "parameters": {} }), "parameters"),
        (json!({ "type": "contacts", "fixed_arguments": { "tag": 1 } }), "fixed_arguments.tag"),
        (json!({ "type": "contacts", "fixed_arguments": { "q": 1 } }), "fixed_arguments.q"),
        (json!({ "type": "collection_items" }), "ref"),
        (json!({ "type": "collection_items", "ref": 0 }), "ref"),
        (json!({ "type": "collection_search", "ref": collection, "access": "read_write" }), "access"),
        (json!({ "type": "http" }), "http"),
        (json!({ "type": "http", "http": { "url": "https://example.com" } }), "description"),
        (
            json!({ "type": "http", "description": "d", "access": "read", "http": { "url": "https://example.com" } }),
            "access",
        ),
    ] {
        let found = app.put(&path("tool"), key, body.clone()).await.expect_error(400, "validation_error");
        assert_eq!(found.as_deref(), Some(param), "{body}");
    }
    for unknown in [theirs, json!(4711)] {
        let body = json!({ "type": "collection_items", "ref": unknown });
        let found = app.put(&path("tool"), key, body).await.expect_error(404, "not_found");
        assert_eq!(found.as_deref(), Some("ref"));
    }
    // Two tools cannot give one name to two functions, and names stay short enough for models.
    granted.give("people", json!({ "type": "contacts" })).await;
    let http = json!({ "type": "http", "description": "d", "http": { "method": "GET", "url": "http://127.0.0.1/" } });
    for (name, body) in [("people_find", http), (&*"x".repeat(60), json!({ "type": "contacts" }))] {
        let found = app.put(&path(name), key, body).await.expect_error(400, "validation_error");
        assert_eq!(found.as_deref(), Some("toolId"), "{name}");
    }
    // Nobody gives an agent more than the key may do itself.
    let weak = app.key(key.workspace, Env::Live, &["agents:write", "contacts:read"]).await;
    app.put(&path("people"), &weak, json!({ "type": "contacts" })).await.expect(200);
    let writing = json!({ "type": "contacts", "access": "read_write" });
    let lacking = app.put(&path("people"), &weak, writing).await.expect_error(403, "missing_scope");
    assert_eq!(lacking.as_deref(), Some("contacts:write"));
    app.put(&path("people"), &stranger, json!({ "type": "contacts" })).await.expect_error(404, "not_found");
    // A type whose operations the service does not have yet says so.
    let tasks = app.put(&path("tasks"), key, json!({ "type": "tasks", "access": "read_write" })).await;
    if app.service.pipeline.registry.by_id("createTask").is_some() {
        tasks.expect(200);
    } else {
        assert_eq!(tasks.expect_error(400, "validation_error").as_deref(), Some("type"));
    }
}

#[testkit::both]
async fn fixed_arguments_are_sent_and_not_shown(kind: Kind) {
    let granted = Granted::new(kind).await;
    let Granted { app, key, .. } = &granted;
    let id = granted.contact().await;
    let fixed = json!({ "contact_id": id });
    granted
        .give("customer", json!({ "type": "contacts", "access": "read_write", "fixed_arguments": fixed }))
        .await;
    app.model.then(call("customer_add_note", json!({ "body": "Hi." }))).then(say("done"));
    granted.run(key).await;
    assert_eq!(granted.notes(&id).await[0]["body"], "Hi.");
    let note = app.model.prompts()[0]
        .tools
        .iter()
        .find(|tool| tool.name == "customer_add_note")
        .unwrap()
        .parameters
        .clone();
    assert_eq!((&note["required"], &note["properties"]["contact_id"]), (&json!(["body"]), &Value::Null));
}

#[testkit::both]
async fn fixed_arguments_hold_for_all_functions(kind: Kind) {
    let granted = Granted::new(kind).await;
    let Granted { app, key, .. } = &granted;
    let ana = granted.contact().await;
    let other =
        app.post("/contacts", key, json!({ "data": { "$name": "Bruno" } })).await.expect(201)["id"].clone();
    let collection = granted.collection().await;
    let item = async |name: &str, price: i64| {
        let path = format!("/collections/{collection}/items");
        app.post(&path, key, json!({ "data": { "name": name, "price": price } })).await.expect(201)["id"]
            .clone()
    };
    let (cheap, dear) = (item("Cheap", 1).await, item("Dear", 100).await);
    let reference = collection.parse::<i64>().unwrap();
    let of_items = |fixed: Value| json!({ "type": "collection_items", "ref": reference, "access": "read_write", "fixed_arguments": fixed });
    let filter = json!({ "field": "price", "op": "lt", "value": 10 });
    granted.give("cheap", of_items(json!({ "filter_tree": filter }))).await;
    let one = granted.give("one", of_items(json!({ "item_id": cheap }))).await;
    let names: Vec<&Value> =
        one["functions"].as_array().unwrap().iter().map(|function| &function["name"]).collect();
    assert_eq!(names, ["one_fields", "one_find", "one_get", "one_update"]);
    let people = json!({ "type": "contacts", "access": "read_write", "fixed_arguments": { "contact_id": "phone:+5511987654321" } });
    granted.give("ana", people).await;
    let named = json!({ "type": "contacts", "access": "read_write", "fixed_arguments": { "q": "Souza" } });
    granted.give("souza", named).await;
    let tasks = json!({ "type": "tasks", "access": "read_write", "fixed_arguments": { "contact_id": ana.parse::<i64>().unwrap() } });
    granted.give("work", tasks).await;
    let path = format!("/workspaces/{}/tasks", key.workspace);
    let theirs = app.post(&path, key, json!({ "title": "Of Bruno", "contact_id": other })).await.expect(201)
        ["id"]
        .clone();
    let rows = |step: &Value| {
        result(step)["data"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect::<Vec<_>>()
    };
    app.model
        .then(call("cheap_find", json!({})))
        .then(call("cheap_get", json!({ "item_id": cheap })))
        .then(call("cheap_get", json!({ "item_id": dear })))
        .then(call("cheap_update", json!({ "item_id": dear, "data": { "price": 2 } })))
        .then(call("cheap_update", json!({ "item_id": cheap, "data": { "price": 2 } })))
        .then(call("one_find", json!({})))
        .then(call("one_update", json!({ "data": { "price": 3 } })))
        .then(call("ana_find", json!({})))
        .then(call("ana_tag", json!({ "tag": "vip" })))
        .then(say("done"));
    let steps = granted.run(key).await;
    assert_eq!(rows(&steps[0]), std::slice::from_ref(&cheap));
    assert_eq!(result(&steps[1])["data"]["id"], cheap);
    assert_eq!(
        (&result(&steps[2])["code"], &result(&steps[3])["code"]),
        (&json!("not_found"), &json!("not_found"))
    );
    assert_eq!(result(&steps[4])["data"]["data"]["price"], 2);
    assert_eq!(rows(&steps[5]), std::slice::from_ref(&cheap));
    assert_eq!(result(&steps[6])["data"]["data"]["price"], 3);
    assert_eq!(rows(&steps[7]), [ana.parse::<i64>().unwrap()]);
    assert_eq!(steps[8]["status"], "completed");
    app.model
        .then(call("souza_get", json!({ "contact_id": "phone:+55 11 98765-4321" })))
        .then(call("souza_get", json!({ "contact_id": other })))
        .then(call("souza_add_note", json!({ "contact_id": other, "body": "x" })))
        .then(call("work_list", json!({})))
        .then(call("work_complete", json!({ "task_id": theirs })))
        .then(call("work_update", json!({ "task_id": theirs, "title": "Taken" })))
        .then(call("work_create", json!({ "title": "Call Ana" })))
        .then(call("work_list", json!({})))
        .then(say("done"));
    let steps = granted.run(key).await;
    assert_eq!(result(&steps[0])["data"]["id"].to_string(), ana);
    for step in [1, 2, 4, 5] {
        assert_eq!(result(&steps[step])["code"], "not_found", "{}", steps[step]);
    }
    assert_eq!(rows(&steps[3]), Vec::<Value>::new());
    assert_eq!(rows(&steps[7]), [result(&steps[6])["data"]["id"].clone()]);
    assert_eq!(granted.notes(&other.to_string()).await, json!([]));
    assert_eq!(app.get(&format!("{path}/{theirs}"), key).await.expect(200)["title"], "Of Bruno");
}

#[testkit::both]
async fn a_test_key_reads_and_simulates_changes(kind: Kind) {
    let granted =
        Granted::with(kind, "contacts", json!({ "type": "contacts", "access": "read_write" })).await;
    let Granted { app, key, .. } = &granted;
    let id = granted.contact().await;
    let test = app.key(key.workspace, Env::Test, &["*"]).await;
    app.model
        .then(call("contacts_get", json!({ "contact_id": id })))
        .then(call("contacts_add_note", json!({ "contact_id": id, "body": "x" })))
        .then(say("done"));
    let steps = granted.run(&test).await;
    assert_eq!(result(&steps[0])["data"]["name"], "Ana Souza");
    assert_eq!(
        (&result(&steps[1])["simulated"], &result(&steps[1])["operation"]),
        (&json!(true), &json!("createContactNote"))
    );
    assert_eq!(granted.notes(&id).await, json!([]));
}

#[testkit::both]
async fn a_grant_counts_all_its_functions(kind: Kind) {
    let granted =
        Granted::with(kind, "contacts", json!({ "type": "contacts", "max_calls_per_run": 2 })).await;
    let id = granted.contact().await;
    let get = || ("contacts_get".to_owned(), json!({ "contact_id": id }));
    let find = || ("contacts_find".to_owned(), json!({ "q": "x" }));
    granted.app.model.then(Script::Call(vec![get(), find(), get()])).then(say("done"));
    let steps = granted.run(&granted.key).await;
    assert_eq!(steps.iter().filter(|step| step["status"] == "completed").count(), 2, "{steps:?}");
    assert!(result(&steps[2]).as_str().unwrap().contains("2 times"));
}

#[testkit::both]
async fn a_change_waits_for_a_person(kind: Kind) {
    let tool = json!({ "type": "contacts", "access": "read_write", "approval": "on_write" });
    let granted = Granted::with(kind, "contacts", tool).await;
    let Granted { app, key, .. } = &granted;
    let id = granted.contact().await;
    app.model
        .then(call("contacts_get", json!({ "contact_id": id })))
        .then(call("contacts_add_note", json!({ "contact_id": id, "body": "Approved." })))
        .then(say("done"));
    let run = ask(app, key, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!(run["status"], "requires_action");
    assert_eq!(run["required_action"]["calls"][0]["tool"], "contacts_add_note");
    assert_eq!(granted.notes(&id).await, json!([]));
    let page = app.ask_beside("GET", &path_of(&run)).send().await;
    assert!(page.text.contains("Writes a note on a contact."), "{}", page.text);
    answer(app, &path_of(&run), json!({ "decision": "approve" })).await.expect(200);
    let run = awaited(app, key, &run, "completed").await;
    assert_eq!(
        (&granted.notes(&id).await[0]["body"], &run["usage"]["tool_calls"]),
        (&json!("Approved."), &json!(2))
    );
}

#[testkit::both]
async fn a_change_that_a_crash_interrupted_is_made_once(kind: Kind) {
    let granted =
        Granted::with(kind, "contacts", json!({ "type": "contacts", "access": "read_write" })).await;
    let Granted { app, key, .. } = &granted;
    let id = granted.contact().await;
    let note = call("contacts_add_note", json!({ "contact_id": id, "body": "Once." }));
    app.model.then(note).then(Script::Wait("too late".into()));
    let run = begin(app, key, json!({ "input": "Hi" })).await;
    prompted(app, 2).await;
    let before = tools(&read(app, key, &run).await);
    let other = replica(app).await;
    // As a worker leaves it that dies after the note was written, and before it learns so.
    app.sql("DELETE FROM run_steps WHERE position = 3").await;
    app.sql("UPDATE run_steps SET status = 'running', output = NULL, completed_at = NULL WHERE position = 2")
        .await;
    other.model.then(say("done"));
    assert_eq!(take_over(&other).await, 1);
    let run = awaited(app, key, &run, "completed").await;
    let after = tools(&run);
    assert_eq!((&after[0]["status"], &after[0]["output"]), (&json!("completed"), &before[0]["output"]));
    assert_eq!(granted.notes(&id).await.as_array().unwrap().len(), 1);
    assert_eq!(run["usage"]["tool_calls"], 1);
    app.model.release();
    app.service.engine.idle().await;
    check_books(app, key.workspace).await;
}

#[testkit::both]
async fn calls_are_in_the_request_log_and_not_in_the_quota(kind: Kind) {
    let granted = Granted::with(kind, "contacts", json!({ "type": "contacts" })).await;
    let Granted { app, key, .. } = &granted;
    let limited =
        app.key_with(key.workspace, Env::Live, &["runs:execute"], |new| new.monthly_quota = Some(1)).await;
    app.model
        .then(call("contacts_find", json!({})))
        .then(call("contacts_find", json!({ "q": "x" })))
        .then(say("done"));
    // The key has no scope for contacts: the agent was given it.
    let run = ask(app, &limited, json!({ "input": "Hi" })).await.expect(200);
    assert_eq!((&run["status"], &run["usage"]["tool_calls"]), (&json!("completed"), &json!(2)));
    let logged = testkit::until("the calls are logged", async || {
        let rows = texts(app, "SELECT key_id AS t FROM request_logs WHERE operation = 'listContacts'").await;
        (rows.len() == 2).then_some(rows)
    });
    assert!(logged.await.iter().all(|id| id.as_deref() == Some(limited.id.as_str())));
}
