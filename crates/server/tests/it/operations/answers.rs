//! What is stored is answered as the contract says.

use crate::operations::channel_seeds::seed_channel;
use crate::operations::sweep::Sweep;
use billing::processor::{
    InvoiceLine, InvoiceStatus, NewInvoice, NewPaymentMethod, record_invoice, record_payment_method,
};
use model::{Cause, Env, WorkspaceId};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use testkit::{Key, Kind, Script, TestApp};

/// Makes one of everything that has an id, with every optional field filled, and gives the ids by the names that
/// paths have for them. An area that adds ids adds them here.
pub async fn seed(sweep: &Sweep) -> BTreeMap<&'static str, String> {
    let app = &sweep.app;
    let key = &sweep.keys[&(false, true)];
    let workspace = WorkspaceId(sweep.workspace.parse().unwrap());
    let agent = json!({
        "name": "Full", "description": "All of it.", "instructions": "Be brief. Say {{vars.full.key}}.", "model": "fast", "temperature": 0.5,
        "max_output_tokens": 500, "energy_limit_per_run": 1000, "energy_limit_monthly": 100_000, "status": "active",
        "memory": { "mode": "window", "max_messages": 10 }, "metadata": { "a": "b" },
        "response_format": { "type": "json_schema", "schema": { "type": "object" } },
    });
    let agent = app.post("/agents", key, agent).await.expect(201)["id"].to_string();
    let tool = json!({
        "type": "http", "description": "Looks something up.", "fixed_arguments": { "a": 1 },
        "parameters": { "type": "object", "properties": { "q": { "type": "string" } } },
        "http": { "method": "GET", "url": "https://example.com/{q}", "headers": { "x-a": "b" } },
    });
    app.put(&format!("/agents/{agent}/tools/look_up"), key, tool).await.expect(200);
    app.model.usage(100, 50).then(Script::Call(vec![("look_up".to_owned(), json!({ "q": 5 }))]));
    app.model.then(Script::Say("{\"a\":1}".to_owned()));
    let run = json!({
        "input": "Hello", "agent_id": agent.parse::<i64>().unwrap(), "conversation_id": "c", "metadata": { "a": "b" },
    });
    let run = app.post("/runs", key, run).await.expect(200);
    app.model.then(Script::Fail(providers::ProviderError::Timeout));
    app.post("/runs", key, json!({ "input": "Hello" })).await.expect_error(504, "agent_timeout");
    let test = app.key(workspace, Env::Test, &["runs:execute"]).await;
    app.post("/runs", &test, json!({ "input": "Hello" })).await.expect(200);
    let budget = app.key_with(workspace, Env::Live, &["runs:read"], |new| new.budget_cents = Some(100));
    budget.await;
    let execution = app.get("/billing/executions", key).await.expect(200)[0]["id"].clone();
    let invoice = app.db().write(move |tx| {
        record_payment_method(
            tx,
            workspace,
            &NewPaymentMethod {
                processor_id: "pm_1".to_owned(),
                kind: "card".to_owned(),
                brand: Some("visa".to_owned()),
                last4: Some("4242".to_owned()),
                exp_month: Some(12),
                exp_year: Some(2030),
                is_default: true,
            },
        )?;
        record_invoice(
            tx,
            workspace,
            &NewInvoice {
                processor_id: "in_1".to_owned(),
                number: "1".to_owned(),
                status: InvoiceStatus::Paid,
                total_cents: 100,
                currency: "USD".to_owned(),
                pdf_url: Some("https://example.com/1.pdf".to_owned()),
                lines: vec![InvoiceLine { description: "Pro".to_owned(), quantity: 1, amount_cents: 100 }],
                due_at: None,
                paid_at: Some(tx.now()),
            },
        )
    });
    seed_business(sweep, workspace).await;
    let variable = json!({
        "key": "full.key", "type": "json", "value": { "a": [1, null] }, "description": "d", "group": "Full", "env": "live",
        "metadata": { "a": "b" },
    });
    let variable = app.post("/variables", key, variable).await.expect(201)["id"].to_string();
    let delivered = deliver_one(app, key).await;
    let mut ids = seed_items(sweep).await;
    let import = seed_import(sweep, &ids["collectionId"]).await;
    ids.extend(seed_contact(sweep).await);
    let file = app.ask("POST", "/files").key(key).header("idempotency-key", "file");
    let fields = [("folder", "full"), ("tags", "a,b"), ("metadata", "{\"a\":\"b\"}")];
    let file = file.form(&fields, ("a.gif", b"GIF89a\x40\x01\xf0\0\0\0\0")).send().await.expect(201);
    ids.extend(seed_task(sweep, &ids, &file["id"]).await);
    ids.extend(seed_channel(sweep, &ids["contactId"], &ids["segmentId"], &file["id"]).await);
    ids.extend([
        ("fileId", file["id"].to_string()),
        ("uploadId", seed_upload(sweep).await),
        ("partNumber", "1".to_owned()),
        ("importId", import),
        ("inboundWebhookId", seed_inbound_webhook(sweep).await),
        ("workspaceId", sweep.workspace.clone()),
        ("variableId", variable),
        ("agentId", agent),
        ("toolId", "look_up".to_owned()),
        ("version", "1".to_owned()),
        ("runId", run["id"].as_str().unwrap().to_owned()),
        ("executionId", execution.as_str().unwrap().to_owned()),
        ("invoiceId", invoice.await.unwrap().to_string()),
        ("endpointId", delivered["endpoint_id"].as_str().unwrap().to_owned()),
        ("deliveryId", delivered["id"].as_str().unwrap().to_owned()),
        ("eventId", delivered["event_id"].as_str().unwrap().to_owned()),
    ]);
    ids
}

/// A member of the team and a profile of the business, with everything that they can have.
async fn seed_business(sweep: &Sweep, workspace: WorkspaceId) {
    use business::team::{Availability, AvailabilityStatus, MemberRole, NewMember};
    let made = sweep.app.db().write(move |tx| {
        let member = NewMember {
            name: "Full".to_owned(),
            email: "full@example.com".to_owned(),
            role: MemberRole::Manager,
            avatar_url: Some("https://example.com/full.jpg".to_owned()),
            availability: Availability {
                status: AvailabilityStatus::Away,
                until: Some(tx.now().plus_seconds(3600)),
            },
            capacity: Some(5),
            languages: vec!["es".to_owned(), "pt-BR".to_owned()],
        };
        business::team::add(tx, workspace, member)?;
        let profile = json!({
            "name": "Full", "legal_name": "Full Ltd.", "description": "d", "vertical": "retail",
            "time_zone": "Europe/Madrid", "currency": "EUR", "locale": "es-ES", "country": "ES", "address": "a",
            "email": "full@example.com", "phone": "911234567", "website": "https://example.com",
            "hours": [{ "day": "monday", "open": "09:00", "close": "24:00" }],
            "holidays": [{ "date": "2026-12-25", "name": "Christmas Day", "yearly": true }],
        });
        business::set(tx, workspace, serde_json::from_value(profile).unwrap())
    });
    made.await.unwrap();
}

/// A collection with all that a collection can have, and an item with everything that an item can have.
async fn seed_items(sweep: &Sweep) -> BTreeMap<&'static str, String> {
    let (app, key) = (&sweep.app, &sweep.keys[&(false, true)]);
    let group = app.post("/collections/groups", key, json!({ "name": "Full" })).await.expect(201);
    let collection = json!({
        "name": "Full", "description": "d", "icon": "📦", "color": "#ff8800", "group_id": group["id"],
        "settings": { "unique_keys": [["name", "size"]] },
        "fields": [
            {
                "label": "Name", "type": "text", "required": true, "unique": true, "description": "d",
                "options": { "max_length": 100, "pattern": ".+" },
            },
            {
                "label": "Size", "type": "select", "default": "small",
                "options": { "choices": [{ "label": "Small", "color": "green" }, { "label": "Large" }] },
            },
            { "label": "Price", "type": "currency", "options": { "currency": "EUR", "precision": 2, "min": 0, "max": 10 } },
            { "label": "Gross", "type": "formula", "options": { "expression": "{price} * 2" } },
        ],
    });
    let collection = app.post("/collections", key, collection).await.expect(201);
    let path = format!("/collections/{}", collection["id"]);
    let item = json!({ "data": { "name": "Full", "price": 1.5 }, "external_key": "full" });
    let item = app.post(&format!("{path}/items"), key, item).await.expect(201);
    let view = json!({
        "name": "Full", "type": "board", "filter_tree": { "and": [{ "field": "price", "op": "gt", "value": 1 }] },
        "sort": ["-price", "name"], "visible_fields": ["name"], "group_by": ["size"], "search": "full",
        "is_default": true, "materialized_sort": true,
    });
    let view = app.post(&format!("{path}/views"), key, view).await.expect(201);
    let index = json!({ "fields": [{ "field": "name" }, { "field": "updated_at", "direction": "desc" }] });
    app.post(&format!("{path}/indexes"), key, index).await.expect(201);
    let at = format!("{path}/items");
    let comment = json!({ "body": "Full", "field_key": "name", "mentions": [1] });
    app.post(&format!("{at}/{}/comments", item["id"]), key, comment).await.expect(201);
    let other = app.post(&at, key, json!({ "data": { "name": "Other" } })).await.expect(201);
    for (target, role) in
        [(json!({ "type": "item", "id": other["id"] }), "twin"), (run_target(sweep).await, "cause")]
    {
        let link = json!({ "to": target, "role": role, "note": "n", "position": 1 });
        app.post(&format!("{at}/{}/links", item["id"]), key, link).await.expect(201);
    }
    let file = json!({ "file_id": insert_file(sweep, "a").await });
    let files = format!("/collections/{}/items/{}/files", collection["id"], item["id"]);
    app.post(&files, key, file).await.expect(201);
    BTreeMap::from([
        ("viewId", view["id"].to_string()),
        ("collectionId", collection["id"].to_string()),
        ("groupId", group["id"].to_string()),
        ("fieldId", collection["fields"][0]["id"].to_string()),
        ("itemId", item["id"].to_string()),
    ])
}

/// A contact with everything that a contact can have.
async fn seed_contact(sweep: &Sweep) -> BTreeMap<&'static str, String> {
    let (app, key) = (&sweep.app, &sweep.keys[&(false, true)]);
    let field = json!({
        "field_key": "price", "label": "Price group", "type": "select", "description": "d", "default": "a",
        "options": { "choices": [{ "label": "A", "color": "red" }, { "label": "B" }] },
    });
    app.post("/variables/contact-fields", key, field).await.expect(201);
    let contact = json!({
        "data": {
            "price": "b", "$name": "Full", "$phone": "+34612345678", "$email": "full@example.com", "$username": "full",
            "$chat_user_id": "u1", "$avatar_url": "https://example.com/full.png", "$language": "es-ES", "$country": "ES",
            "$timezone": "Europe/Madrid", "$source": "website", "$stage": "new", "$company": "Full", "$birthday": "1990-01-01",
        },
        "tags": ["vip"], "external_id": "full",
    });
    let contact = app.post("/contacts", key, contact).await.expect(201);
    let path = format!("/contacts/{}", contact["id"]);
    for (name, phone) in [("Full", "+34612345679"), ("Fuller", "+34612345670")] {
        let other = json!({ "data": { "$name": name, "$phone": phone, "$company": "Full", "$birthday": "1990-01-01" } });
        let other = app.post("/contacts", key, other).await.expect(201);
        if name == "Full" {
            let merge = json!({ "source_id": other["id"] });
            app.post(&format!("{path}/merge"), key, merge).await.expect(200);
        }
    }
    let paper = json!({ "field_key": "papers", "label": "Papers", "type": "file" });
    app.post("/variables/contact-fields", key, paper).await.expect(201);
    let file = insert_file(sweep, "paper").await;
    app.patch(&path, key, json!({ "data": { "papers": [file] } })).await.expect(200);
    app.post(&format!("{path}/opt-out"), key, json!({ "source": "message", "proof": "STOP" }))
        .await
        .expect(200);
    let pause = json!({ "enabled": false, "paused_until": "2027-01-01T00:00:00Z", "summary": "s" });
    app.put(&format!("{path}/autopilot"), key, pause).await.expect(200);
    let members = app.get("/team", key).await.expect(200);
    app.put(&format!("{path}/assignment"), key, json!({ "assignee_id": members[0]["id"] })).await.expect(200);
    let note = json!({ "body": "Full", "pinned": true });
    let note = app.post(&format!("/contacts/{}/notes", contact["id"]), key, note).await.expect(201);
    let segment = json!({
        "name": "Full", "description": "d", "filter_tree": { "field": "$stage", "op": "eq", "value": "new" },
    });
    let segment = app.post("/contacts/segments", key, segment).await.expect(201);
    let reminder = json!({
        "title": "Full", "note": "n", "due_at": app.db().now().plus_seconds(3600), "timezone": "Europe/Madrid",
        "recurrence": { "type": "cron", "rule": "0 9 * * *", "until": app.db().now().plus_seconds(90 * 86_400), "count": 9 },
        "contact_id": contact["id"], "assignee": { "type": "user", "id": 1 }, "cancel_on_reply": true, "metadata": { "a": "b" },
        "action": { "type": "run_agent", "config": { "input": "Hello" } },
    });
    let reminder = app.post("/reminders", key, reminder).await.expect(201);
    BTreeMap::from([
        ("fieldKey", "price".to_owned()),
        ("reminderId", reminder["id"].to_string()),
        ("contactId", contact["id"].to_string()),
        ("noteId", note["id"].to_string()),
        ("segmentId", segment["id"].to_string()),
        ("tag", "vip".to_owned()),
    ])
}

/// A task with everything that a task can have, and one that is done.
async fn seed_task(
    sweep: &Sweep,
    ids: &BTreeMap<&'static str, String>,
    file: &Value,
) -> BTreeMap<&'static str, String> {
    let id = |name: &str| ids[name].parse::<i64>().unwrap();
    let (app, key) = (&sweep.app, &sweep.keys[&(false, true)]);
    let tasks = format!("/workspaces/{}/tasks", sweep.workspace);
    let parent = app.post(&tasks, key, json!({ "title": "Parent" })).await.expect(201);
    let recurring = json!({
        "title": "Before", "due": { "date": "2026-12-01" }, "recurrence": { "rule": "FREQ=DAILY" },
    });
    let before = app.post(&tasks, key, recurring).await.expect(201);
    app.post(&format!("{tasks}/{}/complete", before["id"]), key, json!({})).await.expect(200);
    let task = json!({
        "title": "Full", "description": "d", "status": "in_progress", "status_label": "s", "priority": "high",
        "assignee": { "type": "agent", "id": 1 }, "due": { "datetime": "2026-12-01T10:00:00Z", "time_zone": "Europe/Madrid" },
        "start_at": "2026-11-01T10:00:00Z", "estimate_minutes": 5, "labels": ["x"],
        "checklist": [{ "text": "a", "done": true }], "parent_id": parent["id"], "depends_on": [before["id"]],
        "recurrence": { "rule": "FREQ=WEEKLY;BYDAY=MO", "from": "completion" }, "contact_id": id("contactId"),
        "item_ref": { "collection_id": id("collectionId"), "item_id": id("itemId") }, "project": "p", "external_key": "full",
    });
    let task = app.post(&tasks, key, task).await.expect(201);
    let at = format!("{tasks}/{}", task["id"]);
    app.post(&format!("{at}/subtasks"), key, json!({ "title": "Below" })).await.expect(201);
    let comment = app.post(&format!("{at}/comments"), key, json!({ "body": "Full" })).await.expect(201);
    let edited = json!({ "body": "Full, edited" });
    app.patch(&format!("{at}/comments/{}", comment["id"]), key, edited).await.expect(200);
    app.post(&format!("{at}/files"), key, json!({ "file_id": file })).await.expect(201);
    BTreeMap::from([("taskId", task["id"].to_string()), ("label", "x".to_owned())])
}

/// Adds the row of an uploaded file.
pub async fn insert_file(sweep: &Sweep, name: &'static str) -> i64 {
    let workspace = WorkspaceId(sweep.workspace.parse().unwrap());
    let made = sweep.app.db().write(move |tx| {
        use diesel::{ExpressionMethods, RunQueryDsl};
        use files::schema::files as f;
        let now = tx.now();
        let row = (
            (f::workspace_id.eq(workspace), f::name.eq("a.txt"), f::mime_type.eq("text/plain")),
            (f::sha256.eq("00"), f::storage_key.eq(name), f::path_token.eq(name), f::status.eq("ready")),
            (
                f::uploaded_by.eq(Cause::system("test").actor),
                f::version.eq(1),
                f::created_at.eq(now),
                f::updated_at.eq(now),
            ),
            f::size.eq(3),
        );
        Ok(diesel::insert_into(f::table).values(row).returning(f::id).get_result::<i64>(tx.connection())?)
    });
    made.await.unwrap()
}

/// A run, as what a link points to.
async fn run_target(sweep: &Sweep) -> Value {
    let runs = sweep.app.get("/runs", &sweep.keys[&(false, true)]).await.expect(200);
    json!({ "type": "run", "id": runs[0]["id"] })
}

/// An import that took a row and could not take another.
async fn seed_import(sweep: &Sweep, collection: &str) -> String {
    let new_import = json!({
        "content": "name,extra\nA,1\nB,2,3\n", "mapping": { "extra": null }, "match_on": ["name"],
        "encoding": "utf-8", "delimiter": ",", "has_header": true,
    });
    let (path, key) = (format!("/collections/{collection}/items/import"), &sweep.keys[&(false, true)]);
    let import = sweep.app.post(&path, key, new_import).await.expect(201)["id"].as_str().unwrap().to_owned();
    sweep.app.service.jobs.run_due().await.unwrap();
    import
}

/// An upload with two parts.
async fn seed_upload(sweep: &Sweep) -> String {
    let (app, key) = (&sweep.app, &sweep.keys[&(false, true)]);
    let upload = app.post("/files/uploads", key, json!({ "name": "a.txt" })).await.expect(201);
    let id = upload["id"].as_str().unwrap().to_owned();
    for number in [1, 2] {
        let part = app.ask("PUT", &format!("/files/uploads/{id}/parts/{number}")).key(key);
        part.bytes("application/octet-stream", b"Hello").send().await.expect(200);
    }
    id
}

/// An inbound webhook that has received a request.
async fn seed_inbound_webhook(sweep: &Sweep) -> String {
    let app = &sweep.app;
    let new = json!({
        "name": "Full", "description": "d", "verification": { "type": "meta", "secrets": ["s"], "verify_token": "t" },
        "allowed_ips": ["127.0.0.1"], "metadata": { "a": "b" }, "capture": true,
        "response": { "type": "static", "status": 201, "body": "ok", "content_type": "text/plain" },
        "mapping": {
            "event_type": "$.a", "vars": { "a": { "from": "$.a" } },
            "contact": { "match_on": "phone", "fields": { "phone": "$.p" } },
        },
    });
    let webhook = app.post("/inbound-webhooks", &sweep.keys[&(false, true)], new).await.expect(201);
    let url = webhook["url"].as_str().unwrap().strip_prefix("https://svc.example").unwrap();
    app.ask_beside("POST", url).json(&json!({ "p": 1 })).send().await.expect_error(400, "invalid_signature");
    webhook["id"].as_str().unwrap().to_owned()
}

/// Delivers an event to an endpoint that answers, and one that does not; gives the delivery.
async fn deliver_one(app: &TestApp, key: &Key) -> Value {
    let receiver = testkit::Receiver::start().await;
    let endpoint = json!({
        "url": receiver.url("/"), "enabled_events": ["run.*"], "description": "Ours", "headers": { "X-A": "b" },
        "filter": { "data.status": "completed" }, "rate_limit_per_second": 50, "metadata": { "a": "b" },
    });
    let endpoint = app.post("/webhook-endpoints", key, endpoint).await.expect(201);
    app.post("/runs", key, json!({ "input": "Hello" })).await.expect(200);
    app.deliver().await;
    let path = format!("/webhook-endpoints/{}/deliveries", endpoint["id"].as_str().unwrap());
    app.get(&path, key).await.expect(200)[0].clone()
}

#[testkit::both]
async fn stored_objects_fit_the_contract(kind: Kind) {
    let sweep = Sweep::begin(kind).await;
    let ids = seed(&sweep).await;
    for (document, op) in sweep.operations().filter(|(_, op)| op.method == "GET") {
        let mut path = op.path.clone();
        for name in document.ids(&op) {
            let id = ids.get(name.as_str()).unwrap_or_else(|| panic!("{}: seed a {name}", op.id));
            path = path.replace(&format!("{{{name}}}"), id);
        }
        let mut queries = vec![String::new()];
        if op.paging.as_deref() == Some("opt_in") {
            queries.push("?paginate=true&limit=1".to_owned());
        }
        if op.id == "searchItems" {
            queries = vec!["?q=full".to_owned(), "?q=full&page=1&limit=1".to_owned()];
        }
        if op.id == "searchConversations" {
            queries = vec!["?q=espresso".to_owned(), "?q=espresso&paginate=true&limit=1".to_owned()];
        }
        if op.id == "getRun" {
            queries.push("?include=steps".to_owned());
        }
        for query in queries {
            let answer = sweep.send(&op, &format!("{path}{query}"), Some(sweep.key(&op, true)), None).await;
            let data = answer.expect(200);
            assert_ne!(data, Value::Null, "{}", op.id);
            // A list without rows would prove nothing.
            assert_ne!(data, json!([]), "{}: seed a row", op.id);
        }
    }
}
