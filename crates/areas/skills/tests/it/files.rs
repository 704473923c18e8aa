//! Files next to SKILL.md.

use crate::{bare, count, path, skill};
use serde_json::{Value, json};
use testkit::{Kind, TestApp};

#[testkit::both]
async fn files_are_put_read_listed_and_deleted(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = skill(&app, &key, "made", json!({})).await;
    let files = format!("{}/files", path(&made));
    let put =
        app.put(&format!("{files}/references/a%20b.md"), &key, json!({ "content": "ünï" })).await.expect(200);
    let expected = json!({
        "id": "references/a b.md", "object": "skill_file", "path": "references/a b.md", "media_type": "text/markdown", "size": 5, "runs": false,
        "sha256": put["sha256"],
    });
    assert_eq!(put, expected);
    let encoded = app.get(&format!("{files}/references%2Fa%20b.md"), &key).await.expect(200);
    assert_eq!((&encoded["content"], &encoded["content_base64"]), (&json!("ünï"), &Value::Null));
    let image = json!({ "content_base64": "/wAB", "media_type": "image/x-own" });
    let image = app.put(&format!("{files}/assets/i.png"), &key, image).await.expect(200);
    assert_eq!((&image["media_type"], &image["size"]), (&json!("image/x-own"), &json!(3)));
    let read = app.get(&format!("{files}/assets/i.png"), &key).await.expect(200);
    assert_eq!((&read["content"], &read["content_base64"]), (&Value::Null, &json!("/wAB")));
    app.put(&format!("{files}/scripts/run.py"), &key, json!({ "content": "print(1" })).await.expect(200);
    let listed = app.get(&files, &key).await.expect(200);
    let paths: Vec<&Value> = listed.as_array().unwrap().iter().map(|file| &file["path"]).collect();
    assert_eq!(paths, ["assets/i.png", "references/a b.md", "scripts/run.py"]);
    let page = app.get(&format!("{files}?paginate=true&limit=1"), &key).await;
    let cursor = page.body["next_cursor"].as_str().unwrap();
    let page = app.get(&format!("{files}?paginate=true&limit=1&starting_after={cursor}"), &key).await;
    assert_eq!(page.expect(200)[0]["path"], "references/a b.md");
    let version = app.get(&path(&made), &key).await.expect(200)["version"].clone();
    app.put(&format!("{files}/scripts/run.py"), &key, json!({ "content": "print(1" })).await.expect(200);
    assert_eq!(app.get(&path(&made), &key).await.expect(200)["version"], version, "nothing changed");
    let gone = app.delete(&format!("{files}/assets/i.png"), &key).await.expect(200);
    assert_eq!((&gone["id"], &gone["object"]), (&json!("assets/i.png"), &json!("skill_file")));
    app.get(&format!("{files}/assets/i.png"), &key).await.expect_error(404, "not_found");
    app.delete(&format!("{files}/assets/i.png"), &key).await.expect_error(404, "not_found");
    app.get(&format!("{files}/nothing"), &key).await.expect_error(404, "not_found");
    let document = app.delete(&format!("{files}/SKILL.md"), &key).await;
    assert_eq!(document.expect_error(400, "validation_error").as_deref(), Some("path"));
    // SKILL.md and two files.
    assert_eq!(count(&app, "skill_contents").await, 3);
}

#[testkit::both]
async fn bad_files_are_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = skill(&app, &key, "made", json!({})).await;
    let files = format!("{}/files", path(&made));
    app.put(&format!("{files}/docs/É.md"), &key, json!({ "content": "x" })).await.expect(200);
    for bad in [
        "%2Fetc/passwd",
        "..%2Fa",
        "a%2F..%2Fb",
        "a%2F.%2Fb",
        "a//b",
        "a%5Cb",
        "C%3A/a",
        "a%00b",
        "a%0Ab",
        "a%E2%80%AEb",
        "SKILL.md",
        "skill.md",
        "docs/%C3%A9.md",
        "docs/E%CC%81.md/x",
        "docs",
        "DOCS",
        &"x".repeat(256),
    ] {
        let answer = app.put(&format!("{files}/{bad}"), &key, json!({ "content": "x" })).await;
        // No address has a NUL.
        if bad.contains("%00") {
            answer.expect_error(404, "route_not_found");
            continue;
        }
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("path"), "{bad}");
    }
    for (body, param) in [
        (json!({}), "content"),
        (json!({ "content": "a", "content_base64": "YQ==" }), "content_base64"),
        (json!({ "content_base64": "!" }), "content_base64"),
        (json!({ "content": "a", "media_type": "text" }), "media_type"),
        (json!({ "content": 1 }), "content"),
    ] {
        let answer = app.put(&format!("{files}/a.md"), &key, body.clone()).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    let half = json!({ "content": "x".repeat(6 << 20) });
    app.put(&format!("{files}/half"), &key, half.clone()).await.expect(200);
    app.put(&format!("{files}/half-2"), &key, half).await.expect_error(413, "package_too_large");
    app.put(&format!("{files}/half"), &key, json!({ "content": "y".repeat(9 << 20) })).await.expect(200);
    let more = json!({ "content": "x".repeat((10 << 20) + 1) });
    app.put(&format!("{files}/half"), &key, more).await.expect_error(413, "package_too_large");
}

#[testkit::both]
async fn a_skill_has_200_files(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = skill(&app, &key, "made", json!({})).await;
    let files = format!("{}/files", path(&made));
    app.put(&format!("{files}/a"), &key, json!({ "content": "x" })).await.expect(200);
    app.sql(format!(
        "INSERT INTO skill_files (skill_id, version, path, media_type, size, sha256) \
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 199) \
         SELECT skill_id, version, 'b' || i, media_type, size, sha256 FROM skill_files, n WHERE skill_id = {} AND path = 'a'",
        made["id"]
    ))
    .await;
    app.put(&format!("{files}/c"), &key, json!({ "content": "x" })).await.expect_error(409, "limit_reached");
    app.put(&format!("{files}/a"), &key, json!({ "content": "y" })).await.expect(200);
}

#[testkit::both]
async fn scripts_must_compile(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = skill(&app, &key, "made", json!({})).await;
    let files = format!("{}/files", path(&made));
    let put = async |path: &str, code: &str| {
        app.put(&format!("{files}/{path}"), &key, json!({ "content": code })).await
    };
    let good = put("scripts/run.js", "export default async (ctx) => ctx.input.a + 1;").await.expect(200);
    assert_eq!((&good["runs"], &good["media_type"]), (&json!(true), &json!("text/javascript")));
    let bad = put("scripts/run.js", "export default (ctx) => {\n  return 1 +;\n}").await;
    assert_eq!(bad.expect_error(400, "validation_error").as_deref(), Some("content"));
    let details = &bad.body["error"]["details"];
    assert_eq!((&details["file"], &details["line"]), (&json!("scripts/run.js"), &json!(2)), "{}", bad.text);
    assert!(details["column"].as_u64().unwrap() > 0);
    for code in [
        "const x = 1;",
        "export default 1;",
        "import fs from 'fs'; export default () => 1;",
        "await new Promise(() => {}); export default () => 1;",
        "throw new Error('no'); export default () => 1;",
    ] {
        let answer = put("scripts/x.mjs", code).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("content"), "{code}");
    }
    let binary = app.put(&format!("{files}/scripts/x.js"), &key, json!({ "content_base64": "/w==" })).await;
    assert_eq!(binary.expect_error(400, "validation_error").as_deref(), Some("content_base64"));
    let large = format!("export default () => '{}';", "x".repeat(256 << 10));
    assert_eq!(
        put("scripts/x.js", &large).await.expect_error(400, "validation_error").as_deref(),
        Some("content")
    );
    // Elsewhere nothing runs it.
    put("assets/x.js", "not a program (").await.expect(200);
}

#[testkit::both]
async fn large_files_are_objects_that_end_with_their_last_skill(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = bare(&app).await;
    let made = skill(&app, &key, "made", json!({})).await;
    let file = format!("{}/files/large", path(&made));
    let large = "x".repeat(300 << 10);
    app.put(&file, &key, json!({ "content": large })).await.expect(200);
    app.put(&file, &key, json!({ "content": large })).await.expect(200);
    assert_eq!(count(&app, "skill_contents WHERE storage_key IS NOT NULL AND bytes IS NULL").await, 1);
    assert_eq!(app.get(&file, &key).await.expect(200)["content"], large);
    app.post(&format!("{}/publish", path(&made)), &key, json!({})).await.expect(200);
    let copy = app.post(&format!("{}/duplicate", path(&made)), &key, json!({})).await.expect(201);
    app.put(&file, &key, json!({ "content": "small" })).await.expect(200);
    let old = app.get(&format!("{file}?version=1"), &key).await.expect(200);
    assert_eq!(old["content"], large, "the version keeps it");
    app.delete(&path(&made), &key).await.expect(200);
    assert_eq!(count(&app, "unused_objects").await, 0, "the copy has it");
    let copied = app.get(&format!("{}/files/large", path(&copy)), &key).await.expect(200);
    assert_eq!(copied["content"], large);
    app.delete(&path(&copy), &key).await.expect(200);
    assert_eq!(count(&app, "unused_objects").await, 1);
    assert_eq!(count(&app, "skill_contents").await, 0);
}
