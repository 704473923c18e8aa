//! Tests of multipart uploads.

use super::*;

#[testkit::both]
async fn a_file_is_sent_in_parts(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let request = json!({ "name": "tour/a.txt", "size": 15, "folder": "f", "tags": ["t"] });
    let upload = app.post("/files/uploads", &key, request).await.expect(201);
    part(&app, &key, &upload, 3, b"three").await.expect(200);
    part(&app, &key, &upload, 1, b"wrong!").await.expect(200);
    let first = part(&app, &key, &upload, 1, b"one, ").await.expect(200);
    assert_eq!((&first["number"], &first["size"]), (&json!(1), &json!(5)));
    let early = complete(&app, &key, &upload, json!({})).await;
    early.expect_error(409, "upload_incomplete");
    assert_eq!(
        early.body["error"]["details"],
        json!({ "missing_parts": [2], "received_bytes": 10, "expected_bytes": 15 })
    );
    let checked =
        |digest: &str| format!("/files/uploads/{}/parts/2?sha256={digest}", upload["id"].as_str().unwrap());
    let asking =
        app.ask("PUT", &checked(&"0".repeat(64))).key(&key).bytes("application/octet-stream", b"two, ");
    assert_eq!(asking.send().await.expect_error(400, "validation_error").as_deref(), Some("sha256"));
    assert_eq!(
        part(&app, &key, &upload, 2, b"").await.expect_error(400, "validation_error").as_deref(),
        Some("body")
    );
    part(&app, &key, &upload, 2, b"two, four").await.expect(200);
    let long = complete(&app, &key, &upload, json!({})).await;
    assert_eq!(long.body["error"]["details"]["received_bytes"], 19);
    part(&app, &key, &upload, 2, b"two, ").await.expect(200);
    let short = complete(&app, &key, &upload, json!({ "parts": 4 })).await;
    short.expect_error(409, "upload_incomplete");
    assert_eq!(short.body["error"]["details"]["missing_parts"], json!([4]));
    complete(&app, &key, &upload, json!({ "parts": 2 })).await.expect_error(409, "upload_incomplete");

    let file = complete(&app, &key, &upload, json!({ "parts": 3 })).await.expect(201);
    assert_eq!((&file["name"], &file["size"], &file["folder"]), (&json!("a.txt"), &json!(15), &json!("f")));
    assert_eq!(at(&app, &file["signed_url"]).await.text, "one, two, three");
    assert_eq!(complete(&app, &key, &upload, json!({})).await.expect(201)["id"], file["id"]);
    part(&app, &key, &upload, 1, b"late").await.expect_error(409, "invalid_state");
    assert_eq!(kinds(&events(&app).await), ["file.created"]);

    let stranger = app.bare_key().await;
    part(&app, &stranger, &upload, 1, b"x").await.expect_error(404, "not_found");
    complete(&app, &stranger, &upload, json!({})).await.expect_error(404, "not_found");
    for number in [0, 1001] {
        part(&app, &key, &upload, number, b"x").await.expect_error(404, "not_found");
    }
}

#[testkit::both]
async fn a_digest_that_was_announced_is_verified(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let wrong =
        app.post("/files/uploads", &key, json!({ "name": "a", "sha256": "0".repeat(64) })).await.expect(201);
    part(&app, &key, &wrong, 1, b"Hello").await.expect(200);
    let refused = complete(&app, &key, &wrong, json!({})).await;
    assert_eq!(refused.expect_error(409, "upload_incomplete").as_deref(), Some("sha256"));
    let digest = refused.body["error"]["details"]["sha256"].as_str().unwrap().to_uppercase();
    let right = app.post("/files/uploads", &key, json!({ "name": "a", "sha256": digest })).await.expect(201);
    part(&app, &key, &right, 1, b"Hello").await.expect(200);
    complete(&app, &key, &right, json!({})).await.expect(201);
    assert_eq!(ids(&app, &key, "").await.len(), 1);
}

#[testkit::both]
async fn uploads_that_end_early_leave_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let upload = app.post("/files/uploads", &key, json!({ "name": "a" })).await.expect(201);
    part(&app, &key, &upload, 1, b"Hello").await.expect(200);
    app.data.clock.advance(chrono::Duration::hours(24));
    part(&app, &key, &upload, 2, b"Hello").await.expect_error(409, "invalid_state");
    complete(&app, &key, &upload, json!({})).await.expect_error(409, "invalid_state");
    app.data.clock.advance(chrono::Duration::hours(2));
    let files = crate::files::store_of(&app);
    ::files::sweep(app.db(), &files).await.unwrap();
    let left: Vec<_> = object_store::ObjectStore::list(&*app.objects, None).try_collect().await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    part(&app, &key, &upload, 1, b"Hello").await.expect_error(404, "not_found");
}

#[testkit::both]
async fn a_crash_loses_no_part_and_makes_no_second_file(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let upload = app.post("/files/uploads", &key, json!({ "name": "a" })).await.expect(201);
    part(&app, &key, &upload, 1, b"Hello ").await.expect(200);
    // Another process continues the upload.
    let other = app.replica(auth::RateWindows::local()).await;
    part(&other, &key, &upload, 2, b"world").await.expect(200);
    let (files, id) = (crate::files::store_of(&app), upload["id"].as_str().unwrap().parse().unwrap());
    let workspace = key.workspace;
    let row = app.db().read(move |read| uploads::find(read, workspace, &id)).await.unwrap();
    // A part with stored bytes but without a row.
    let lost = object_store::path::Path::from(format!("{}/uploads/{}/3-x", row.workspace_id, row.id));
    object_store::ObjectStoreExt::put(&*app.objects, &lost, "lost".into()).await.unwrap();
    // A completion that stopped after joining the parts, before the file was created.
    let id = row.id.clone();
    let parts = app.db().read(move |read| uploads::parts(read, &id)).await.unwrap();
    files.join(app.db(), &row, parts).await.unwrap();
    assert_eq!(ids(&app, &key, "").await.len(), 0);

    let file = complete(&other, &key, &upload, json!({})).await.expect(201);
    assert_eq!(at(&app, &file["signed_url"]).await.text, "Hello world");
    app.data.clock.advance(chrono::Duration::hours(26));
    ::files::sweep(app.db(), &files).await.unwrap();
    let left: Vec<_> = object_store::ObjectStore::list(&*app.objects, None).try_collect().await.unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(ids(&app, &key, "").await, [file["id"].clone()]);
    other.stop().await;
}

#[testkit::both]
async fn many_completions_make_one_file(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let upload = app.post("/files/uploads", &key, json!({ "name": "a" })).await.expect(201);
    part(&app, &key, &upload, 1, b"Hello").await.expect(200);
    let all = futures::future::join_all((0..16).map(|_| complete(&app, &key, &upload, json!({})))).await;
    let made: Vec<Value> = all.iter().map(|answer| answer.expect(201)["id"].clone()).collect();
    assert!(made.iter().all(|id| *id == made[0]), "{made:?}");
    assert_eq!(ids(&app, &key, "").await, [made[0].clone()]);
    assert_eq!(kinds(&events(&app).await), ["file.created"]);
}
