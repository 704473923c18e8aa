//! Creating, changing, listing, copying and deleting skills.

use crate::{bare, count, path, skill};
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn a_skill_is_created_with_defaults_and_with_everything(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = app.post("/skills", &key, json!({ "name": "a", "description": "d" })).await.expect(201);
    for (field, value) in [
        ("object", json!("skill")),
        ("name", json!("a")),
        ("display_name", Value::Null),
        ("description", json!("d")),
        ("allowed_tools", Value::Null),
        ("variables", json!([])),
        ("activation", json!("auto")),
        ("license", Value::Null),
        ("metadata", json!({})),
        ("source", json!("custom")),
        ("status", json!("draft")),
        ("published_version", Value::Null),
        ("has_unpublished_changes", json!(true)),
        ("version", json!(1)),
    ] {
        assert_eq!(made[field], value, "{field}");
    }
    let all = json!({
        "name": "b-2", "display_name": "Second", "description": "Says: \"hello\" # and more", "instructions": "# Hi\r\nünï",
        "allowed_tools": ["orders", "load_skill"], "variables": ["shop.phone"], "activation": "manual", "license": "MIT",
        "compatibility": "needs: orders", "metadata": { "author": "Ana", "when": "2026-01-01" },
    });
    let made = app.post("/skills", &key, all.clone()).await.expect(201);
    let detail = app.get(&path(&made), &key).await;
    assert_eq!(detail.headers["etag"], "\"1\"");
    assert_eq!(detail.body["data"], made);
    for (field, value) in all.as_object().unwrap() {
        assert_eq!(&made[field], value, "{field}");
    }
    let listed = app.get("/skills", &key).await.expect(200);
    assert_eq!((&listed[0]["name"], &listed[1]["name"]), (&json!("b-2"), &json!("a")));
    assert_eq!(listed[0].get("instructions"), None);
    assert_eq!(app.get("/skills?status=active", &key).await.expect(200), json!([]));
    let clash = app.post("/skills", &key, json!({ "name": "a", "description": "d" })).await;
    assert_eq!(clash.expect_error(409, "duplicate_value").as_deref(), Some("name"));
    let other = bare(&app).await;
    app.get(&path(&made), &other).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn bad_fields_are_named(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = skill(&app, &key, "made", json!({})).await;
    for (field, value, param) in [
        ("name", json!(""), "name"),
        ("name", json!("a".repeat(65)), "name"),
        ("name", json!("A"), "name"),
        ("name", json!("a--b"), "name"),
        ("name", json!("-a"), "name"),
        ("name", json!("a-"), "name"),
        ("name", json!("а"), "name"),
        ("name", json!("a b"), "name"),
        ("description", json!(" "), "description"),
        ("description", json!("x".repeat(1025)), "description"),
        ("instructions", json!("x".repeat(65_537)), "instructions"),
        ("instructions", json!("ü".repeat(40_000)), "instructions"),
        ("allowed_tools", json!(["a", ""]), "allowed_tools.1"),
        ("allowed_tools", json!(["a b"]), "allowed_tools.0"),
        ("allowed_tools", json!(["a,b"]), "allowed_tools.0"),
        ("variables", json!(["Phone"]), "variables.0"),
        ("activation", json!("never"), "activation"),
        ("compatibility", json!("x".repeat(501)), "compatibility"),
        ("display_name", json!("x".repeat(256)), "display_name"),
        ("color", json!("red"), "color"),
    ] {
        let mut body = json!({ "name": "other", "description": "d" });
        body[field] = value.clone();
        let answer = app.post("/skills", &key, body).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{field}");
        let answer = app.patch(&path(&made), &key, json!({ field: value })).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{field}");
    }
    assert_eq!(app.get(&path(&made), &key).await.expect(200), made);
}

#[testkit::both]
async fn a_change_rewrites_only_the_lines_that_it_names(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made =
        skill(&app, &key, "made", json!({ "metadata": { "a": "1", "b": "2" }, "license": "MIT" })).await;
    let path = path(&made);
    let text = async |app: &TestApp| {
        let file = app.get(&format!("{path}/files/SKILL.md"), &key).await.expect(200);
        file["content"].as_str().unwrap().to_owned()
    };
    let before = text(&app).await;
    let change = json!({ "description": "New: text", "metadata": { "b": null, "c": "3" }, "version": 1 });
    let changed = app.patch(&path, &key, change.clone()).await;
    assert_eq!(changed.headers["etag"], "\"2\"");
    let changed = changed.expect(200);
    assert_eq!((&changed["description"], &changed["version"]), (&json!("New: text"), &json!(2)));
    assert_eq!(changed["metadata"], json!({ "a": "1", "c": "3" }));
    let after = text(&app).await;
    let kept = |line: &&str| !["description", "b:", "c:"].iter().any(|word| line.contains(word));
    let lines = |text: &str| text.lines().filter(kept).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(lines(&before), lines(&after));
    let stale = app.patch(&path, &key, change).await;
    assert_eq!(stale.expect_error(409, "version_conflict").as_deref(), Some("version"));
    let same = app.patch(&path, &key, json!({ "description": "New: text", "activation": "auto" })).await;
    assert_eq!(same.expect(200)["version"], 2, "what changes nothing makes no version");
    let cleared = json!({ "license": null, "instructions": "", "allowed_tools": [], "display_name": "D", "name": "renamed" });
    let changed = app.patch(&path, &key, cleared).await.expect(200);
    assert_eq!((&changed["license"], &changed["instructions"]), (&Value::Null, &json!("")));
    assert_eq!((&changed["allowed_tools"], &changed["name"]), (&json!([]), &json!("renamed")));
    assert_eq!(
        app.patch(&path, &key, json!({ "allowed_tools": null })).await.expect(200)["allowed_tools"],
        Value::Null
    );
    skill(&app, &key, "taken", json!({})).await;
    let clash = app.patch(&path, &key, json!({ "name": "taken" })).await;
    assert_eq!(clash.expect_error(409, "duplicate_value").as_deref(), Some("name"));
    assert_eq!(app.get(&path, &key).await.expect(200)["name"], "renamed");
}

#[testkit::both]
async fn a_copy_has_its_own_files_and_a_free_name(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = skill(&app, &key, "made", json!({ "publish": true, "activation": "always" })).await;
    app.put(&format!("{}/files/a.md", path(&made)), &key, json!({ "content": "A" })).await.expect(200);
    let copy = app.post(&format!("{}/duplicate", path(&made)), &key, json!({})).await.expect(201);
    assert_eq!((&copy["name"], &copy["status"]), (&json!("made-2"), &json!("draft")));
    assert_eq!((&copy["published_version"], &copy["activation"]), (&Value::Null, &json!("always")));
    let named = json!({ "name": "third", "display_name": "T" });
    let third = app.post(&format!("{}/duplicate", path(&made)), &key, named.clone()).await.expect(201);
    assert_eq!((&third["name"], &third["display_name"]), (&json!("third"), &json!("T")));
    let clash = app.post(&format!("{}/duplicate", path(&made)), &key, named).await;
    assert_eq!(clash.expect_error(409, "duplicate_value").as_deref(), Some("name"));
    app.delete(&path(&made), &key).await.expect(200);
    let file = app.get(&format!("{}/files/a.md", path(&copy)), &key).await.expect(200);
    assert_eq!(file["content"], "A");
    let text = app.get(&format!("{}/files/SKILL.md", path(&copy)), &key).await.expect(200);
    assert!(text["content"].as_str().unwrap().contains("name: made-2\n"), "{text}");
    app.post(&format!("{}/publish", path(&copy)), &key, json!({})).await.expect(200);
}

#[testkit::both]
async fn what_is_deleted_leaves_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = skill(&app, &key, "made", json!({ "publish": true })).await;
    app.put(&format!("{}/files/a.md", path(&made)), &key, json!({ "content": "A" })).await.expect(200);
    app.post(&format!("{}/publish", path(&made)), &key, json!({})).await.expect(200);
    let gone = app.delete(&path(&made), &key).await.expect(200);
    assert_eq!((&gone["id"], &gone["object"]), (&made["id"], &json!("skill")));
    app.get(&path(&made), &key).await.expect_error(404, "not_found");
    app.delete(&path(&made), &key).await.expect_error(404, "not_found");
    for table in ["skills", "skill_versions", "skill_files", "skill_contents"] {
        assert_eq!(count(&app, table).await, 0, "{table}");
    }
    skill(&app, &key, "made", json!({})).await;
}
