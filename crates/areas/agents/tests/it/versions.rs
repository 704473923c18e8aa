//! Versions: every change creates one, and every one can be restored.

use crate::with_agent;
use futures::future::join_all;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::{Kind, TestApp};

#[testkit::both]
async fn every_change_is_a_version_and_no_change_is_none(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({ "temperature": 1.0 })).await;
    let path = format!("/agents/{}", agent["id"]);
    for (patch, version) in [
        (json!({}), 1),
        (json!({ "name": "Assistant", "temperature": 1.0 }), 1),
        (json!({ "instructions": "Be kind." }), 2),
        (json!({ "temperature": null }), 3),
        (json!({ "temperature": null }), 3),
        (json!({ "metadata": { "a": "1" } }), 4),
        (json!({ "energy_limit_per_run": 9 }), 5),
        (json!({ "energy_limit_per_run": null, "version": 5, "expected_version": 5 }), 6),
    ] {
        assert_eq!(app.patch(&path, &key, patch.clone()).await.expect(200)["version"], version, "{patch}");
    }
    let stale = app.patch(&path, &key, json!({ "name": "X", "expected_version": 5 })).await;
    assert_eq!(stale.expect_error(409, "version_conflict").as_deref(), Some("expected_version"));
    let matching = async |version: &str, name: &str| {
        let patch =
            app.ask("PATCH", &path).key(&key).header("if-match", version).json(&json!({ "name": name }));
        patch.send().await
    };
    let stale = matching("\"5\"", "X").await;
    assert_eq!(stale.expect_error(409, "version_conflict").as_deref(), Some("If-Match"));
    assert_eq!(stale.body["error"]["details"], json!({ "current_version": 6 }));
    let stale = app.patch(&path, &key, json!({ "name": "X", "version": 5 })).await;
    assert_eq!(stale.expect_error(409, "version_conflict").as_deref(), Some("version"));
    let unclear = app.patch(&path, &key, json!({ "name": "X", "version": 6, "expected_version": 5 })).await;
    assert_eq!(unclear.expect_error(400, "validation_error").as_deref(), Some("expected_version"));
    assert_eq!(
        matching("five", "X").await.expect_error(400, "validation_error").as_deref(),
        Some("If-Match")
    );
    let fresh = matching("\"6\"", "Assistant").await;
    assert_eq!((&fresh.expect(200)["version"], fresh.headers["etag"].as_str()), (&json!(6), "\"6\""));
    let versions = app.get(&format!("{path}/versions"), &key).await.expect(200);
    let numbers: Vec<i64> =
        versions.as_array().unwrap().iter().map(|row| row["version"].as_i64().unwrap()).collect();
    assert_eq!(numbers, [6, 5, 4, 3, 2, 1]);
    let second = app.get(&format!("{path}/versions/2"), &key).await.expect(200);
    assert_eq!((&second["instructions"], &second["temperature"]), (&json!("Be kind."), &json!(1.0)));
    assert_eq!(second["created_by"], key.id.as_str());
    app.get(&format!("{path}/versions/7"), &key).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn a_version_comes_back_with_name_settings_and_tools(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({ "name": "Old", "instructions": "old" })).await;
    let path = format!("/agents/{}", agent["id"]);
    let tool = json!({ "type": "http", "description": "d", "http": { "url": "http://127.9.9.9:40009/" } });
    app.put(&format!("{path}/tools/one"), &key, tool).await.expect(200);
    app.delete(&format!("{path}/tools/one"), &key).await.expect(200);
    app.patch(&path, &key, json!({ "name": "New", "instructions": "new" })).await.expect(200);
    let same = app.post(&format!("{path}/versions/4/restore"), &key, json!({})).await.expect(200);
    assert_eq!(same["version"], 4);
    let back = app.post(&format!("{path}/versions/2/restore"), &key, json!({})).await.expect(200);
    assert_eq!(
        (&back["version"], &back["name"], &back["instructions"]),
        (&json!(5), &json!("Old"), &json!("old"))
    );
    let tools = app.get(&format!("{path}/tools"), &key).await.expect(200);
    assert_eq!(tools[0]["id"], "one");
    let newest = app.get(&format!("{path}/versions/5"), &key).await.expect(200);
    assert_eq!((&newest["restored_from"], &newest["tools"][0]["id"]), (&json!(2), &json!("one")));
    // Another agent has taken the name of version 4.
    app.post("/agents", &key, json!({ "name": "new" })).await.expect(201);
    app.post(&format!("{path}/versions/4/restore"), &key, json!({}))
        .await
        .expect_error(409, "duplicate_value");
    app.post(&format!("{path}/versions/9/restore"), &key, json!({})).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn changes_at_once_make_versions_of_their_own(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let path = format!("/agents/{}", agent["id"]);
    let changed = join_all(
        (0..12).map(|number| app.patch(&path, &key, json!({ "instructions": format!("{number}") }))),
    )
    .await;
    let versions: BTreeSet<i64> =
        changed.iter().map(|answer| answer.expect(200)["version"].as_i64().unwrap()).collect();
    assert_eq!(versions, (2..14).collect());
    let stored = app.get(&format!("{path}/versions"), &key).await.expect(200);
    for answer in &changed {
        let made = answer.expect(200);
        let row = stored.as_array().unwrap().iter().find(|row| row["version"] == made["version"]).unwrap();
        assert_eq!(row["instructions"], made["instructions"]);
    }
}

#[testkit::both]
async fn a_copy_begins_anew(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({ "instructions": "i", "metadata": { "a": "b" } })).await;
    let path = format!("/agents/{}", agent["id"]);
    app.patch(&path, &key, json!({ "description": "d" })).await.expect(200);
    let names: Vec<Value> = {
        let mut names = Vec::new();
        for body in [json!({}), json!({}), json!({ "name": "Mine", "metadata": {} })] {
            let copy = app.post(&format!("{path}/duplicate"), &key, body).await.expect(201);
            assert_eq!(
                (&copy["version"], &copy["status"], &copy["is_default"]),
                (&json!(1), &json!("draft"), &json!(false))
            );
            assert_eq!((&copy["instructions"], &copy["description"]), (&json!("i"), &json!("d")));
            names.push(copy["name"].clone());
        }
        names
    };
    assert_eq!(names, ["Assistant (copy)", "Assistant (copy 2)", "Mine"]);
}

#[testkit::both]
async fn skills_must_be_there_and_each_once(kind: Kind) {
    let app = TestApp::new(kind).await;
    let (key, agent) = with_agent(&app, json!({})).await;
    let path = format!("/agents/{}/skills", agent["id"]);
    for (skills, param) in [
        (json!([{ "skill_id": 7 }]), "skills[0].skill_id"),
        (json!([{ "skill_id": 7, "version": 2 }, { "skill_id": 7 }]), "skills[1].skill_id"),
        (json!(vec![json!({ "skill_id": 7 }); 21]), "skills"),
    ] {
        let refused = app.put(&path, &key, json!({ "skills": skills })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
    assert_eq!(app.put(&path, &key, json!({ "skills": [] })).await.expect(200)["version"], 1);
}
