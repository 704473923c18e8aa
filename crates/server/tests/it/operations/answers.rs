//! What is stored is answered as the contract says.

use crate::operations::channel_seeds::seed_channel;
use crate::operations::samples::{Ids, Samples};
use crate::operations::sweep::Sweep;
use crate::operations::valid::sample_id;
use billing::processor::{
    InvoiceLine, InvoiceStatus, NewInvoice, NewPaymentMethod, record_invoice, record_payment_method,
};
use model::{Cause, Env, MemberId, RequestId, WorkspaceId};
use serde_json::{Value, json};
use testkit::{Key, Kind, Script, TestApp};

/// Makes one of everything that has an id, with every optional field filled, and gives the ids by the names that paths have
/// for them. An area states its objects in `contract/samples.json`; here is what needs more than requests.
pub async fn seed(sweep: &Sweep) -> Ids {
    let workspace = WorkspaceId(sweep.workspace.parse().unwrap());
    let mut ids = Ids::new();
    let add = |ids: &mut Ids, name: &str, id: &str| drop(ids.insert(name.to_owned(), id.to_owned()));
    let mut samples = Samples::read();
    add(&mut ids, "workspaceId", &sweep.workspace);
    add(&mut ids, "partNumber", "1");
    add(&mut ids, "memberId", &seed_business(sweep, workspace).await);
    // The examples of the contract know the ids of contacts, which follow those of items.
    samples.send_until(sweep, &mut ids, "otherItemId").await;
    let import = seed_import(sweep, &ids["collectionId"]).await;
    add(&mut ids, "importId", &import);
    samples.send(sweep, &mut ids).await;
    seed_runs(sweep, workspace, &mut ids).await;
    add(&mut ids, "invoiceId", &seed_invoice(sweep, workspace).await);
    let delivered = deliver_one(&sweep.app, &sweep.keys[&(false, true)]).await;
    for (name, field) in [("endpointId", "endpoint_id"), ("deliveryId", "id"), ("eventId", "event_id")] {
        add(&mut ids, name, delivered[field].as_str().unwrap());
    }
    add(&mut ids, "fileId", &upload_file(sweep).await);
    samples.send(sweep, &mut ids).await;
    upload_parts(sweep, &ids["uploadId"]).await;
    receive_inbound(sweep, &ids["inboundWebhookId"]).await;
    let file = json!(ids["fileId"].parse::<i64>().unwrap());
    for (name, id) in seed_channel(sweep, &ids["contactId"], &ids["segmentId"], &file).await {
        add(&mut ids, name, &id);
    }
    samples.send(sweep, &mut ids).await;
    samples.expect_none_left(&ids);
    if sweep.documents.len() > 2 {
        seed_dashboard(sweep, workspace, &mut ids).await;
    }
    ids
}

/// What the dashboard shows: a key, a refused request, another browser, another workspace, and an invitation.
async fn seed_dashboard(sweep: &Sweep, workspace: WorkspaceId, ids: &mut Ids) {
    let app = &sweep.app;
    let key = app.key(workspace, Env::Live, &["contacts:read"]).await;
    let tenant = app.bare_workspace("unlimited", 0).await;
    let owner = sweep.owner().await.session.account.clone();
    let (key_id, member) = (key.id.clone(), MemberId(ids["memberId"].parse().unwrap()));
    let made = app.db().write(move |tx| {
        use business::team::{Editor, Invitation, find, invite};
        use diesel::{ExpressionMethods, RunQueryDsl};
        use operation::schema::request_logs as l;
        let (now, random) = (tx.now(), tx.random());
        let (session, _) = accounts::sessions::open(tx, &owner, [127, 0, 0, 1].into(), "Firefox")?;
        let email = find(tx, workspace, member)?.email;
        let invitation = Invitation { email, name: None, role: None };
        invite(tx, workspace, &invitation, &Editor::command_line("test"))?;
        let request = RequestId::new(now, &*random);
        let row = (
            (l::id.eq(request.as_str()), l::created_at.eq(now), l::workspace_id.eq(workspace)),
            (l::key_id.eq(key_id.as_str()), l::operation.eq("createContact"), l::method.eq("POST")),
            (l::path.eq("/contacts"), l::status.eq(403), l::code.eq("missing_scope"), l::gate.eq("scope")),
            (l::livemode.eq(true), l::latency_us.eq(812), l::energy.eq(0), l::replayed.eq(false)),
            (l::message.eq("The key lacks the scope."), l::param.eq("contacts:write")),
        );
        diesel::insert_into(l::table).values(row).execute(tx.connection())?;
        Ok((session.id, request))
    });
    let (session, request) = made.await.unwrap();
    ids.insert("keyId".to_owned(), key.id.to_string());
    ids.insert("requestId".to_owned(), request.to_string());
    ids.insert("sessionId".to_owned(), session.to_string());
    ids.insert("tenantId".to_owned(), tenant.to_string());
}

/// Runs that called a tool, failed, and were simulated.
async fn seed_runs(sweep: &Sweep, workspace: WorkspaceId, ids: &mut Ids) {
    let (app, key) = (&sweep.app, &sweep.keys[&(false, true)]);
    app.model.usage(100, 50).then(Script::Call(vec![("look_up".to_owned(), json!({ "q": 5 }))]));
    app.model.then(Script::Say("{\"a\":1}".to_owned()));
    let agent: i64 = ids["agentId"].parse().unwrap();
    let run =
        json!({ "input": "Hello", "agent_id": agent, "conversation_id": "c", "metadata": { "a": "b" } });
    let run = app.post("/runs", key, run).await.expect(200);
    app.model.then(Script::Fail(providers::ProviderError::Timeout));
    app.post("/runs", key, json!({ "input": "Hello" })).await.expect_error(504, "agent_timeout");
    let test = app.key(workspace, Env::Test, &["runs:execute"]).await;
    app.post("/runs", &test, json!({ "input": "Hello" })).await.expect(200);
    // The three are of one moment, so their order says nothing.
    let executions = app.get("/billing/executions", key).await.expect(200);
    let of_run = |execution: &&Value| execution["source_id"] == run["id"];
    let execution = executions.as_array().unwrap().iter().find(of_run).unwrap();
    ids.insert("runId".to_owned(), run["id"].as_str().unwrap().to_owned());
    ids.insert("executionId".to_owned(), execution["id"].as_str().unwrap().to_owned());
}

/// An invoice, a payment method, and a key with a budget.
async fn seed_invoice(sweep: &Sweep, workspace: WorkspaceId) -> String {
    let app = &sweep.app;
    app.key_with(workspace, Env::Live, &["runs:read"], |new| new.budget_cents = Some(100)).await;
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
    invoice.await.unwrap().to_string()
}

/// Uploads an image.
async fn upload_file(sweep: &Sweep) -> String {
    let (app, key) = (&sweep.app, &sweep.keys[&(false, true)]);
    let file = app.ask("POST", "/files").key(key).header("idempotency-key", "file");
    let fields = [("folder", "full"), ("tags", "a,b"), ("metadata", "{\"a\":\"b\"}")];
    let file = file.form(&fields, ("a.gif", b"GIF89a\x40\x01\xf0\0\0\0\0")).send().await.expect(201);
    file["id"].to_string()
}

/// A member of the team and a profile of the business, with everything that they can have. Returns the id of the member.
async fn seed_business(sweep: &Sweep, workspace: WorkspaceId) -> String {
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
        let member = business::team::add(tx, workspace, member)?;
        let profile = json!({
            "name": "Full", "legal_name": "Full Ltd.", "description": "d", "vertical": "retail",
            "time_zone": "Europe/Madrid", "currency": "EUR", "locale": "es-ES", "country": "ES", "address": "a",
            "email": "full@example.com", "phone": "911234567", "website": "https://example.com",
            "hours": [{ "day": "monday", "open": "09:00", "close": "24:00" }],
            "holidays": [{ "date": "2026-12-25", "name": "Christmas Day", "yearly": true }],
        });
        business::set(tx, workspace, serde_json::from_value(profile).unwrap())?;
        Ok(member.id)
    });
    made.await.unwrap().to_string()
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

/// Uploads two parts.
async fn upload_parts(sweep: &Sweep, upload: &str) {
    for number in [1, 2] {
        let part = sweep.app.ask("PUT", &format!("/files/uploads/{upload}/parts/{number}"));
        let part = part.key(&sweep.keys[&(false, true)]).bytes("application/octet-stream", b"Hello");
        part.send().await.expect(200);
    }
}

/// Sends a request without a signature to an inbound webhook.
async fn receive_inbound(sweep: &Sweep, webhook: &str) {
    let key = &sweep.keys[&(false, true)];
    let webhook = sweep.app.get(&format!("/inbound-webhooks/{webhook}"), key).await.expect(200);
    let url = webhook["url"].as_str().unwrap().strip_prefix("https://svc.example").unwrap();
    let request = sweep.app.ask_beside("POST", url).json(&json!({ "p": 1 }));
    request.send().await.expect_error(400, "invalid_signature");
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
            path = path.replace(&format!("{{{name}}}"), sample_id(&op, &ids, &name));
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
