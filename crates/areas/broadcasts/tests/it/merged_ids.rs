//! The id of a merged contact works like the id of its survivor, in every request.

use crate::support::{Desk, open, sale};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::Kind;

/// Every place of a request that contains the id of a contact, by operation. Add a new place here and to the test
/// below that uses it.
const PLACES: [(&str, &str); 32] = [
    ("bulkUpdateTasks", "rows[].change.contact_id"),
    ("createBroadcast", "audience.contact_ids[]"),
    ("createBroadcast", "audience.exclude.contact_ids[]"),
    ("createReminder", "contact_id"),
    ("createSegment", "contact_ids[]"),
    ("createSubtask", "contact_id"),
    ("createTask", "contact_id"),
    ("listAutomationExecutions", "?contact_id"),
    ("listConversations", "?contact_id"),
    ("listEvents", "?contact_id"),
    ("listFlowRuns", "?contact_id"),
    ("listReminders", "?contact_id"),
    ("listTasks", "?contact_id"),
    ("mergeContact", "source_id"),
    ("searchConversations", "?contact_id"),
    ("sendBroadcast", "test_contact_id"),
    ("sendChannelInteractive", "contact_id"),
    ("sendChannelMedia", "contact_id"),
    ("sendChannelMessage", "contact_id"),
    ("sendChannelTemplate", "contact_id"),
    ("startFlowRun", "contact_id"),
    ("testAutomation", "contact_id"),
    ("triggerAutomation", "contact_id"),
    ("updateBroadcast", "audience.contact_ids[]"),
    ("updateBroadcast", "audience.exclude.contact_ids[]"),
    ("updateReminder", "contact_id"),
    ("updateSegment", "add_contact_ids[]"),
    ("updateSegment", "remove_contact_ids[]"),
    ("updateTask", "contact_id"),
    // The schema does not tell the type of these ids: values of `contact` fields, and targets of links.
    ("createItem", "data"),
    ("createItemLink", "to.id"),
    ("listItems", "?filter"),
];
/// The number of places that no schema tells.
const UNTOLD: usize = 3;

/// Finds the places of a schema that are ids of contacts, by their schema or their name.
fn places(document: &Value, schema: &Value, at: &str, seen: &[&str], found: &mut BTreeSet<String>) {
    if let Some(name) = schema["$ref"].as_str().and_then(|name| name.rsplit('/').next()) {
        if name == "ContactId" {
            found.insert(at.to_owned());
        } else if !seen.contains(&name) {
            let seen = [seen, &[name]].concat();
            places(document, &document["components"]["schemas"][name], at, &seen, found);
        }
        return;
    }
    for of in ["allOf", "oneOf", "anyOf"] {
        schema[of].as_array().into_iter().flatten().for_each(|one| places(document, one, at, seen, found));
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        if name.ends_with("contact_id") {
            found.insert(at.clone());
        }
        places(document, property, &at, seen, found);
    }
    if schema["items"].is_object() {
        places(document, &schema["items"], &format!("{at}[]"), seen, found);
    }
}

/// A desk whose contact `old` was merged into another one, which was merged into `current`.
struct Merged {
    desk: Desk,
    old: i64,
    current: i64,
}

impl Merged {
    async fn open(kind: testkit::Kind) -> Self {
        let desk = open(kind).await;
        let old = desk.contact("Ana", "+5511987650001").await;
        let between = desk.contact("Ana S.", "+5511987650002").await;
        let ana = desk.customer("Ana Souza", "+5511987650003");
        desk.hear(&ana, "Where is my parcel?").await;
        let found = desk.get("/contacts/phone:+5511987650003").await.expect(200);
        let current = found["id"].as_i64().unwrap();
        for (into, from) in [(between, old), (current, between)] {
            desk.post(&format!("/contacts/{into}/merge"), json!({ "source_id": from })).await.expect(200);
        }
        Self { desk, old, current }
    }

    async fn patch(&self, path: &str, body: Value) -> Value {
        self.desk.app.patch(path, &self.desk.key, body).await.expect(200)
    }

    async fn ids(&self, path: &str) -> Vec<Value> {
        let rows = self.desk.get(path).await.expect(200);
        rows.as_array().unwrap().iter().map(|row| row["id"].clone()).collect()
    }

    /// Checks that both ids find the same, and returns how much that is.
    async fn found(&self, path: &str) -> usize {
        let by_old = self.ids(&path.replace("{id}", &self.old.to_string())).await;
        assert_eq!(by_old, self.ids(&path.replace("{id}", &self.current.to_string())).await, "{path}");
        by_old.len()
    }
}

#[testkit::both]
async fn every_place_that_takes_the_id_of_a_contact_is_known(kind: Kind) {
    let desk = Desk::open(kind).await;
    let document = desk.app.ask("GET", "/openapi.public.json").send().await.body;
    let mut all = BTreeSet::new();
    for operation in
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values())
    {
        let mut found = BTreeSet::new();
        for parameter in
            operation["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "query")
        {
            if parameter["name"].as_str().is_some_and(|name| name.ends_with("contact_id")) {
                found.insert(format!("?{}", parameter["name"].as_str().unwrap()));
            }
        }
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        places(&document, body, "", &[], &mut found);
        all.extend(
            found.into_iter().map(|place| (operation["operationId"].as_str().unwrap().to_owned(), place)),
        );
    }
    let known: BTreeSet<(String, String)> = PLACES
        .iter()
        .take(PLACES.len() - UNTOLD)
        .map(|(id, at)| ((*id).to_owned(), (*at).to_owned()))
        .collect();
    assert_eq!(
        all, known,
        "a request has another place for the id of a contact: make it follow merges, and test it here"
    );
}

#[testkit::both]
async fn tasks_reminders_and_segments_are_about_the_contact_that_remains(kind: Kind) {
    let merged = Merged::open(kind).await;
    let (desk, old, current) = (&merged.desk, merged.old, json!(merged.current));
    let tasks = format!("/workspaces/{}/tasks", desk.workspace);
    let task = desk.post(&tasks, json!({ "title": "Call", "contact_id": old })).await.expect(201);
    assert_eq!(task["contact_id"], current);
    let path = format!("{tasks}/{}", task["id"]);
    let below = desk
        .post(&format!("{tasks}/{}/subtasks", task["id"]), json!({ "title": "Dial", "contact_id": old }))
        .await
        .expect(201);
    assert_eq!(below["contact_id"], current);
    merged.patch(&path, json!({ "contact_id": null })).await;
    assert_eq!(merged.patch(&path, json!({ "contact_id": old })).await["contact_id"], current);
    let rows = json!({ "rows": [{ "id": below["id"], "change": { "contact_id": null } }] });
    desk.post(&format!("{tasks}/bulk-update"), rows).await.expect(200);
    let rows = json!({ "rows": [{ "id": below["id"], "change": { "contact_id": old } }] });
    desk.post(&format!("{tasks}/bulk-update"), rows).await.expect(200);
    assert_eq!(desk.get(&format!("{tasks}/{}", below["id"])).await.expect(200)["contact_id"], current);
    assert_eq!(merged.found(&format!("{tasks}?contact_id={{id}}")).await, 2);
    assert_eq!(merged.found(&format!("{tasks}?filter[contact_id]={{id}}")).await, 2);
    assert_eq!(merged.found(&format!("{tasks}?filter[contact_id][neq]={{id}}")).await, 0);

    let new = json!({ "title": "Call", "due_at": "2027-01-01T09:00:00Z", "contact_id": old });
    let reminder = desk.post("/reminders", new).await.expect(201);
    assert_eq!(reminder["contact_id"], current);
    let path = format!("/reminders/{}", reminder["id"]);
    merged.patch(&path, json!({ "contact_id": null })).await;
    assert_eq!(merged.patch(&path, json!({ "contact_id": old })).await["contact_id"], current);
    assert_eq!(merged.found("/reminders?contact_id={id}").await, 1);

    let segment =
        desk.post("/contacts/segments", json!({ "name": "Friends", "contact_ids": [old] })).await.expect(201);
    let (path, list) =
        (format!("/contacts/segments/{}", segment["id"]), format!("/contacts?segment_id={}", segment["id"]));
    assert_eq!(merged.ids(&list).await, std::slice::from_ref(&current));
    merged.patch(&path, json!({ "remove_contact_ids": [old] })).await;
    assert_eq!(merged.ids(&list).await, [Value::Null; 0]);
    merged.patch(&path, json!({ "add_contact_ids": [old] })).await;
    assert_eq!(merged.ids(&list).await, [current]);
    assert_eq!(merged.found("/contacts?filter[id]={id}").await, 1);
}

#[testkit::both]
async fn values_links_and_filters_of_items_follow_a_merge(kind: Kind) {
    let merged = Merged::open(kind).await;
    let (desk, old, current) = (&merged.desk, merged.old, merged.current);
    let fields = json!([{ "label": "Name", "type": "text" }, { "label": "Customer", "type": "contact" }]);
    let bikes =
        desk.post("/collections", json!({ "name": "Bikes", "fields": fields })).await.expect(201)["id"]
            .clone();
    let items = format!("/collections/{bikes}/items");
    let item = desk.post(&items, json!({ "data": { "name": "B1", "customer": [old] } })).await.expect(201);
    assert_eq!(item["data"]["customer"], json!([current]));
    let both =
        desk.post(&items, json!({ "data": { "name": "B2", "customer": [old, current] } })).await.expect(201);
    assert_eq!(both["data"]["customer"], json!([current]));
    let none = desk.post(&items, json!({ "data": { "name": "B3" } })).await.expect(201);
    let path = format!("{items}/{}", none["id"]);
    assert_eq!(
        merged.patch(&path, json!({ "data": { "customer": [old] } })).await["data"]["customer"],
        json!([current])
    );
    let missing = desk.post(&items, json!({ "data": { "name": "B4", "customer": [old, 999_999] } })).await;
    assert_eq!(missing.expect_error(400, "validation_error").as_deref(), Some("data.customer"));
    assert_eq!(merged.found(&format!("{items}?filter[customer]={{id}}")).await, 3);
    assert_eq!(merged.found(&format!("{items}?filter[customer][in][]={{id}}")).await, 3);
    assert_eq!(merged.found(&format!("{items}?filter[customer][neq]={{id}}")).await, 0);

    let links = format!("{items}/{}/links", item["id"]);
    let link = desk
        .post(&links, json!({ "role": "owner", "to": { "type": "contact", "id": old } }))
        .await
        .expect(201);
    assert_eq!(link["to"]["id"], json!(current));
    let again = json!({ "role": "owner", "to": { "type": "contact", "id": current } });
    desk.post(&links, again).await.expect_error(409, "link_exists");
}

#[testkit::both]
async fn locked_items_are_found_by_the_contact_that_remains(kind: Kind) {
    let desk = Desk::open(kind).await;
    let (ben, ana) =
        (desk.contact("Ben", "+5511987650001").await, desk.contact("Ana", "+5511987650002").await);
    let fields = json!([{ "label": "Customer", "type": "contact" }]);
    let bikes =
        desk.post("/collections", json!({ "name": "Bikes", "fields": fields })).await.expect(201)["id"]
            .clone();
    let items = format!("/collections/{bikes}/items");
    let item = desk.post(&items, json!({ "data": { "customer": [ben] } })).await.expect(201);
    desk.post(&format!("{items}/{}/lock", item["id"]), json!({})).await.expect(200);
    desk.post(&format!("/contacts/{ana}/merge"), json!({ "source_id": ben })).await.expect(200);
    desk.app.service.jobs.run_due().await.unwrap();
    for filter in [
        format!("filter[customer]={ana}"),
        format!("filter[customer]={ben}"),
        "filter[customer.$name]=Ana".to_owned(),
    ] {
        let found = desk.get(&format!("{items}?{filter}&expand=customer")).await.expect(200);
        assert_eq!(found[0]["data"]["customer"], json!([ben]), "{filter}: the item is locked");
        assert_eq!(found[0]["expanded"]["customer"][0]["id"], json!(ana), "{filter}");
    }
}

#[testkit::both]
async fn messages_broadcasts_and_events_follow_a_merge(kind: Kind) {
    let merged = Merged::open(kind).await;
    let (desk, old, current) = (&merged.desk, merged.old, merged.current);
    assert_eq!(merged.found("/conversations?contact_id={id}").await, 1);
    assert_eq!(merged.found("/conversations/search?q=parcel&contact_id={id}").await, 1);
    desk.app.deliver().await;
    let created = merged.found("/events?type=contact.created&contact_id={id}&limit=100").await;
    assert_eq!(created, 3, "the events of all three are those of one person");

    for (what, body) in [
        ("message", json!({ "text": "On its way" })),
        ("template", json!({ "name": "sale", "language": "en", "params": { "1": "Ana", "2": "10 %" } })),
        (
            "interactive",
            json!({ "interactive": { "type": "button", "body": { "text": "Yes?" }, "action": { "buttons": [
            { "type": "reply", "reply": { "id": "yes", "title": "Yes" } }] } } }),
        ),
    ] {
        let mut answers = Vec::new();
        for id in [old, current] {
            let mut body = body.clone();
            body["contact_id"] = id.into();
            let answer = desk.post(&desk.path(&format!("/chatnet/send-{what}?dry_run=true")), body).await;
            answers.push((answer.status, answer.body["data"].clone()));
        }
        assert_eq!(answers[0], answers[1], "{what}");
        assert!(what == "interactive" || answers[0].0 == 200, "{what}: {answers:?}");
    }

    let ben = desk.contact("Ben", "+5511987650009").await;
    for (audience, recipients) in [
        (json!({ "contact_ids": [old, ben] }), vec![current, ben]),
        (json!({ "contact_ids": [old, current] }), vec![current]),
        (json!({ "contact_ids": [current, ben], "exclude": { "contact_ids": [old] } }), vec![ben]),
    ] {
        let draft = json!({ "name": "Sale", "template": sale(), "audience": audience });
        let preview = desk.post("/broadcasts?dry_run=true", draft.clone()).await.expect(200);
        let found: BTreeSet<i64> = preview["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["contact_id"].as_i64().unwrap())
            .collect();
        assert_eq!(found, recipients.into_iter().collect(), "{audience}");
        let stored = desk.post("/broadcasts", draft).await.expect(201);
        let path = format!("/broadcasts/{}", stored["id"]);
        merged.patch(&path, json!({ "audience": audience })).await;
        let test = desk
            .post(&format!("{path}/send?dry_run=true"), json!({ "test_contact_id": old }))
            .await
            .expect(200);
        assert_eq!(test["test"]["contact_id"], json!(current), "{test}");
    }
    let merging = json!({ "source_id": old });
    assert_eq!(desk.post(&format!("/contacts/{ben}/merge"), merging).await.expect(200)["id"], json!(ben));
    assert_eq!(desk.get(&format!("/contacts/{old}")).await.expect(200)["id"], json!(ben));
}

#[testkit::both]
async fn flows_and_automations_are_about_the_contact_that_remains(kind: Kind) {
    let merged = Merged::open(kind).await;
    let (desk, old, current) = (&merged.desk, merged.old, json!(merged.current));
    let flows = format!("/workspaces/{}/flows", desk.workspace);
    let draft = json!({
        "nodes": [{ "id": "start", "type": "trigger" }, { "id": "later", "type": "delay", "config": { "days": 1 } }],
        "edges": [{ "from": "start", "to": "later" }],
    });
    let flow = desk.post(&flows, json!({ "name": "Later", "draft": draft })).await.expect(201)["id"].clone();
    desk.post(&format!("{flows}/{flow}/publish"), json!({})).await.expect(200);
    let run = desk.post(&format!("{flows}/{flow}/runs"), json!({ "contact_id": old })).await.expect(201);
    assert_eq!(run["contact_id"], current);
    let runs = format!("/workspaces/{}/flow-runs?contact_id={{id}}", desk.workspace);
    assert_eq!(merged.found(&runs).await, 1);

    let new = json!({
        "name": "By hand", "trigger": { "type": "manual" }, "target": { "type": "flow", "id": flow }, "enable": true,
    });
    let automation = desk.post("/automations", new).await.expect(201)["id"].clone();
    let path = format!("/automations/{automation}");
    let fired = desk.post(&format!("{path}/trigger"), json!({ "contact_id": old })).await.expect(200);
    assert_eq!(fired["execution"]["contact_id"], current);
    assert_eq!(merged.found(&format!("{path}/executions?contact_id={{id}}")).await, 1);
    desk.post(&format!("{path}/test"), json!({ "contact_id": old })).await.expect(200);
}
