//! Publishing, versions and switches.

use crate::{bare, count, path, skill};
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn publishing_freezes_the_draft(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = skill(&app, &key, "made", json!({})).await;
    let path = path(&made);
    app.put(&format!("{path}/files/a.md"), &key, json!({ "content": "one" })).await.expect(200);
    let first = app.post(&format!("{path}/publish"), &key, json!({})).await.expect(200);
    assert_eq!((&first["status"], &first["published_version"]), (&json!("active"), &json!(1)));
    assert_eq!(first["has_unpublished_changes"], false);
    let same = app.post(&format!("{path}/publish"), &key, json!({})).await.expect(200);
    assert_eq!((&same["published_version"], &same["version"]), (&json!(1), &first["version"]));
    let change = json!({ "description": "Another.", "activation": "always" });
    let changed = app.patch(&path, &key, change).await.expect(200);
    assert_eq!(changed["has_unpublished_changes"], true);
    app.put(&format!("{path}/files/a.md"), &key, json!({ "content": "two" })).await.expect(200);
    let second = app.post(&format!("{path}/publish"), &key, json!({})).await.expect(200);
    assert_eq!(second["published_version"], 2);
    let listed = app.get(&format!("{path}/versions"), &key).await.expect(200);
    assert_eq!((&listed[0]["version"], &listed[1]["version"]), (&json!(2), &json!(1)));
    assert_eq!((listed[0].get("instructions"), listed[0].get("files")), (None, None));
    assert_ne!(listed[0]["digest"], listed[1]["digest"]);
    let old = app.get(&format!("{path}/versions/1"), &key).await.expect(200);
    assert_eq!((&old["description"], &old["activation"]), (&made["description"], &json!("auto")));
    assert_eq!((&old["instructions"], &old["files"][0]["path"]), (&made["instructions"], &json!("a.md")));
    assert_eq!(old["created_by"], key.id.to_string());
    for (version, content) in [("?version=1", "one"), ("?version=2", "two"), ("", "two")] {
        let file = app.get(&format!("{path}/files/a.md{version}"), &key).await.expect(200);
        assert_eq!(file["content"], content, "{version}");
    }
    let restored = app.post(&format!("{path}/versions/1/restore"), &key, json!({})).await.expect(200);
    assert_eq!((&restored["description"], &restored["published_version"]), (&made["description"], &json!(2)));
    assert_eq!(restored["has_unpublished_changes"], true);
    let file = app.get(&format!("{path}/files/a.md"), &key).await.expect(200);
    assert_eq!(file["content"], "one");
    let again = app.post(&format!("{path}/versions/1/restore"), &key, json!({})).await.expect(200);
    assert_eq!(again["version"], restored["version"]);
    // Two documents and two files, in whichever versions.
    assert_eq!(count(&app, "skill_contents").await, 4);
    for at in ["versions/3", "versions/0", "versions/x", "files/a.md?version=3"] {
        app.get(&format!("{path}/{at}"), &key).await.expect_error(404, "not_found");
    }
    app.post(&format!("{path}/versions/3/restore"), &key, json!({})).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn a_restored_name_must_be_free(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = skill(&app, &key, "made", json!({ "publish": true })).await;
    app.patch(&path(&made), &key, json!({ "name": "other" })).await.expect(200);
    skill(&app, &key, "made", json!({})).await;
    let clash = app.post(&format!("{}/versions/1/restore", path(&made)), &key, json!({})).await;
    assert_eq!(clash.expect_error(409, "duplicate_value").as_deref(), Some("version"));
}

#[testkit::both]
async fn publishing_names_everything_that_is_missing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    app.post("/variables", &key, json!({ "key": "phone", "type": "string", "value": "1" })).await.expect(201);
    let secret = json!({ "key": "token", "type": "secret", "value": "1" });
    app.post("/variables", &key, secret).await.expect(201);
    let agent = app.post("/agents", &key, json!({ "name": "A" })).await.expect(201);
    let tool = json!({ "type": "http", "description": "d", "http": { "url": "https://example.com/" } });
    app.put(&format!("/agents/{}/tools/orders", agent["id"]), &key, tool).await.expect(200);
    let wrong = json!({
        "allowed_tools": ["orders", "refunds", "load_skill"], "variables": ["phone", "fax"],
        "instructions": "See [policy](references/policy.md) and `scripts/a.js`. Call {{vars.phone}}, {{vars.fax}}, {{vars.mail}}, {{vars.token}}.",
    });
    let made = skill(&app, &key, "made", wrong.clone()).await;
    let refused = app.post(&format!("{}/publish", path(&made)), &key, json!({})).await;
    refused.expect_error(400, "validation_error");
    let found: Vec<(&str, &str)> = refused.body["error"]["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| (error["param"].as_str().unwrap(), error["code"].as_str().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            ("allowed_tools.1", "unknown_tool"),
            ("variables.1", "unknown_variable"),
            ("instructions", "unknown_variable"),
            ("instructions", "secret_variable"),
            ("instructions", "missing_file"),
            ("instructions", "missing_file"),
        ]
    );
    let mut at_once = json!({ "name": "at-once", "description": "d", "status": "active" });
    at_once.as_object_mut().unwrap().extend(wrong.as_object().unwrap().clone());
    app.post("/skills", &key, at_once).await.expect_error(400, "validation_error");
    assert_eq!(app.get("/skills", &key).await.expect(200).as_array().unwrap().len(), 1);
    let right = json!({
        "allowed_tools": ["orders", "load_skill"], "variables": ["phone", "token"],
        "instructions": "See [policy](references/policy.md). Call {{vars.phone}}.",
    });
    app.patch(&path(&made), &key, right).await.expect(200);
    app.put(&format!("{}/files/references/policy.md", path(&made)), &key, json!({ "content": "x" }))
        .await
        .expect(200);
    let published = app.post(&format!("{}/publish", path(&made)), &key, json!({})).await.expect(200);
    assert_eq!(published["published_version"], 1);
}

#[testkit::both]
async fn a_skill_is_switched_off_and_on(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = skill(&app, &key, "made", json!({})).await;
    let at = async |operation: &str| app.post(&format!("{}/{operation}", path(&made)), &key, json!({})).await;
    at("enable").await.expect_error(409, "invalid_state");
    assert_eq!(at("disable").await.expect(200)["status"], "draft");
    assert_eq!(at("publish").await.expect(200)["status"], "active");
    let off = at("disable").await.expect(200);
    assert_eq!(off["status"], "inactive");
    assert_eq!(at("disable").await.expect(200), off);
    app.patch(&path(&made), &key, json!({ "description": "x" })).await.expect(200);
    assert_eq!(at("publish").await.expect(200)["status"], "inactive", "publishing does not switch it on");
    let listed = app.get("/skills?status=inactive", &key).await.expect(200);
    assert_eq!(listed[0]["published_version"], 2);
    assert_eq!(at("enable").await.expect(200)["status"], "active");
    let both = skill(&app, &key, "both", json!({ "status": "active" })).await;
    assert_eq!(
        (&both["status"], &both["published_version"], &both["version"]),
        (&json!("active"), &json!(1), &json!(2))
    );
}

#[testkit::both]
async fn variables_know_the_skills_that_need_them(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let variable = json!({ "key": "phone", "type": "string", "value": "1" });
    let variable = app.post("/variables", &key, variable).await.expect(201);
    let more = json!({ "variables": ["phone"], "instructions": "Call {{vars.phone}}, {{ vars.phone }}." });
    let made = skill(&app, &key, "made", more).await;
    skill(&app, &key, "none", json!({})).await;
    let usages = app.get(&format!("/variables/{}/usages", variable["id"]), &key).await.expect(200);
    let found: Vec<(&Value, &Value)> =
        usages.as_array().unwrap().iter().map(|usage| (&usage["id"], &usage["field"])).collect();
    let id = json!(made["id"].to_string());
    assert_eq!(found, [(&id, &json!("variables")), (&id, &json!("instructions"))], "{usages}");
    app.delete(&format!("/variables/{}", variable["id"]), &key).await.expect_error(409, "variable_in_use");
}

#[testkit::both]
async fn a_skill_of_an_agent_stays(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = skill(&app, &key, "made", json!({ "publish": true })).await;
    let first = app.post("/agents", &key, json!({ "name": "First" })).await.expect(201);
    let second = app.post("/agents", &key, json!({ "name": "Second", "status": "active" })).await.expect(201);
    for (agent, version) in [(&first, json!(1)), (&second, Value::Null)] {
        let skills = json!({ "skills": [{ "skill_id": made["id"], "version": version }] });
        app.put(&format!("/agents/{}/skills", agent["id"]), &key, skills).await.expect(200);
    }
    app.patch(&path(&made), &key, json!({ "description": "Another." })).await.expect(200);
    app.post(&format!("{}/publish", path(&made)), &key, json!({})).await.expect(200);
    let agents = app.get(&format!("{}/agents", path(&made)), &key).await.expect(200);
    let expected = json!([
        { "id": first["id"], "object": "agent", "name": "First", "version": 1, "is_active": false },
        { "id": second["id"], "object": "agent", "name": "Second", "version": null, "is_active": true },
    ]);
    assert_eq!(agents, expected);
    let refused = app.delete(&path(&made), &key).await;
    refused.expect_error(409, "resource_in_use");
    let used_by = &refused.body["error"]["details"]["used_by"];
    assert_eq!(
        (&used_by[0]["name"], &used_by[1]["name"]),
        (&json!("First"), &json!("Second")),
        "{}",
        refused.text
    );
    for (agent, version) in [(&first, 1), (&second, 2)] {
        let body = json!({ "text": "goods, another customer", "agent_id": agent["id"] });
        let matches = app.post("/skills/match", &key, body).await.expect(200);
        assert_eq!(matches["skills"][0]["version"], version, "{matches}");
    }
    for agent in [first, second] {
        app.delete(&format!("/agents/{}/skills", agent["id"]), &key)
            .await
            .expect_error(405, "method_not_allowed");
        app.put(&format!("/agents/{}/skills", agent["id"]), &key, json!({ "skills": [] })).await.expect(200);
    }
    assert_eq!(app.get(&format!("{}/agents", path(&made)), &key).await.expect(200), json!([]));
    app.delete(&path(&made), &key).await.expect(200);
}
