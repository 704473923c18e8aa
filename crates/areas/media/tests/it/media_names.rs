//! Tests of file names as clients send them, and of compressed downloads.

use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const CSV: &[u8] = b"sku,price\nA-1,2.50\n";
const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x2b\xce\x2e\xd5\x29\x28\xca\x4c\x4e\xe5\x72\xd4\x35\xd4\x31\xd2\x33\x35\xe0\x02\x00\x28\x76\x02\x85\x13\x00\x00\x00";
const ZLIB: &[u8] = b"\x78\x9c\x2b\xce\x2e\xd5\x29\x28\xca\x4c\x4e\xe5\x72\xd4\x35\xd4\x31\xd2\x33\x35\xe0\x02\x00\x3e\xf2\x05\x37";
const DEFLATE: &[u8] =
    b"\x2b\xce\x2e\xd5\x29\x28\xca\x4c\x4e\xe5\x72\xd4\x35\xd4\x31\xd2\x33\x35\xe0\x02\x00";

/// Uploads a form whose file has this suffix in its `Content-Disposition`, after `form-data; name="file"`.
async fn upload(app: &TestApp, key: &Key, disposition: &[u8]) -> Answer {
    let parts: [&[u8]; 5] = [
        b"--x\r\ncontent-disposition: form-data; name=\"file\"",
        disposition,
        b"\r\n\r\n",
        CSV,
        b"\r\n--x--\r\n",
    ];
    app.ask("POST", "/files").key(key).bytes("multipart/form-data; boundary=x", &parts.concat()).send().await
}

/// Starts a server that responds once with these headers and this body. Returns its URL.
async fn serve(headers: &str, body: &[u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let head =
        format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n", body.len());
    let answer = [head.as_bytes(), body].concat();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut asked = Vec::new();
        while !asked.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut piece = [0; 1024];
            let read = stream.read(&mut piece).await.unwrap();
            asked.extend_from_slice(&piece[..read]);
        }
        stream.write_all(&answer).await.unwrap();
    });
    format!("http://{address}")
}

async fn fetch(app: &TestApp, key: &Key, url: String) -> Answer {
    app.post("/files/from-url", key, json!({ "url": url })).await
}

async fn names(app: &TestApp, key: &Key, query: &[(&str, &str)]) -> Vec<Value> {
    let query = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
    let page = app.get(&format!("/media?{query}"), key).await.expect(200);
    page.as_array().unwrap().iter().map(|file| file["name"].clone()).collect()
}

#[testkit::both]
async fn uploads_are_called_as_their_senders_call_them(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    for (disposition, name) in [
        (&b"; filename=\"plain.csv\""[..], "plain.csv"),
        (b"; filename*=utf-8''precios%20ni%C3%B1o.csv", "precios niño.csv"),
        (b"; filename=\"x.txt\"; filename*=UTF-8''ni%C3%B1o.csv", "niño.csv"),
        (b"; filename*=iso-8859-1''ni%F1o.csv", "niño.csv"),
        ("; filename=\"niño.csv\"".as_bytes(), "niño.csv"),
        (b"; filename=\"ni\xf1o.csv\"", "niño.csv"),
        (b"; filename=\"a \\\"b\\\".csv\"", "a \"b\".csv"),
        (b"; filename=\"a %22b%22.csv\"", "a \"b\".csv"),
        (b"; filename=\"C:\\x\\y.csv\"", "y.csv"),
        (b"; filename*=utf-8''..%2F..%2Fz.csv", "z.csv"),
        ("; filename=\"Menu\u{301}.csv\"".as_bytes(), "Menú.csv"),
    ] {
        let file = upload(&app, &key, disposition).await.expect(201);
        assert_eq!(
            (&file["name"], &file["mime_type"]),
            (&json!(name), &json!("text/csv")),
            "{}",
            String::from_utf8_lossy(disposition)
        );
    }
    let unnamed = upload(&app, &key, b"").await.expect(201);
    assert_eq!((&unnamed["name"], &unnamed["mime_type"]), (&json!("file"), &json!("text/plain")));
}

#[testkit::both]
async fn fetched_files_are_called_as_their_servers_call_them(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    for (headers, path, name, mime_type) in [
        (
            "content-disposition: attachment; filename*=UTF-8''precios%20ni%C3%B1o.csv\r\n",
            "/download?id=7",
            "precios niño.csv",
            "text/csv",
        ),
        (
            "content-disposition: attachment; filename=\"a.txt\"; filename*=UTF-8''b.csv\r\n",
            "/download",
            "b.csv",
            "text/csv",
        ),
        (
            "content-disposition: attachment; filename=\"prices.csv\"\r\n",
            "/x/y.txt",
            "prices.csv",
            "text/csv",
        ),
        ("content-disposition: attachment; filename=\"ni%C3%B1o.csv\"\r\n", "/", "niño.csv", "text/csv"),
        ("content-disposition: attachment\r\n", "/ni%C3%B1o.csv", "niño.csv", "text/csv"),
        ("", "/catalogue/prices.csv/", "prices.csv", "text/csv"),
        ("content-type: text/csv; charset=utf-8\r\n", "/download?id=7", "download.csv", "text/csv"),
        ("", "/download?id=7", "download", "text/plain"),
        ("", "/", "file", "text/plain"),
    ] {
        let file = fetch(&app, &key, serve(headers, CSV).await + path).await.expect(201);
        assert_eq!((&file["name"], &file["mime_type"]), (&json!(name), &json!(mime_type)), "{headers}{path}");
    }
    let url = serve("content-disposition: attachment; filename=other.csv\r\n", CSV).await;
    let named =
        app.post("/files/from-url", &key, json!({ "url": url, "name": "mine.csv" })).await.expect(201);
    assert_eq!(named["name"], "mine.csv");
}

#[testkit::both]
async fn fetched_files_are_stored_decoded(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let plain = fetch(&app, &key, serve("", CSV).await + "/prices.csv").await.expect(201);
    for (coding, body) in [
        ("gzip", GZIP),
        ("x-gzip", GZIP),
        ("deflate", ZLIB),
        ("deflate", DEFLATE),
        ("identity", CSV),
        ("utf-8", CSV),
    ] {
        let headers = format!("content-type: text/csv\r\ncontent-encoding: {coding}\r\n");
        let file = fetch(&app, &key, serve(&headers, body).await + "/prices.csv").await.expect(201);
        for field in ["name", "mime_type", "size", "sha256"] {
            assert_eq!(file[field], plain[field], "{coding} {field}");
        }
    }
    // A compressed file is stored as it is.
    let file = fetch(&app, &key, serve("content-type: application/gzip\r\n", GZIP).await + "/prices.csv.gz")
        .await
        .expect(201);
    assert_eq!((&file["mime_type"], &file["size"]), (&json!("application/gzip"), &json!(GZIP.len())));
    for (coding, body) in [("gzip", &GZIP[..20]), ("gzip", CSV), ("deflate", &ZLIB[..10]), ("br", CSV)] {
        let url = serve(&format!("content-encoding: {coding}\r\n"), body).await;
        let refused = fetch(&app, &key, url + "/prices.csv").await;
        assert_eq!(refused.expect_error(400, "fetch_failed").as_deref(), Some("url"), "{coding}");
        assert!(refused.text.contains("compressed"), "{}", refused.text);
    }
}

#[testkit::both]
async fn names_of_a_mac_are_found(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = app.bare_key().await;
    let (typed, apart) = ("Menú niño.pdf", "Menu\u{301} nin\u{303}o.pdf");
    let fields = [("folder", "Menu\u{301}s/2026"), ("tags", "nin\u{303}o")];
    let made =
        app.ask("POST", "/files").key(&key).form(&fields, (apart, b"%PDF-1.4")).send().await.expect(201);
    assert_eq!(
        (&made["name"], &made["folder"], &made["tags"]),
        (&json!(typed), &json!("Menús/2026"), &json!(["niño"]))
    );
    for query in [
        ("q", "menú n"),
        ("q", "MENU\u{301} N"),
        ("q", "nin\u{303}o.pdf"),
        ("folder", "Menús/2026"),
        ("folder", "Menu\u{301}s/2026"),
        ("tag", "niño"),
        ("tag", "nin\u{303}o"),
    ] {
        assert_eq!(names(&app, &key, &[query]).await, [json!(typed)], "{query:?}");
    }
    assert_eq!(names(&app, &key, &[("q", "menu")]).await.len(), 0);
    // Rows from before the normalization of names are found by both forms.
    app.sql(format!("UPDATE files SET name = '{apart}', folded_name = '{}', folder = 'Menu\u{301}s', tags = '[\"nin\u{303}o\"]'", apart.to_lowercase())).await;
    for query in
        [("q", "menú"), ("q", "menu\u{301}"), ("folder", "Menús"), ("tag", "niño"), ("tag", "nin\u{303}o")]
    {
        assert_eq!(names(&app, &key, &[query]).await.len(), 1, "{query:?}");
    }
    let path = format!("/files/{}", made["id"]);
    let patch = json!({ "name": apart, "folder": "nin\u{303}o", "tags": ["e\u{301}"] });
    let patched = app.patch(&path, &key, patch).await.expect(200);
    assert_eq!(
        (&patched["name"], &patched["folder"], &patched["tags"]),
        (&json!(typed), &json!("niño"), &json!(["é"]))
    );
    let upload =
        app.post("/files/uploads", &key, json!({ "name": apart, "folder": "e\u{301}" })).await.expect(201);
    assert_eq!(upload["name"], typed);
    let url = serve("", CSV).await + "/Menu%CC%81.csv";
    assert_eq!(fetch(&app, &key, url).await.expect(201)["name"], "Menú.csv");
}
