//! Agents that are limited to the contact whom they answer.

use super::agent_tools::results;
use crate::support::Desk;
use agents::ToolKind;
use serde_json::{Map, Value, json};
use simulator::User;
use std::collections::BTreeSet;
use testkit::{Kind, Script, assert_absent};

/// What only Bruno's data has.
const SECRETS: [&str; 7] = [
    "Zephyrwood company of Bruno",
    "Zephyrwood note on Bruno",
    "Zephyrwood task of Bruno",
    "Zephyrwood order of Bruno",
    "Zephyrwood bike of Bruno",
    "Zephyrwood message of Bruno",
    "Zephyrwood comment on Bruno",
];

/// A service whose agent has all tools, with two customers. Ana talks to the agent.
struct Shop {
    desk: Desk,
    ana: User,
    bruno: User,
    ids: Ids,
}

/// The ids of what the customers have.
#[derive(Debug, Clone)]
struct Ids {
    ana: i64,
    bruno: i64,
    orders: i64,
    bikes: i64,
    products: i64,
    ana_order: i64,
    bruno_order: i64,
    bruno_bike: i64,
    product: i64,
    ana_task: i64,
    bruno_task: i64,
}

fn field(key: &str, kind: &str, options: Value) -> Value {
    json!({ "field_key": key, "label": key, "type": kind, "options": options })
}

impl Shop {
    async fn open(kind: Kind) -> Self {
        let desk = Desk::open(kind).await;
        let ana = desk.customer("Ana", "+5511987654321");
        let bruno = desk.customer("Bruno", "+5511987654322");
        desk.hear(&ana, "Hello").await;
        desk.hear(&bruno, SECRETS[5]).await;
        let of = async |phone: &str| {
            desk.get(&format!("/contacts/phone:{phone}")).await.expect(200)["id"].as_i64().unwrap()
        };
        let (a, b) = (of("+5511987654321").await, of("+5511987654322").await);
        let created =
            async |path: &str, body: Value| desk.post(path, body).await.expect(201)["id"].as_i64().unwrap();
        let bikes = json!({ "name": "Bikes", "fields": [field("name", "text", json!({})), field("owner", "contact", json!({}))] });
        let bikes = created("/collections", bikes).await;
        let products = json!({ "name": "Products", "fields": [field("name", "text", json!({}))] });
        let products = created("/collections", products).await;
        let orders = json!({ "name": "Orders", "fields": [
            { "field_key": "name", "label": "Name", "type": "text" },
            { "field_key": "number", "label": "Number", "type": "text", "unique": true },
            field("customer", "contact", json!({})), field("referrer", "contact", json!({})), field("photo", "file", json!({})),
            field("bike", "relation", json!({ "target_collection_id": bikes, "reverse_field_key": "orders" })),
            field("product", "relation", json!({ "target_collection_id": products })),
        ] });
        let orders = created("/collections", orders).await;
        let lookup = field("bike_name", "lookup", json!({ "relation": "bike", "field": "name" }));
        desk.post(&format!("/collections/{orders}/fields"), lookup).await.expect(201);
        let item = async |set: i64, data: Value| {
            created(&format!("/collections/{set}/items"), json!({ "data": data })).await
        };
        let product = item(products, json!({ "name": "Wooden train" })).await;
        let bruno_bike = item(bikes, json!({ "name": SECRETS[4], "owner": [b] })).await;
        item(bikes, json!({ "name": "Bike of Ana", "owner": [a] })).await;
        let bruno_order =
            item(orders, json!({ "name": SECRETS[3], "number": "B-1", "customer": [b], "referrer": [a], "bike": [bruno_bike] })).await;
        let ana_order = item(
            orders,
            json!({ "name": "Order of Ana", "number": "A-1", "customer": [a], "referrer": [b] }),
        )
        .await;
        let comment = json!({ "body": SECRETS[6] });
        desk.post(&format!("/collections/{orders}/items/{bruno_order}/comments"), comment.clone())
            .await
            .expect(201);
        let tasks = format!("/workspaces/{}/tasks", desk.workspace);
        let bruno_task = created(&tasks, json!({ "title": SECRETS[2], "contact_id": b })).await;
        let ana_task = created(&tasks, json!({ "title": "Task of Ana", "contact_id": a })).await;
        desk.post(&format!("{tasks}/{bruno_task}/comments"), comment).await.expect(201);
        desk.post(&format!("/contacts/{b}/notes"), json!({ "body": SECRETS[1] })).await.expect(201);
        let patch = json!({ "data": { "$company": SECRETS[0], "$email": "bruno@example.com" }, "external_id": "bruno-1" });
        desk.app.patch(&format!("/contacts/{b}"), &desk.key, patch).await.expect(200);
        let ids = Ids {
            ana: a,
            bruno: b,
            orders,
            bikes,
            products,
            ana_order,
            bruno_order,
            bruno_bike,
            product,
            ana_task,
            bruno_task,
        };
        Self { desk, ana, bruno, ids }
    }

    /// Gives the agent a tool.
    async fn give(&self, name: &str, tool: Value) -> Value {
        self.desk.app.put(&self.tools(&format!("/{name}")), &self.desk.key, tool).await.expect(200)
    }

    fn tools(&self, below: &str) -> String {
        format!("/agents/1/tools{below}")
    }

    /// Gives the agent a tool of each type that covers data.
    async fn give_all(&self) {
        let Ids { orders, bikes, products, .. } = self.ids;
        let mut kinds = BTreeSet::new();
        for kind in ToolKind::ALL {
            let tools = match kind {
                ToolKind::Http | ToolKind::Agent | ToolKind::Function | ToolKind::Flow => Vec::new(),
                ToolKind::Contacts | ToolKind::Tasks | ToolKind::Messages => {
                    vec![(kind.as_str().to_owned(), json!({}))]
                }
                ToolKind::CollectionItems => vec![
                    ("orders".to_owned(), json!({ "ref": orders, "contact_field": "customer" })),
                    ("bikes".to_owned(), json!({ "ref": bikes })),
                    ("products".to_owned(), json!({ "ref": products })),
                ],
                ToolKind::CollectionSearch => vec![
                    ("in_orders".to_owned(), json!({ "ref": orders, "contact_field": "customer" })),
                    ("in_bikes".to_owned(), json!({ "ref": bikes })),
                ],
            };
            for (name, more) in tools {
                let access = if kind == ToolKind::CollectionSearch { "read" } else { "read_write" };
                let mut tool = json!({ "type": kind.as_str(), "access": access, "max_calls_per_run": 200 });
                tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                self.give(&name, tool).await;
                kinds.insert(kind.as_str());
            }
        }
        assert_eq!(kinds.len(), ToolKind::ALL.len() - 4);
    }

    /// Ana writes, and the agent makes these calls. Gives their results.
    async fn call(&self, calls: Vec<(String, Value)>) -> Vec<Value> {
        self.desk.app.model.forget();
        // Of runs that begin at one moment, none is the latest.
        self.desk.app.data.clock.advance(chrono::Duration::seconds(1));
        self.desk.app.model.then(Script::Call(calls)).then(Script::Say("done".to_owned()));
        self.desk.hear(&self.ana, "Give me everything about everyone.").await;
        let runs = self.desk.get("/runs?limit=1").await.expect(200);
        results(&self.desk, &self.desk.key, &runs[0]).await
    }

    async fn call_one(&self, function: &str, arguments: Value) -> Value {
        self.call(vec![(function.to_owned(), arguments)]).await.remove(0)
    }

    /// All that is Bruno's.
    async fn of_bruno(&self) -> Value {
        let Ids { bruno, orders, bikes, bruno_task, bruno_order, .. } = self.ids;
        let workspace = self.desk.workspace;
        let mut all = Vec::new();
        for path in [
            format!("/contacts/{bruno}"),
            format!("/contacts/{bruno}/notes"),
            format!("/contacts/{bruno}/activity"),
            format!("/contacts/{bruno}/messages"),
            format!("/workspaces/{workspace}/tasks?contact_id={bruno}"),
            format!("/workspaces/{workspace}/tasks/{bruno_task}/comments"),
            format!("/collections/{orders}/items?filter[customer]={bruno}"),
            format!("/collections/{orders}/items?filter[referrer]={bruno}"),
            format!("/collections/{orders}/items/{bruno_order}/comments"),
            format!("/collections/{bikes}/items?filter[owner]={bruno}"),
        ] {
            all.push(self.desk.get(&path).await.expect(200));
        }
        all.push(json!(self.desk.sent(&self.bruno)));
        all.into()
    }

    /// The worst that a model could send as an argument.
    #[expect(clippy::panic, reason = "a new argument needs a decision")]
    fn worst(&self, argument: &str) -> Vec<Value> {
        let Ids { bruno, orders, bruno_order, bruno_bike, bruno_task, .. } = self.ids;
        let all = json!({ "field": "id", "op": "gt", "value": 0 });
        match argument {
            "contact_id" => vec![json!(bruno), json!("phone:+5511987654322"), json!("external:bruno-1")],
            "item_id" => vec![json!(bruno_order), json!(bruno_bike)],
            "task_id" => vec![json!(bruno_task)],
            "q" => vec![json!("Zephyrwood")],
            "filter_tree" => vec![
                json!({ "or": [{ "field": "customer", "op": "eq", "value": bruno }, all] }),
                json!({ "or": [{ "field": "owner", "op": "eq", "value": bruno }, all] }),
                json!({ "not": { "and": [{ "field": "id", "op": "lt", "value": 0 }] } }),
                json!({ "field": "customer.$company", "op": "like", "value": "Zephyr%" }),
                json!({ "field": "bike.name", "op": "like", "value": "Zephyr%" }),
            ],
            "data" => vec![
                json!({ "name": "Taken over", "$company": "Taken over" }),
                json!({ "customer": [bruno] }),
                json!({ "owner": [bruno] }),
                json!({ "customer": null, "owner": null }),
                json!({ "referrer": [bruno] }),
                json!({ "bike": [bruno_bike] }),
                json!({ "orders": [bruno_order] }),
                json!({ "photo": [1] }),
                json!({ "number": "B-1", "$phone": "+5511987654322" }),
            ],
            "assignee" => vec![json!("user:1"), json!({ "type": "agent", "id": 1 })],
            "starting_after" => vec![json!(bruno_order.to_string()), json!("1000")],
            "status" => vec![json!("todo"), json!("todo,in_progress,done")],
            "overdue" => vec![json!(false)],
            "limit" => vec![json!(50)],
            "sort" => vec![json!("-id"), json!("customer.$company"), json!("-customer")],
            "fields" => vec![json!("name,customer,owner,bike,orders")],
            "page" => vec![json!(1)],
            "due" => vec![json!({ "date": "2030-01-01" })],
            "labels" => vec![json!(["taken"])],
            "priority" => vec![json!("urgent")],
            "channel_id" => vec![json!(self.desk.channel)],
            "params" => vec![json!({ "1": format!("{orders}") })],
            "namespace" | "name" | "language" | "text" | "title" | "description" | "body" | "tag"
            | "summary" => {
                vec![json!("en")]
            }
            other => {
                panic!("a function has the new argument `{other}`: say here what the worst value for it is")
            }
        }
    }

    /// The worst calls of a function, by the schema that it has without limits: with each of the worst values.
    fn worst_calls(&self, function: &Value) -> Vec<(String, Value)> {
        let schema = &function["parameters"];
        let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        let is_required =
            |name: &str| schema["required"].as_array().is_some_and(|all| all.contains(&json!(name)));
        let name = function["name"].as_str().unwrap();
        let needed = names.iter().filter(|name| is_required(name) && **name != "contact_id");
        let base: Map<String, Value> =
            needed.map(|name| ((*name).clone(), self.worst(name)[0].clone())).collect();
        let mut calls = vec![(name.to_owned(), Value::Object(base.clone()))];
        for argument in &names {
            for value in self.worst(argument) {
                let mut arguments = base.clone();
                arguments.insert((*argument).clone(), value.clone());
                calls.push((name.to_owned(), Value::Object(arguments)));
            }
        }
        // What no schema has.
        for (hidden, value) in [
            ("contactId", json!(self.ids.bruno)),
            ("expand", json!("bike")),
            ("sort", json!("-id")),
            ("view_id", json!(1)),
            ("filter[id]", json!(self.ids.bruno_order)),
            ("trashed", json!(true)),
            ("version", json!(1)),
        ] {
            let mut arguments = base.clone();
            arguments.insert(hidden.to_owned(), value);
            calls.push((name.to_owned(), Value::Object(arguments)));
        }
        calls
    }
}

#[testkit::both]
async fn an_injection_reaches_nobody_else(kind: Kind) {
    let shop = Shop::open(kind).await;
    let desk = &shop.desk;
    let tools = desk.get(&shop.tools("")).await.expect(200);
    assert_eq!(tools, json!([]));
    let settings = json!({ "max_tool_calls": 200, "max_steps": 50, "memory": { "mode": "none" } });
    desk.app.patch("/agents/1", &desk.key, settings).await.expect(200);
    shop.give_all().await;
    let tools = desk.get(&shop.tools("")).await.expect(200);
    let functions: Vec<&Value> =
        tools.as_array().unwrap().iter().flat_map(|tool| tool["functions"].as_array().unwrap()).collect();
    let before = shop.of_bruno().await;
    let asked = desk.app.model.prompts().len();
    let mut answered = BTreeSet::new();
    for function in functions {
        let name = function["name"].as_str().unwrap();
        for calls in shop.worst_calls(function).chunks(8) {
            let calls = calls.to_vec();
            let brought = shop.call(calls.clone()).await;
            assert_eq!(brought.len(), calls.len(), "{name}");
            for ((_, arguments), result) in calls.iter().zip(&brought) {
                for secret in SECRETS {
                    assert_absent(&format!("{name} {arguments}: {result}"), secret);
                }
                if result.get("data").is_some() {
                    answered.insert(name.to_owned());
                }
            }
            desk.app
                .put(&format!("/contacts/{}/autopilot", shop.ids.ana), &desk.key, json!({ "enabled": true }))
                .await
                .expect(200);
            desk.settle().await;
        }
        assert_eq!(shop.of_bruno().await, before, "{name} changed what is Bruno's");
    }
    let prompts = desk.app.model.prompts();
    assert!(prompts.len() > asked);
    for prompt in &prompts[asked..] {
        for message in &prompt.messages {
            for secret in SECRETS {
                assert_absent(&message.content, secret);
            }
        }
        assert!(prompt.tools.iter().all(|tool| tool.parameters["properties"].get("contact_id").is_none()));
    }
    // It was not silence that kept them in: what the agent may do, it did.
    for name in [
        "contacts_get",
        "contacts_add_note",
        "contacts_tag",
        "messages_send",
        "tasks_list",
        "orders_find",
        "orders_create",
        "in_orders_search",
        "products_find",
    ] {
        assert!(answered.contains(name), "{name} is not among {answered:?}");
    }
    assert!(!answered.contains("contacts_find"));
}

#[testkit::both]
async fn the_contact_of_the_conversation_is_reached_without_its_id(kind: Kind) {
    let shop = Shop::open(kind).await;
    shop.give_all().await;
    let Ids { ana, bruno, orders, ana_order, product, ana_task, bruno_bike, bruno_order, .. } = shop.ids;
    let found = shop.call_one("contacts_get", json!({})).await;
    assert_eq!((&found["data"]["id"], &found["data"]["name"]), (&json!(ana), &json!("Ana")));
    shop.call_one("contacts_update", json!({ "data": { "$company": "Of Ana" } })).await;
    assert_eq!(shop.desk.get(&format!("/contacts/{ana}")).await.expect(200)["data"]["$company"], "Of Ana");
    let claimed = shop.call_one("contacts_update", json!({ "data": { "$phone": "+5511987654399" } })).await;
    assert!(claimed.as_str().unwrap().contains("data.$phone"), "{claimed}");
    let listed = shop.call_one("tasks_list", json!({})).await;
    let titles: Vec<&Value> = listed["data"].as_array().unwrap().iter().map(|task| &task["title"]).collect();
    assert_eq!(titles, ["Task of Ana"]);
    let made = shop.call_one("tasks_create", json!({ "title": "Call back" })).await;
    assert_eq!(made["data"]["contact_id"], ana);
    let done = shop.call_one("tasks_complete", json!({ "task_id": ana_task })).await;
    assert_eq!(done["data"]["status"], "done", "{done}");
    let changed =
        shop.call_one("tasks_update", json!({ "task_id": made["data"]["id"], "priority": "high" })).await;
    assert_eq!((&changed["data"]["priority"], &changed["data"]["contact_id"]), (&json!("high"), &json!(ana)));
    let found = shop
        .call_one(
            "orders_find",
            json!({ "filter_tree": { "field": "name", "op": "like", "value": "%rder%" } }),
        )
        .await;
    assert_eq!((found["data"].as_array().unwrap().len(), &found["data"][0]["id"]), (1, &json!(ana_order)));
    // What stands in other collections cannot be found out by filters.
    for field in ["bike.name", "customer.name"] {
        let refused = json!({ "filter_tree": { "field": field, "op": "like", "value": "%" } });
        let refused = shop.call_one("orders_find", refused).await;
        assert!(refused.as_str().unwrap().contains("other records"), "{refused}");
    }
    let found = shop.call_one("in_orders_search", json!({ "q": "order" })).await;
    assert_eq!(
        (&found["data"][0]["id"], &found["pagination"]["total"]),
        (&json!(ana_order), &json!(1)),
        "{found}"
    );
    let data = json!({ "name": "New", "customer": [bruno], "product": [product] });
    let made = shop.call_one("orders_create", json!({ "data": data })).await;
    assert_eq!(
        (&made["data"]["data"]["customer"], &made["data"]["data"]["product"]),
        (&json!([ana]), &json!([product])),
        "{made}"
    );
    let moved = json!({ "item_id": ana_order, "data": { "name": "Renamed", "customer": [bruno] } });
    let moved = shop.call_one("orders_update", moved).await;
    assert_eq!(
        (&moved["data"]["data"]["name"], &moved["data"]["data"]["customer"]),
        (&json!("Renamed"), &json!([ana])),
        "{moved}"
    );
    let led = shop
        .call_one("orders_update", json!({ "item_id": ana_order, "data": { "bike": [bruno_bike] } }))
        .await;
    assert!(led.as_str().unwrap().contains("data.bike"), "{led}");
    let taken = shop.call_one("orders_create", json!({ "data": { "number": "B-1" } })).await;
    assert_eq!((&taken["code"], taken.get("details")), (&json!("duplicate_value"), None));
    let hidden = shop.call_one("orders_get", json!({ "item_id": bruno_order })).await;
    let gone = shop.call_one("orders_get", json!({ "item_id": 999_999 })).await;
    assert_eq!((&hidden["code"], &hidden), (&json!("not_found"), &gone));
    let read = shop.call_one("products_find", json!({})).await;
    assert_eq!(read["data"][0]["data"]["name"], "Wooden train");
    let written = shop.call_one("products_create", json!({ "data": { "name": "Mine" } })).await;
    assert_eq!(written["code"], "invalid_state", "{written}");
    let items =
        shop.desk.get(&format!("/collections/{orders}/items?filter[customer]={bruno}")).await.expect(200);
    assert_eq!(items.as_array().unwrap().len(), 1);
    // The model is not told an id that none of its tools takes.
    let prompt = &shop.desk.app.model.prompts()[3].messages[0].content;
    assert!(!prompt.contains("The messages are from the contact"), "{prompt}");
}

#[testkit::both]
async fn a_contact_that_was_merged_is_the_one_that_remains(kind: Kind) {
    let shop = Shop::open(kind).await;
    shop.give_all().await;
    let Ids { ana, bruno, ana_order, ana_task, .. } = shop.ids;
    let script = vec![("contacts_get".to_owned(), json!({})), ("tasks_list".to_owned(), json!({}))];
    shop.desk.app.model.then(Script::WaitAndCall(script)).then(Script::Say("done".to_owned()));
    let asked = shop.desk.app.model.prompts().len();
    let working = shop.desk.app.service.channels.start();
    shop.desk.network.write(&shop.ana.user_id, "Who am I?").unwrap();
    testkit::until("the model is asked", async || {
        (shop.desk.app.model.prompts().len() > asked).then_some(())
    })
    .await;
    shop.desk.post(&format!("/contacts/{bruno}/merge"), json!({ "source_id": ana })).await.expect(200);
    shop.desk.app.model.release();
    shop.desk.app.service.engine.idle().await;
    working.stop(std::time::Duration::from_secs(5)).await;
    shop.desk.settle().await;
    let run = testkit::until("the run has called its tools", async || {
        let runs = shop.desk.get("/runs?limit=5").await.expect(200);
        runs.as_array().unwrap().iter().find(|run| run["usage"]["tool_calls"] == 2).cloned()
    });
    let results = results(&shop.desk, &shop.desk.key, &run.await).await;
    assert_eq!(results[0]["data"]["id"], bruno, "{results:?}");
    let tasks: Vec<&Value> = results[1]["data"].as_array().unwrap().iter().map(|task| &task["id"]).collect();
    assert_eq!(tasks.len(), 2, "{results:?}");
    assert!(tasks.contains(&&json!(ana_task)), "{results:?}");
    shop.desk.app.service.jobs.run_due().await.unwrap();
    let items = shop.call_one("orders_find", json!({})).await;
    let found: Vec<&Value> = items["data"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
    assert!(found.contains(&&json!(ana_order)), "{items:?}");
}

#[testkit::both]
async fn an_enrichment_reaches_only_its_contact(kind: Kind) {
    let shop = Shop::open(kind).await;
    shop.give_all().await;
    let Ids { ana, bruno, .. } = shop.ids;
    let calls = [
        ("contacts_get", json!({ "contact_id": bruno })),
        ("contacts_find", json!({ "q": "Zephyrwood" })),
        ("contacts_get", json!({})),
    ];
    let calls = calls.map(|(name, arguments)| (name.to_owned(), arguments)).to_vec();
    shop.desk.app.model.then(Script::Call(calls)).then(Script::Say(json!({ "proposals": [] }).to_string()));
    let done = shop.desk.post(&format!("/contacts/{ana}/enrich"), json!({})).await.expect(200);
    let brought = results(&shop.desk, &shop.desk.key, &json!({ "id": done["run_id"] })).await;
    assert_eq!((brought.len(), &brought[2]["data"]["id"]), (3, &json!(ana)), "{brought:?}");
    for result in &brought {
        SECRETS.iter().for_each(|secret| assert_absent(&result.to_string(), secret));
    }
}

#[testkit::both]
async fn who_approves_a_call_sees_whom_it_reaches(kind: Kind) {
    let shop = Shop::open(kind).await;
    shop.give("messages", json!({ "type": "messages", "access": "read_write", "approval": "always" })).await;
    shop.desk
        .app
        .model
        .then(Script::Call(vec![("messages_send".to_owned(), json!({ "text": "Hello Ana" }))]));
    let working = shop.desk.app.service.channels.start();
    shop.desk.network.write(&shop.ana.user_id, "Write to me.").unwrap();
    let run = testkit::until("the run waits", async || {
        let run = shop.desk.get("/runs?limit=1").await.expect(200)[0].clone();
        (run["status"] == "requires_action").then_some(run)
    });
    let run = run.await;
    assert_eq!(run["required_action"]["contact_id"], shop.ids.ana);
    let shown = shop.desk.get(&format!("/runs/{}", run["id"].as_str().unwrap())).await.expect(200);
    let url = shown["required_action"]["approval_url"].as_str().unwrap().to_owned();
    let path = url.split_once("/approvals/").unwrap().1.to_owned();
    let page = shop.desk.app.ask_beside("GET", &format!("/approvals/{path}")).send().await;
    assert!(
        page.text.contains(&format!("It answers the contact with the id <b>{}</b>.", shop.ids.ana)),
        "{}",
        page.text
    );
    working.stop(std::time::Duration::from_secs(5)).await;
}

#[testkit::both]
async fn all_contacts_are_reached_if_a_tool_says_so(kind: Kind) {
    let shop = Shop::open(kind).await;
    let Ids { ana, bruno, orders, bikes, products, .. } = shop.ids;
    shop.give("people", json!({ "type": "contacts", "scope": "all" })).await;
    let found = shop.call_one("people_get", json!({ "contact_id": bruno })).await;
    assert_eq!(found["data"]["data"]["$company"], SECRETS[0]);
    let prompts = shop.desk.app.model.prompts();
    let told = format!("The messages are from the contact with the id {ana}.");
    assert!(prompts.last().unwrap().messages[0].content.contains(&told));
    // Without a contact there is nothing to reach.
    shop.give("people", json!({ "type": "contacts", "scope": "contact", "access": "read_write" })).await;
    shop.desk.app.model.forget();
    let calls = [("people_get", json!({})), ("people_add_note", json!({ "body": "x" }))];
    let calls = calls.map(|(name, arguments)| (name.to_owned(), arguments));
    shop.desk.app.model.then(Script::Call(calls.to_vec())).then(Script::Say("done".to_owned()));
    let run = shop.desk.post("/runs", json!({ "input": "Hi" })).await.expect(200);
    for result in results(&shop.desk, &shop.desk.key, &run).await {
        assert_eq!(result["code"], "invalid_state", "{result}");
        assert!(result["message"].as_str().unwrap().contains("this run answers none"), "{result}");
    }
    // A fixed contact that is another one is not reached by default.
    shop.give("people", json!({ "type": "contacts", "fixed_arguments": { "contact_id": bruno } })).await;
    let refused = shop.call_one("people_get", json!({})).await;
    assert!(refused["message"].as_str().unwrap().contains("scope `all`"), "{refused}");
    for (body, param) in [
        (json!({ "type": "contacts", "scope": "one" }), "scope"),
        (json!({ "type": "contacts", "contact_field": "customer" }), "contact_field"),
        (json!({ "type": "collection_items", "ref": orders, "scope": "contact" }), "contact_field"),
        (json!({ "type": "collection_items", "ref": orders, "contact_field": "custommer" }), "contact_field"),
        (json!({ "type": "collection_items", "ref": orders, "contact_field": "name" }), "contact_field"),
        (
            json!({ "type": "collection_items", "ref": orders, "contact_field": "customer", "scope": "all" }),
            "contact_field",
        ),
        (
            json!({ "type": "collection_items", "ref": products, "scope": "contact", "access": "read_write" }),
            "access",
        ),
        (
            json!({ "type": "http", "description": "d", "scope": "all", "http": { "url": "https://example.com" } }),
            "scope",
        ),
    ] {
        let refused = shop.desk.app.put(&shop.tools("/tool"), &shop.desk.key, body.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    let bikes =
        shop.give("bikes", json!({ "type": "collection_items", "ref": bikes, "scope": "contact" })).await;
    assert_eq!((&bikes["scope"], &bikes["contact_field"]), (&json!("contact"), &json!("owner")));
    // Several fields and none named: nothing is read rather than everything.
    shop.give("orders", json!({ "type": "collection_items", "ref": orders })).await;
    let refused = shop.call_one("orders_find", json!({})).await;
    assert!(refused["message"].as_str().unwrap().contains("contact_field"), "{refused}");
    // A collection that gets such a field later is not catalogue any more.
    shop.give("products", json!({ "type": "collection_items", "ref": products })).await;
    let read = shop.call_one("products_find", json!({})).await;
    assert_eq!(read["data"].as_array().unwrap().len(), 1);
    shop.desk
        .post(&format!("/collections/{products}/fields"), field("buyer", "contact", json!({})))
        .await
        .expect(201);
    let read = shop.call_one("products_find", json!({})).await;
    assert_eq!(read["data"], json!([]));
}
