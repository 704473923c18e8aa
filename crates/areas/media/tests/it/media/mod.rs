//! Tests of the area Files over HTTP.

mod upload_parts;

use crate::events;
use ::files::uploads;
use futures::TryStreamExt;
use model::Env;
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, Receiver, TestApp};

/// The header of an image with 320 × 240 pixels.
const GIF: &[u8] = b"GIF89a\x40\x01\xf0\0\0\0\0";

async fn upload(app: &TestApp, key: &Key, name: &str, bytes: &[u8]) -> Value {
    with(app, key, &[], name, bytes).await.expect(201)
}

async fn with(app: &TestApp, key: &Key, fields: &[(&str, &str)], name: &str, bytes: &[u8]) -> Answer {
    app.ask("POST", "/files").key(key).form(fields, (name, bytes)).send().await
}

/// Requests a URL of the service.
async fn at(app: &TestApp, url: &Value) -> Answer {
    let path = url.as_str().unwrap().strip_prefix("https://svc.example").unwrap();
    app.ask_beside("GET", path).send().await
}

async fn ids(app: &TestApp, key: &Key, query: &str) -> Vec<Value> {
    let page = app.get(&format!("/media?{query}"), key).await.expect(200);
    page.as_array().unwrap().iter().map(|file| file["id"].clone()).collect()
}

async fn part(app: &TestApp, key: &Key, upload: &Value, number: usize, bytes: &[u8]) -> Answer {
    let path = format!("/files/uploads/{}/parts/{number}", upload["id"].as_str().unwrap());
    app.ask("PUT", &path).key(key).bytes("application/octet-stream", bytes).send().await
}

async fn complete(app: &TestApp, key: &Key, upload: &Value, body: Value) -> Answer {
    app.post(&format!("/files/uploads/{}/complete", upload["id"].as_str().unwrap()), key, body).await
}

/// Uploads an HTML file and renames it.
async fn upload_and_rename(app: &TestApp, key: &Key, name: &str) -> Value {
    let file = upload(app, key, "page.html", b"<script>alert(1)</script>").await;
    app.patch(&format!("/files/{}", file["id"]), key, json!({ "name": name })).await.expect(200)
}

fn kinds(of: &[(String, Value)]) -> Vec<&str> {
    of.iter().map(|(kind, _)| kind.as_str()).filter(|kind| kind.starts_with("file.")).collect()
}

#[testkit::both]
async fn a_file_is_uploaded_described_and_read(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let fields = [("folder", "photos/2026"), ("tags", "a,b,a"), ("metadata", "{\"order\":\"A-1\"}")];
    let made = with(&app, &key, &fields, "C:\\Photos\\sun.gif", GIF).await.expect(201);
    assert_eq!(made["name"], "sun.gif");
    assert_eq!(
        (&made["mime_type"], &made["declared_mime_type"]),
        (&json!("image/gif"), &json!("text/x-declared"))
    );
    assert_eq!((&made["kind"], &made["width"], &made["height"]), (&json!("image"), &json!(320), &json!(240)));
    assert_eq!((&made["tags"], &made["metadata"]), (&json!(["a", "b"]), &json!({ "order": "A-1" })));
    assert_eq!(made["duration_ms"], Value::Null);
    let path = format!("/files/{}", made["id"]);
    let file = app.get(&path, &key).await.expect(200);
    assert_eq!((&file["attached_to"], &file["sha256"]), (&json!([]), &made["sha256"]));
    let moved = at(&app, &file["url"]).await;
    assert_eq!(moved.status, 302);
    assert_eq!(
        at(&app, &json!(moved.headers["location"])).await.text.len(),
        String::from_utf8_lossy(GIF).len()
    );

    let change = json!({ "name": "moon.gif", "folder": null, "tags": ["c"], "version": 1 });
    let changed = app.patch(&path, &key, change.clone()).await.expect(200);
    assert_eq!(
        (&changed["name"], &changed["folder"], &changed["version"]),
        (&json!("moon.gif"), &Value::Null, &json!(2))
    );
    app.patch(&path, &key, change).await.expect_error(409, "version_conflict");
    let same = app.patch(&path, &key, json!({ "name": "moon.gif" })).await.expect(200);
    assert_eq!(same["version"], 2, "nothing changed");
    assert_eq!(kinds(&events(&app).await), ["file.created", "file.updated"]);
}

#[testkit::both]
async fn the_library_is_filtered(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let stranger = app.bare_key().await;
    upload(&app, &stranger, "theirs.gif", GIF).await;
    let gif =
        with(&app, &key, &[("folder", "a"), ("tags", "x,long tag")], "Été 100%.gif", GIF).await.expect(201);
    app.data.clock.advance(chrono::Duration::hours(1));
    let text = with(&app, &key, &[("folder", "a/b"), ("tags", "y")], "notes.txt", b"Hello").await.expect(201);
    let (gif_id, text_id) = (gif["id"].clone(), text["id"].clone());
    let both = [text_id.clone(), gif_id.clone()];
    for (query, found) in [
        ("", &both[..]),
        ("kind=image", &both[1..]),
        ("kind=image,document", &both[..]),
        ("mime_type=image/*", &both[1..]),
        ("mime_type=text/plain", &both[..1]),
        ("mime_type=text/*", &both[..1]),
        ("folder=a", &both[1..]),
        ("folder=A", &[]),
        ("tag=x", &both[1..]),
        ("tag=long%20tag", &both[1..]),
        ("tag=long", &[]),
        ("q=%C3%89T%C3%89", &both[1..]),
        ("q=%25", &both[1..]),
        ("q=_", &[]),
        ("sort=created_at", &[gif_id.clone(), text_id.clone()]),
        ("sort=size", &[text_id.clone(), gif_id.clone()]),
        ("sort=name", &[text_id.clone(), gif_id.clone()]),
        ("limit=1&offset=1", &both[1..]),
        ("trashed=true", &[]),
    ] {
        assert_eq!(ids(&app, &key, query).await, found, "{query}");
    }
    let at = text["created_at"].as_str().unwrap();
    assert_eq!(ids(&app, &key, &format!("since={at}")).await, both[..1]);
    assert_eq!(ids(&app, &key, &format!("until={at}")).await, both[1..]);
    assert_eq!(
        ids(&app, &key, &format!("sha256={}", gif["sha256"].as_str().unwrap().to_uppercase())).await,
        both[1..]
    );
    let page = app.get("/media?limit=1", &key).await;
    assert_eq!(page.body["pagination"]["total"], 2);
    for (query, param) in
        [("kind=photo", "kind"), ("tag=a%2Cb", "tag"), ("mime_type=*", "mime_type"), ("colour=red", "colour")]
    {
        let refused = app.get(&format!("/media?{query}"), &key).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param));
    }
}

#[testkit::both]
async fn forms_that_are_wrong_are_refused(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    for (fields, param) in [
        (("folder", "/a"), "folder"),
        (("folder", ""), "folder"),
        (("tags", "a,\"b\""), "tags[1]"),
        (("metadata", "[1]"), "metadata"),
        (("metadata", "{"), "metadata"),
        (("surprise", "1"), "surprise"),
        (("name", "  "), "name"),
    ] {
        let refused = with(&app, &key, &[fields], "a.txt", b"Hello").await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{fields:?}");
    }
    let send =
        async |kind: &str, body: &[u8]| app.ask("POST", "/files").key(&key).bytes(kind, body).send().await;
    send("application/json", b"{}").await.expect_error(415, "unsupported_media_type");
    send("multipart/form-data", b"x").await.expect_error(400, "validation_error");
    for body in [
        "",
        "x",
        "--b",
        "--b\r\n",
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\nHello",
    ] {
        let refused = send("multipart/form-data; boundary=b", body.as_bytes()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("body"), "{body}");
    }
    let no_file = "--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nx\r\n--b--\r\n";
    let refused = send("multipart/form-data; boundary=b", no_file.as_bytes()).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("file"));
    let limited = app.key(key.workspace, Env::Live, &["files:read"]).await;
    with(&app, &limited, &[], "a", b"x").await.expect_error(403, "missing_scope");
    assert_eq!(ids(&app, &key, "").await, [0; 0].map(Value::from));
}

#[testkit::both]
async fn a_resend_makes_no_second_file(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let send = async || {
        let asking = app.ask("POST", "/files").key(&key).header("idempotency-key", "one");
        asking.form(&[], ("a.txt", b"Hello")).send().await
    };
    let first = send().await.expect(201);
    let second = send().await;
    assert_eq!(second.expect(201), first);
    assert_eq!(second.headers["idempotent-replayed"], "true");
    assert_eq!(ids(&app, &key, "").await.len(), 1);
}

#[testkit::both]
async fn hostile_files_do_no_harm(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let script = b"<html><script>alert(1)</script>";
    let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";
    let xml =
        b"<?xml version=\"1.0\"?><x xmlns=\"http://www.w3.org/1999/xhtml\"><script>alert(1)</script></x>";
    for (name, bytes) in [
        ("page.html", &script[..]),
        ("photo.png", script),
        ("image.svg", svg),
        ("image.png", svg),
        ("a.xml", xml),
    ] {
        let file = upload(&app, &key, name, bytes).await;
        let read = at(&app, &file["signed_url"]).await;
        assert!(read.headers["content-disposition"].starts_with("attachment;"), "{name}");
        assert_eq!(read.headers["x-content-type-options"], "nosniff");
        assert_eq!(read.headers["content-security-policy"], "default-src 'none'; sandbox");
    }
    // An image of 65,535 × 65,535 pixels in 33 bytes, and an archive of four gigabytes in a few bytes. Neither is
    // unpacked.
    let bomb = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\xff\xff\0\0\xff\xff\x08\x02\0\0\0\0\0\0\0";
    let bomb = upload(&app, &key, "bomb.png", bomb).await;
    assert_eq!((&bomb["width"], &bomb["height"]), (&json!(65_535), &json!(65_535)));
    let zip = b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0\x10\0\0\0\xff\xff\xff\xff\x01\0\0\0a\x03\0";
    assert_eq!(upload(&app, &key, "bomb.zip", zip).await["mime_type"], "application/zip");
    for (name, safe) in [("../../etc/passwd", "passwd"), ("ann\u{202e}txt.exe", "anntxt.exe"), ("..", "file")]
    {
        assert_eq!(upload(&app, &key, name, b"x").await["name"], safe);
    }
    let broken = [
        b"\xff\xfbdamaged".as_slice(),
        b"RIFF\0\0\0\0WAVEfmt ",
        b"\0\0\0\x20ftypmp42\0\0\0\0",
        b"OggS",
        b"fLaC\0\0",
    ];
    for bytes in broken {
        assert_eq!(upload(&app, &key, "sound", bytes).await["duration_ms"], Value::Null);
    }
}

#[testkit::both]
async fn what_a_file_pretends_to_be_is_not_believed(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let script = "<!DOCTYPE html><script>alert(1)</script>";
    let polyglot = [GIF, b"=1;/*", script.as_bytes()].concat();
    for (declared, name, bytes, found, shown) in [
        ("image/png", "photo.png", script.as_bytes(), "text/html", false),
        ("application/pdf", "form.pdf", script.as_bytes(), "text/html", false),
        ("image/gif", "page.html", b"just <b>text</b>", "text/html", false),
        ("text/html", "page.html", GIF, "image/gif", true),
        ("text/html", "page.html", &polyglot, "image/gif", true),
        (
            "text/plain",
            "notes.txt",
            b"MZ\x90\0\x03\0\0\0",
            "application/vnd.microsoft.portable-executable",
            false,
        ),
        ("image/svg+xml", "notes.txt", b"hello", "text/plain", false),
        ("a/b\u{e9}", "notes.txt", b"hello", "text/plain", false),
    ] {
        let boundary = "a-line-of-its-own";
        let head = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: {declared}\r\n\r\n"
        );
        let body = [head.as_bytes(), bytes, format!("\r\n--{boundary}--\r\n").as_bytes()].concat();
        let kind = format!("multipart/form-data; boundary={boundary}");
        let answer = app.ask("POST", "/files").key(&key).bytes(&kind, &body).send().await;
        if declared.is_ascii() {
            let file = answer.expect(201);
            assert_eq!(
                (&file["mime_type"], &file["declared_mime_type"]),
                (&json!(found), &json!(declared)),
                "{name}"
            );
            for (method, headers, status) in
                [("GET", &[][..], 200), ("HEAD", &[], 200), ("GET", &[("range", "bytes=0-0")], 206)]
            {
                let path = file["signed_url"].as_str().unwrap().strip_prefix("https://svc.example").unwrap();
                let asking = app.ask_beside(method, path);
                let asking = headers.iter().fold(asking, |asking, (name, value)| asking.header(name, value));
                let read = asking.send().await;
                assert_eq!(read.status, status);
                assert!(read.headers["content-type"].starts_with(found), "{:?}", read.headers);
                let way = if shown { "inline;" } else { "attachment;" };
                assert!(read.headers["content-disposition"].starts_with(way), "{name} {declared}");
                assert_eq!(read.headers["x-content-type-options"], "nosniff");
                assert_eq!(read.headers["content-security-policy"], "default-src 'none'; sandbox");
            }
        } else {
            assert!([201, 400].contains(&answer.status), "{}", answer.text);
        }
    }
}

#[testkit::both]
async fn names_get_into_no_header_and_no_path(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let long = format!("{}.html", "é".repeat(10_000));
    for (name, safe) in [
        ("a\r\nSet-Cookie: x=1\r\n\r\n<script>.txt", "aSet-Cookie: x=1<script>.txt"),
        ("a\"; filename=\"b.html", "a\"; filename=\"b.html"),
        ("..\\..\\boot.ini\u{7f}.txt", "boot.ini.txt"),
        ("/etc/\u{1b}[31mpasswords.txt", "[31mpasswords.txt"),
        ("%2e%2e%2fpasswords.txt", "%2e%2e%2fpasswords.txt"),
        ("\u{feff}\u{2066}x\u{2069}", "x"),
        ("nul\0.txt", ""),
        (&long, ""),
    ] {
        let begun = app.post("/files/uploads", &key, json!({ "name": name })).await;
        if safe.is_empty() {
            assert_eq!(begun.expect_error(400, "validation_error").as_deref(), Some("name"));
            continue;
        }
        let upload = begun.expect(201);
        part(&app, &key, &upload, 1, b"<script>alert(1)</script>").await.expect(200);
        let file = complete(&app, &key, &upload, json!({})).await.expect(201);
        let renamed = upload_and_rename(&app, &key, name).await;
        for file in [file, renamed] {
            assert_eq!(file["name"], safe, "{name:?}");
            let read = at(&app, &file["signed_url"]).await;
            assert_eq!(read.status, 200, "{name:?}");
            assert!(!read.headers.contains_key("set-cookie"), "{:?}", read.headers);
            let disposition = &read.headers["content-disposition"];
            assert!(disposition.starts_with("attachment; "), "{disposition}");
            assert!(disposition.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{disposition}");
            assert_eq!(disposition.matches('"').count(), 2, "{disposition}");
            assert_eq!(disposition.matches("filename=").count(), 1, "{disposition}");
            // The URL does not contain the name.
            testkit::assert_absent(file["url"].as_str().unwrap(), "passwords.txt");
        }
    }
}

#[testkit::both]
async fn sizes_that_files_announce_are_not_reserved(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let mp4 = |size: &[u8]| [b"\0\0\0\x18ftypisom\0\0\x02\0isomiso2", size].concat();
    for bytes in [
        // Four gigabytes of samples, of a tag, and of a picture block.
        [b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data\xff\xff\xff\xff".to_vec()].concat(),
        b"ID3\x04\0\0\x7f\x7f\x7f\x7fTIT2\x7f\x7f\x7f\x7f\0\0".to_vec(),
        b"fLaC\x06\xff\xff\xff\0\0\0\x03\xff\xff\xff\xff".to_vec(),
        mp4(b"\xff\xff\xff\xffmoov\xff\xff\xff\xfftrak"),
        mp4(b"\0\0\0\x01moov\xff\xff\xff\xff\xff\xff\xff\xff"),
        b"FORM\xff\xff\xff\xffAIFFCOMM\xff\xff\xff\xff".to_vec(),
        b"OggS\0\x02\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\x01vorbis".to_vec(),
        // Images with the maximum number of pixels, and with directories that point outside the file.
        b"BM\xff\xff\xff\xff\0\0\0\0\x36\0\0\0\x28\0\0\0\xff\xff\xff\x7f\xff\xff\xff\x7f\x01\0\x18\0".to_vec(),
        b"II*\0\xff\xff\xff\xff".to_vec(),
        b"8BPS\0\x01\0\0\0\0\0\0\0\x03\xff\xff\xff\xff\xff\xff\xff\xff\0\x08\0\x03".to_vec(),
        // Nested archives, each with a large announced size.
        b"PK\x03\x04\x14\0\0\0\x08\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x05\0\0\0a.zip".repeat(3),
        b"\x1f\x8b\x08\0\0\0\0\0\0\xff\xff\xff\xff\xff".to_vec(),
    ] {
        let file = upload(&app, &key, "bomb", &bytes).await;
        assert_eq!(file["size"], bytes.len());
        let read = at(&app, &file["signed_url"]).await;
        assert_eq!(read.headers["content-length"], bytes.len().to_string());
    }
}

#[testkit::both]
async fn sounds_have_a_duration(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    // One and a half seconds of silence: 8,000 samples per second of one byte.
    let data = vec![128_u8; 12_000];
    let mut wav = b"RIFF".to_vec();
    wav.extend((36 + 12_000_u32).to_le_bytes());
    wav.extend(*b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data");
    wav.extend(12_000_u32.to_le_bytes());
    wav.extend(data);
    let file = upload(&app, &key, "note.wav", &wav).await;
    assert_eq!((&file["kind"], &file["duration_ms"]), (&json!("audio"), &json!(1500)));
}

#[testkit::both]
async fn files_in_use_are_kept(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let fields = json!([{ "label": "Name", "type": "text" }, { "label": "Scan", "type": "file" }]);
    let home = app.post("/collections", &key, json!({ "name": "Home", "fields": fields })).await.expect(201);
    let items = format!("/collections/{}/items", home["id"]);
    let [attached, valued, free] = [
        upload(&app, &key, "a", b"a").await,
        upload(&app, &key, "b", b"b").await,
        upload(&app, &key, "c", b"c").await,
    ];
    let first = app.post(&items, &key, json!({ "data": { "name": "x" } })).await.expect(201);
    app.post(&format!("{items}/{}/files", first["id"]), &key, json!({ "file_id": attached["id"] }))
        .await
        .expect(201);
    let second = app
        .post(&items, &key, json!({ "data": { "scan": [attached["id"], valued["id"]] } }))
        .await
        .expect(201);
    for (file, users) in [(&attached, vec![&first, &second]), (&valued, vec![&second])] {
        let path = format!("/files/{}", file["id"]);
        let used: Vec<Value> =
            users.iter().map(|item| json!({ "type": "item", "id": item["id"].to_string() })).collect();
        assert_eq!(app.get(&path, &key).await.expect(200)["attached_to"], json!(used));
        let refused = app.delete(&path, &key).await;
        refused.expect_error(409, "file_in_use");
        assert_eq!(refused.body["error"]["details"]["attached_to"], json!(used));
    }
    app.delete(&format!("/files/{}", free["id"]), &key).await.expect(200);
    app.delete(&format!("/files/{}?force=true", valued["id"]), &key).await.expect(200);
    app.delete(&format!("/files/{}", valued["id"]), &key).await.expect_error(404, "not_found");
}

#[testkit::both]
async fn deleted_files_wait_in_the_trash_and_go(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let (first, second) = (upload(&app, &key, "a", b"same").await, upload(&app, &key, "b", b"same").await);
    assert_eq!(first["sha256"], second["sha256"]);
    assert_ne!(first["url"], second["url"]);
    let path = format!("/files/{}", first["id"]);
    app.delete(&path, &key).await.expect(200);
    for link in ["url", "signed_url"] {
        let gone = at(&app, &first[link]).await;
        assert_eq!((gone.status, &gone.body["error"]["code"]), (410, &json!("file_deleted")));
    }
    assert_eq!(ids(&app, &key, "").await, [second["id"].clone()]);
    assert_eq!(ids(&app, &key, "trashed=true").await, [first["id"].clone()]);
    app.patch(&path, &key, json!({ "name": "x" })).await.expect_error(409, "invalid_state");
    let back = app.patch(&path, &key, json!({ "trashed": false })).await.expect(200);
    assert_eq!((&back["trashed_at"], &back["name"]), (&Value::Null, &json!("a")));
    assert_eq!(at(&app, &first["signed_url"]).await.text, "same");

    let sweep = async || {
        app.data.clock.advance(chrono::Duration::days(31));
        ::files::sweep(app.db(), &crate::files::store_of(&app)).await.unwrap()
    };
    let stored = async || {
        object_store::ObjectStore::list(&*app.objects, None).try_collect::<Vec<_>>().await.unwrap().len()
    };
    app.delete(&path, &key).await.expect(200);
    assert_eq!((sweep().await, stored().await), (1, 1), "the other file has the same bytes");
    app.get(&path, &key).await.expect_error(404, "not_found");
    assert_eq!(at(&app, &first["url"]).await.status, 410);
    let other = app.get(&format!("/files/{}", second["id"]), &key).await.expect(200);
    assert_eq!(at(&app, &other["signed_url"]).await.text, "same");
    app.delete(&format!("/files/{}", second["id"]), &key).await.expect(200);
    assert_eq!((sweep().await, stored().await, sweep().await), (1, 0, 0));
    let expected =
        ["file.created", "file.created", "file.deleted", "file.updated", "file.deleted", "file.deleted"];
    assert_eq!(kinds(&events(&app).await), expected);
}

#[testkit::both]
async fn files_are_fetched_from_urls(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let server = Receiver::start().await;
    let fetch =
        async |url: String| app.post("/files/from-url", &key, json!({ "url": url, "tags": ["web"] })).await;
    server.answer_status(404);
    let refused = fetch(server.url("/a.txt")).await;
    assert_eq!(refused.expect_error(400, "fetch_failed").as_deref(), Some("url"));
    assert_eq!(refused.body["error"]["details"]["status"], 404);
    server.answer_status(200);
    let file = fetch(server.url("/list/price%20list.txt?x=1")).await.expect(201);
    assert_eq!((&file["name"], &file["tags"]), (&json!("price list.txt"), &json!(["web"])));
    for url in [
        "http://10.0.0.1/a",
        "http://[fe80::1]/a",
        "http://169.254.169.254/",
        "ftp://example.com/a",
        "http://user@example.com/",
        "nothing",
    ] {
        let refused = fetch(url.to_owned()).await;
        assert_eq!(refused.expect_error(400, "url_not_allowed").as_deref(), Some("url"), "{url}");
    }
    fetch("http://127.0.0.1:1/".to_owned()).await.expect_error(400, "url_not_allowed");
    assert_eq!(ids(&app, &key, "").await, [file["id"].clone()]);
}
