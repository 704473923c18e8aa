//! Flows that are started from elsewhere: by reminders, inbound webhooks and tools of agents.

use crate::support::Bed;
use model::{Chain, EventId, SeededRandom};
use operation::CauseHeader;
use serde_json::{Value, json};
use testkit::{Answer, Kind, Script};

fn id(flow: &str) -> i64 {
    flow.rsplit('/').next().unwrap().parse().unwrap()
}

/// An inbound webhook that a flow answers.
async fn hook(bed: &Bed, flow: &str, more: Value) -> Value {
    let mut body = json!({ "name": "Orders", "response": { "type": "flow", "flow_id": id(flow), "timeout_seconds": 1 } });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    bed.app.post("/inbound-webhooks", &bed.key, body).await.expect(201)
}

async fn post(bed: &Bed, hook: &Value, body: Value) -> Answer {
    let path = hook["url"].as_str().unwrap().replace("https://svc.example", "");
    bed.app.ask_beside("POST", &path).json(&body).send().await
}

/// The runs of a flow, oldest first.
async fn runs(bed: &Bed, flow: &str) -> Vec<Value> {
    let path = format!("{}?flow_id={}&limit=100", bed.at("/flow-runs"), id(flow));
    let runs = bed.app.get(&path, &bed.key).await.expect(200);
    runs.as_array().unwrap().iter().rev().cloned().collect()
}

#[testkit::both]
async fn a_flow_answers_an_inbound_webhook(kind: Kind) {
    let bed = Bed::new(kind).await;
    let body = json!({ "twice": "{{ $input.n * 2 }}", "of": "{{ $trigger.name }}" });
    let respond = json!({ "status": 201, "headers": { "ETag": "\"a\"", "Set-Cookie": "a=b" }, "body": body });
    let flow = bed.flow(json!({ "answer": ["respond", respond] }), &["start>answer"]).await;
    let once = json!({ "dedupe": { "by": "json_path", "path": "$.n" } });
    let orders = hook(&bed, &flow, once).await;
    for (n, twice) in [(21, 42), (21, 42), (4, 8)] {
        let answer = post(&bed, &orders, json!({ "n": n })).await;
        assert_eq!((answer.status, &answer.body), (201, &json!({ "twice": twice, "of": "Orders" })));
        assert_eq!(answer.headers["etag"], "\"a\"");
        assert!(!answer.headers.contains_key("set-cookie"));
    }
    let started = runs(&bed, &flow).await;
    assert_eq!(started.len(), 2, "a repeated delivery gets the answer of the first");
    let trigger = &started[0]["trigger"];
    assert_eq!((&trigger["type"], &trigger["depth"]), (&json!("inbound_webhook"), &json!(1)));
    // A run that is completed without an answer.
    let plain = bed.flow(json!({ "sum": ["transform", { "fields": { "a": 1 } }] }), &["start>sum"]).await;
    let answer = post(&bed, &hook(&bed, &plain, json!({})).await, json!({})).await;
    assert_eq!((answer.status, &answer.body["data"]["output"]), (200, &json!({ "data": { "a": 1 } })));
    // Report 18 (n8n#25340 and others): a flow that fails before it responds is no success.
    let nodes =
        json!({ "sum": ["transform", { "fields": { "a": "{{ 1 / $input.zero }}" } }], "answer": "respond" });
    let failing = bed.flow(nodes, &["start>sum", "sum>answer"]).await;
    let answer = post(&bed, &hook(&bed, &failing, json!({})).await, json!({ "zero": 0 })).await;
    answer.expect_error(502, "flow_failed");
    let run = &runs(&bed, &failing).await[0];
    assert_eq!(
        (&run["id"], &run["status"]),
        (&answer.body["error"]["details"]["flow_run_id"], &json!("failed"))
    );
    // One that waits is answered with 202, and goes on.
    let waiting = bed.flow(json!({ "wait": ["delay", { "days": 1 }] }), &["start>wait"]).await;
    let answer = post(&bed, &hook(&bed, &waiting, json!({})).await, json!({})).await;
    let run = runs(&bed, &waiting).await.remove(0);
    assert_eq!((answer.status, &answer.body["data"]["flow_run_id"]), (202, &run["id"]));
    assert_eq!(bed.after(86_400, &run).await["status"], "completed");
    // A flow that is switched off answers nobody.
    bed.app.post(&format!("{flow}/unpublish"), &bed.key, json!({})).await.expect(200);
    let answer = post(&bed, &orders, json!({ "n": 5 })).await;
    answer.expect_error(503, "flow_unavailable");
    assert_eq!(answer.body["error"]["details"]["reason"], "inactive");
}

#[testkit::both]
async fn an_input_that_does_not_fit_is_refused(kind: Kind) {
    let bed = Bed::new(kind).await;
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let start = json!({ "type": "trigger", "config": { "input_schema": schema } });
    let flow = bed.flow(json!({ "start": start, "answer": "respond" }), &["start>answer"]).await;
    let orders = hook(&bed, &flow, json!({})).await;
    let refused = post(&bed, &orders, json!({ "n": "many" })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("input"));
    assert_eq!(post(&bed, &orders, json!({ "n": 1 })).await.status, 200);
    let due = bed.app.db().now().plus_seconds(60).rfc3339();
    let action = json!({ "type": "start_flow", "config": { "flow_id": id(&flow) } });
    let new = json!({ "title": "x", "due_at": due, "action": action });
    let refused = bed.app.post("/reminders", &bed.key, new).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("action.config.input"));
}

#[testkit::both]
async fn a_reminder_starts_a_flow(kind: Kind) {
    let bed = Bed::new(kind).await;
    let contact =
        bed.app.post("/contacts", &bed.key, json!({ "data": { "$name": "Ana" } })).await.expect(201);
    let text = "{{ $contact.$name }}, {{ $input.discount }} %: {{ $trigger.reminder.title }}";
    let flow =
        bed.flow(json!({ "say": ["transform", { "fields": { "text": text } }] }), &["start>say"]).await;
    let due = bed.app.db().now().plus_seconds(60).rfc3339();
    let config = json!({ "flow_id": id(&flow), "input": { "discount": 10 } });
    let reminder = json!({
        "title": "Win her back", "due_at": due, "contact_id": contact["id"],
        "action": { "type": "start_flow", "config": config },
    });
    let reminder = bed.app.post("/reminders", &bed.key, reminder).await.expect(201);
    bed.app.data.clock.advance(chrono::Duration::seconds(70));
    bed.app.service.jobs.run_due().await.unwrap();
    bed.app.run_flows().await;
    let started = runs(&bed, &flow).await;
    assert_eq!(started.len(), 1);
    let run = &started[0];
    assert_eq!((&run["status"], &run["contact_id"]), (&json!("completed"), &contact["id"]));
    assert_eq!(run["output"]["data"]["text"], "Ana, 10 %: Win her back");
    assert_eq!(
        (&run["trigger"]["type"], &run["trigger"]["id"]),
        (&json!("reminder"), &json!(reminder["id"].to_string()))
    );
}

#[testkit::both]
async fn an_agent_starts_a_flow(kind: Kind) {
    let bed = Bed::new(kind).await;
    let schema = json!({ "type": "object", "properties": { "n": { "type": "number" } }, "required": ["n"] });
    let start = json!({ "type": "trigger", "config": { "input_schema": schema } });
    let nodes =
        json!({ "start": start, "sum": ["transform", { "fields": { "twice": "{{ $input.n * 2 }}" } }] });
    let more = json!({ "settings": { "description": "Doubles a number." } });
    let flow = bed.flow_with(nodes, &["start>sum"], more).await;
    let agent = bed.app.get("/agents", &bed.key).await.expect(200)[0]["id"].clone();
    let tool = json!({ "type": "flow", "ref": id(&flow) });
    bed.app.put(&format!("/agents/{agent}/tools/double"), &bed.key, tool).await.expect(200);
    let call = Script::Call(vec![("double".to_owned(), json!({ "n": 21 }))]);
    bed.app.model.then(call).then(Script::Say("42".to_owned()));
    let run = bed.app.post("/runs", &bed.key, json!({ "input": "Twice 21?" })).await.expect(200);
    assert_eq!(run["output"], "42");
    assert_eq!(bed.app.model.prompts()[0].tools[0].description, "Doubles a number.");
    let started = runs(&bed, &flow).await;
    let trigger = &started[0]["trigger"];
    assert_eq!(
        (&trigger["type"], &trigger["id"], &trigger["depth"]),
        (&json!("agent"), &run["id"], &json!(1))
    );
    let prompts = bed.app.model.prompts();
    let result = &prompts[1].messages.last().unwrap().content;
    let told: Value =
        serde_json::from_str(&result[result.find('{').unwrap()..=result.rfind('}').unwrap()]).unwrap();
    assert_eq!(
        (&told["result"]["output"], &told["result"]["flow_run_id"]),
        (&json!({ "data": { "twice": 42 } }), &started[0]["id"]),
        "{prompts:?}"
    );
}

#[testkit::both]
async fn a_flow_in_use_is_not_deleted(kind: Kind) {
    let bed = Bed::new(kind).await;
    let flow = bed.flow(json!({ "answer": "respond" }), &["start>answer"]).await;
    let orders = hook(&bed, &flow, json!({})).await;
    let refused = bed.app.delete(&flow, &bed.key).await;
    refused.expect_error(409, "resource_in_use");
    let used_by =
        json!([{ "type": "inbound_webhook", "id": orders["id"], "name": "Orders", "version": null }]);
    assert_eq!(refused.body["error"]["details"]["used_by"], used_by);
}

/// What is too far from the first cause starts no flow, whatever the way.
#[testkit::both]
async fn a_chain_of_causes_ends(kind: Kind) {
    let bed = Bed::new(kind).await;
    let flow = bed.flow(json!({ "answer": "respond" }), &["start>answer"]).await;
    let orders = hook(&bed, &flow, json!({})).await;
    let path = orders["url"].as_str().unwrap().replace("https://svc.example", "");
    let agent = bed.app.get("/agents", &bed.key).await.expect(200)[0]["id"].clone();
    let tool = json!({ "type": "flow", "ref": id(&flow) });
    bed.app.put(&format!("/agents/{agent}/tools/answer"), &bed.key, tool).await.expect(200);
    let causes = bed.app.service.pipeline.services.get::<CauseHeader>().unwrap();
    let root = EventId::new(bed.app.db().now(), &SeededRandom::new(1));
    for (depth, starts) in [(4, true), (5, false)] {
        let chain = Chain { depth, ..Chain::starting(root.clone()) };
        let header = || causes.of("https://svc.example", &chain, bed.app.db().now()).unwrap();
        let (name, value) = header();
        let answer = bed.app.ask_beside("POST", &path).header(&name, &value).json(&json!({})).send().await;
        if starts {
            assert_eq!(answer.status, 200, "{}", answer.text);
        } else {
            answer.expect_error(503, "flow_unavailable");
            assert_eq!(answer.body["error"]["details"]["reason"], "loop_detected");
        }
        let call = Script::Call(vec![("answer".to_owned(), json!({ "depth": depth }))]);
        bed.app.model.then(call).then(Script::Say("Done.".to_owned()));
        let (name, value) = header();
        let asking = bed.app.ask("POST", "/runs").key(&bed.key).header(&name, &value);
        asking.json(&json!({ "input": "Go." })).send().await.expect(200);
        let told = bed.app.model.prompts().last().unwrap().messages.last().unwrap().content.clone();
        assert_eq!(told.contains("\"loop_detected\""), !starts, "{told}");
        let due = bed.app.db().now().plus_seconds(60).rfc3339();
        let action = json!({ "type": "start_flow", "config": { "flow_id": id(&flow) } });
        let new = json!({ "title": "x", "due_at": due, "action": action });
        // A reminder fires one step after what made it, and its flow is one step after that.
        let (name, value) = causes
            .of("https://svc.example", &Chain { depth: depth - 1, ..chain.clone() }, bed.app.db().now())
            .unwrap();
        let made = bed
            .app
            .ask("POST", "/reminders")
            .key(&bed.key)
            .header(&name, &value)
            .json(&new)
            .send()
            .await
            .expect(201);
        bed.app.data.clock.advance(chrono::Duration::seconds(70));
        bed.app.service.jobs.run_due().await.unwrap();
        bed.app.service.jobs.run_due().await.unwrap();
        let all = bed.app.get("/reminders", &bed.key).await.expect(200);
        let reminder = all.as_array().unwrap().iter().find(|one| one["id"] == made["id"]).unwrap();
        assert_eq!(reminder["last_error"].is_null(), starts, "{reminder}");
    }
    bed.app.run_flows().await;
    let depths: Vec<Value> =
        runs(&bed, &flow).await.iter().map(|run| run["trigger"]["depth"].clone()).collect();
    assert!(depths.iter().all(|depth| depth.as_i64() <= Some(5)), "{depths:?}");
    assert_eq!(depths.len(), 3);
}
