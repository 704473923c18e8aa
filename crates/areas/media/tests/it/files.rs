//! Tests of files: storing, downloading and deleting.

use bytes::Bytes;
use diesel::prelude::*;
use files::schema::files as table;
use files::{FileRow, Files, NewFile, finish, sweep};
use futures::{StreamExt, stream};
use model::{Cause, WorkspaceId};
use std::sync::Arc;
use testkit::{Answer, Kind, TestApp};

pub fn store_of(app: &TestApp) -> Arc<Files> {
    app.service.pipeline.services.get().unwrap()
}

fn new(workspace: WorkspaceId, name: &str) -> NewFile {
    NewFile {
        name: name.to_owned(),
        most_bytes: 1 << 20,
        workspace,
        uploaded_by: Cause::system("test").actor,
    }
}

/// Stores `parts` as a file.
async fn stored(app: &TestApp, workspace: WorkspaceId, name: &str, parts: &[&str]) -> FileRow {
    let parts: Vec<_> =
        parts.iter().map(|part| Ok::<_, std::io::Error>(Bytes::from((*part).to_owned()))).collect();
    store_of(app).store(app.db(), new(workspace, name), stream::iter(parts)).await.unwrap()
}

/// Requests a URL of the service.
async fn at(app: &TestApp, url: &str, headers: &[(&str, &str)]) -> Answer {
    let path = url.strip_prefix("https://svc.example").unwrap();
    let asking = app.ask_beside("GET", path);
    headers.iter().fold(asking, |asking, (name, value)| asking.header(name, value)).send().await
}

#[testkit::both]
async fn a_file_is_read_at_its_addresses(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 0).await;
    let row = stored(&app, workspace, "preis liste.csv", &["name,price\n", "é,1\n"]).await;
    assert_eq!((row.size, row.mime_type.as_str(), row.status.as_str()), (16, "text/csv", "ready"));
    let file = store_of(&app).show(&row, app.data.db.now()).unwrap();
    assert_eq!(file.sha256, "6d96cde2dab2708708f7081f2daef71bd74f30a3a6a57b8b719785ec515cb14c");

    let moved = at(&app, &file.url, &[]).await;
    assert_eq!(moved.status, 302);
    let read = at(&app, &moved.headers["location"], &[]).await;
    assert_eq!((read.status, read.text.as_str()), (200, "name,price\né,1\n"));
    assert_eq!(read.headers["content-length"], "16");
    assert_eq!(read.headers["content-type"], "text/csv");
    assert_eq!(read.headers["x-content-type-options"], "nosniff");
    assert!(read.headers["content-disposition"].starts_with("attachment; filename=\"preis liste.csv\""));

    let part = at(&app, &file.signed_url, &[("range", "bytes=5-9")]).await;
    assert_eq!((part.status, part.text.as_str()), (206, "price"));
    assert_eq!(part.headers["content-range"], "bytes 5-9/16");
    let etag = read.headers["etag"].as_str();
    assert_eq!(at(&app, &file.signed_url, &[("if-none-match", etag)]).await.status, 304);
    let stale = [("range", "bytes=0-1"), ("if-range", "\"another\"")];
    assert_eq!(at(&app, &file.signed_url, &stale).await.status, 200);
    let outside = at(&app, &file.signed_url, &[("range", "bytes=16-")]).await;
    assert_eq!((outside.status, outside.headers["content-range"].as_str()), (416, "bytes */16"));
}

#[testkit::both]
async fn addresses_that_give_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 0).await;
    let row = stored(&app, workspace, "a.txt", &["secret"]).await;
    let file = store_of(&app).show(&row, app.data.db.now()).unwrap();
    for path in ["/f/", "/f/AAAAAAAAAAAAAAAAAAAAAA", "/f/%00", "/d/", "/d/x", "/d/x.y", "/d/AA.AA"] {
        assert_eq!(app.ask_beside("GET", path).send().await.status, 404, "{path}");
    }
    // Links with one character changed, in the target or in the signature.
    let (said, signature) = file.signed_url.rsplit_once('.').unwrap();
    let flip = |text: &str| {
        let (rest, last) = text.split_at(text.len() - 3);
        format!("{rest}{}{}", if last.starts_with('A') { 'B' } else { 'A' }, &last[1..])
    };
    for forged in [format!("{}.{signature}", flip(said)), format!("{said}.{}", flip(signature))] {
        assert_eq!(at(&app, &forged, &[]).await.status, 404, "{forged}");
    }
    let posted = app.ask_beside("POST", &file.signed_url["https://svc.example".len()..]).send().await;
    assert_eq!((posted.status, posted.headers["allow"].as_str()), (405, "GET, HEAD"));

    app.data.clock.advance(chrono::Duration::days(7));
    assert_eq!(at(&app, &file.signed_url, &[]).await.status, 410);
    assert_eq!(at(&app, &file.url, &[]).await.status, 302);
    app.sql("UPDATE files SET trashed_at = created_at").await;
    assert_eq!(at(&app, &file.url, &[]).await.status, 410);
    let fresh = store_of(&app).signed_url(&row, app.data.db.now().plus_seconds(60));
    assert_eq!(at(&app, &fresh, &[]).await.status, 410);
}

#[testkit::both]
async fn uploads_that_do_not_end_leave_nothing(kind: Kind) {
    let app = TestApp::new(kind).await;
    let workspace = app.bare_workspace("scale", 0).await;
    let files = store_of(&app);
    let large = stream::iter([0, 1].map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b'x'; 700_000]))));
    let refused = files.store(app.db(), new(workspace, "large"), large).await.unwrap_err();
    assert_eq!(refused.code(), model::Code::FileTooLarge);
    let broken = stream::iter(vec![Ok(Bytes::from("x")), Err(std::io::Error::other("the caller hung up"))]);
    files.store(app.db(), new(workspace, "broken"), broken).await.unwrap_err();
    // The bytes are stored, but the transaction that creates the file is missing.
    let bytes = stream::iter(vec![Ok::<_, std::io::Error>(Bytes::from("x"))]);
    let orphan = files.put(app.db(), new(workspace, "orphan"), bytes).await.unwrap();
    stored(&app, workspace, "kept", &["x"]).await;

    let names = async || {
        let names = table::table.order(table::id).select(table::name);
        app.db().read(move |read| Ok(names.load::<String>(read.connection())?)).await.unwrap()
    };
    let objects = async || app.objects.list(None).count().await;
    assert_eq!(sweep(app.db(), &files).await.unwrap(), 0, "the orphan may still go on");
    assert_eq!((names().await, objects().await), (vec!["kept".to_owned()], 2), "what failed is gone at once");
    app.data.clock.advance(chrono::Duration::hours(25));
    assert_eq!(sweep(app.db(), &files).await.unwrap(), 1);
    assert_eq!((names().await, objects().await), (vec!["kept".to_owned()], 1));
    let late = app.db().write(move |tx| finish(tx, &orphan).map(drop)).await.unwrap_err();
    assert_eq!((late.code(), names().await.len()), (model::Code::NotFound, 1), "it was given up");
}
