//! Files in an S3-compatible object store, with the real program: `s3s-fs`, which checks the signature of every request, serves
//! from a folder in the test's process.

use crate::commands::doctor::doctor;
use chrono::DateTime;
use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use files::schema::{files as file_rows, uploads};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use model::Timestamp;
use ring::digest;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use store::Tx;
use store::schema::jobs;
use tempfile::TempDir;
use testkit::{Answer, Client, Key, Kind, Program, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const BUCKET: &str = "svc-files";
const SECRET: &str = "a secret of a test";

/// An object store with one bucket.
struct Bucket {
    root: TempDir,
    endpoint: String,
}

impl Bucket {
    async fn open() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(BUCKET)).unwrap();
        let mut service = S3ServiceBuilder::new(FileSystem::new(root.path()).unwrap());
        service.set_auth(SimpleAuth::from_single("test", SECRET));
        let service = service.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let service = service.clone();
                tokio::spawn(async move {
                    let builder = auto::Builder::new(TokioExecutor::new());
                    // Whoever closes the connection early has what it wants.
                    let _ = builder.serve_connection(TokioIo::new(connection), service).await;
                });
            }
        });
        Self { root, endpoint }
    }

    /// The names of the objects.
    fn objects(&self) -> Vec<String> {
        let bucket = self.root.path().join(BUCKET);
        let mut names: Vec<String> = within(&bucket)
            .iter()
            .map(|path| path.strip_prefix(&bucket).unwrap().display().to_string())
            .collect();
        names.sort();
        names
    }

    /// The parts of objects that are not whole.
    fn parts(&self) -> usize {
        let all = fs::read_dir(self.root.path()).unwrap();
        all.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains(".part-")).count()
    }
}

fn within(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(within(&path)) } else { all.push(path) }
    }
    all
}

fn sha256(bytes: &[u8]) -> String {
    digest::digest(&digest::SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// So many bytes, in which every place can be told from others nearby.
fn bytes(count: usize) -> Vec<u8> {
    (0..).map(|number: u32| format!("{number:08}\n")).flat_map(String::into_bytes).take(count).collect()
}

/// The program, and how it is asked.
struct Shelf<'a> {
    client: Client,
    key: &'a Key,
}

impl Shelf<'_> {
    async fn upload(&self, name: &str, bytes: &[u8]) -> Value {
        self.client.ask("POST", "/files").key(self.key).form(&[], (name, bytes)).send().await.expect(201)
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.client.ask("POST", path).key(self.key).json(&body).send().await
    }

    async fn put(&self, path: &str, bytes: &[u8]) -> Answer {
        self.client.ask("PUT", path).key(self.key).bytes("application/octet-stream", bytes).send().await
    }

    /// What an address of ours answers.
    async fn at(&self, method: &str, url: &Value, headers: &[(&str, &str)]) -> Answer {
        let url = url.as_str().unwrap();
        let path = url.find("/d/").or_else(|| url.find("/f/")).unwrap();
        let asking = self.client.ask_beside(method, &url[path..]);
        headers.iter().fold(asking, |asking, (name, value)| asking.header(name, value)).send().await
    }
}

/// A page that can be fetched.
async fn page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/page.txt", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let mut asked = [0; 4096];
            let _ = connection.read(&mut asked).await;
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\npage";
            let _ = connection.write_all(answer).await;
        }
    });
    url
}

/// The program with its files in the bucket.
async fn program(kind: Kind, bucket: &Bucket, secret: &str) -> Program {
    Program::new(kind, env!("CARGO_BIN_EXE_svc"))
        .await
        .with("SVC_OBJECT_STORE", format!("s3://{BUCKET}/svc/test"))
        .with("SVC_OBJECT_STORE_ENDPOINT", &bucket.endpoint)
        .with("AWS_ACCESS_KEY_ID", "test")
        .with("AWS_SECRET_ACCESS_KEY", secret)
}

/// Lets the job that deletes for good run now, as if the trash and the uploads were old. A job that is at work decides at
/// its end when it runs next, so it is waited for.
async fn sweep(program: &Program) {
    let past = Timestamp::from_millis(DateTime::UNIX_EPOCH.timestamp_millis());
    let make_due = move |tx: &mut Tx| {
        let trashed = file_rows::table.filter(file_rows::trashed_at.is_not_null());
        diesel::update(trashed).set(file_rows::trashed_at.eq(past)).execute(tx.connection())?;
        diesel::update(uploads::table).set(uploads::expires_at.eq(past)).execute(tx.connection())?;
        let job = jobs::table.filter(jobs::kind.eq("files.sweep")).filter(jobs::lease_until.is_null());
        Ok(diesel::update(job).set(jobs::run_at.eq(past)).execute(tx.connection())?)
    };
    until("the job that deletes is idle", async || {
        (program.data.db.write(make_due).await.unwrap() == 1).then_some(())
    })
    .await;
}

#[testkit::both]
async fn files_live_in_an_object_store(kind: Kind) {
    let bucket = Bucket::open().await;
    let program = program(kind, &bucket, SECRET).await;
    let key = program.key("files:read,files:write");
    let serving = program.serve().await;
    let shelf = Shelf { client: program.client(), key: &key };

    // Larger than the pieces in which files go to the store: 5 MiB.
    let large = bytes((11 << 20) + 123);
    let file = shelf.upload("large.txt", &large).await;
    assert_eq!((&file["size"], &file["sha256"]), (&json!(large.len()), &json!(sha256(&large))));
    let small = shelf.upload("small.txt", b"0123456789").await;
    assert_eq!(bucket.objects().len(), 2);
    assert!(bucket.objects().iter().all(|name| name.starts_with("svc/test/")), "{:?}", bucket.objects());

    let moved = shelf.at("GET", &small["url"], &[]).await;
    assert_eq!(moved.status, 302);
    let read = shelf.at("GET", &json!(moved.headers["location"]), &[]).await;
    assert_eq!((read.status, read.text.as_str()), (200, "0123456789"));
    let head = shelf.at("HEAD", &small["signed_url"], &[]).await;
    assert_eq!((head.status, head.headers["content-length"].as_str(), head.text.as_str()), (200, "10", ""));
    let tag = read.headers["etag"].clone();
    assert_eq!(shelf.at("GET", &small["signed_url"], &[("if-none-match", &tag)]).await.status, 304);
    for (range, from, to) in [
        ("bytes=0-0", 0, 1),
        ("bytes=5242870-5242899", 5_242_870, 5_242_900),
        ("bytes=-7", large.len() - 7, large.len()),
        ("bytes=11534000-", 11_534_000, large.len()),
    ] {
        let part = shelf.at("GET", &file["signed_url"], &[("range", range)]).await;
        assert_eq!(part.status, 206, "{range}");
        assert!(part.text.as_bytes() == &large[from..to], "{range}");
        assert_eq!(part.headers["content-range"], format!("bytes {from}-{}/{}", to - 1, large.len()));
    }
    assert!(shelf.at("GET", &file["signed_url"], &[]).await.text.as_bytes() == large);
    let beyond = shelf.at("GET", &small["signed_url"], &[("range", "bytes=10-")]).await;
    assert_eq!(beyond.status, 416);
    let forged = small["signed_url"].as_str().unwrap().replace("/d/", "/d/x");
    assert_ne!(shelf.at("GET", &json!(forged), &[]).await.status, 200);

    // The duration of a sound is read from the store, in pieces.
    let mut wav = b"RIFF".to_vec();
    wav.extend((36 + 12_000_u32).to_le_bytes());
    wav.extend(*b"WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0data");
    wav.extend(12_000_u32.to_le_bytes());
    wav.extend([128; 12_000]);
    assert_eq!(shelf.upload("note.wav", &wav).await["duration_ms"], 1500);
    serving.stop().await;
}

#[testkit::both]
async fn parts_are_joined_and_deleted_in_an_object_store(kind: Kind) {
    let bucket = Bucket::open().await;
    let program = program(kind, &bucket, SECRET).await;
    let key = program.key("files:read,files:write");
    let serving = program.serve().await;
    let shelf = Shelf { client: program.client(), key: &key };
    let whole = bytes(9 << 20);
    let pieces = [&whole[..6 << 20], &whole[6 << 20..(6 << 20) + 10], &whole[(6 << 20) + 10..]];
    let new = json!({ "name": "tour.txt", "size": whole.len(), "sha256": sha256(&whole) });
    let upload = shelf.post("/files/uploads", new).await.expect(201);
    let path = format!("/files/uploads/{}", upload["id"].as_str().unwrap());
    let refused = shelf.put(&format!("{path}/parts/1?sha256={}", sha256(b"other")), pieces[0]).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("sha256"));
    assert_eq!(bucket.objects(), Vec::<String>::new());
    for place in [2, 0, 1, 0] {
        shelf.put(&format!("{path}/parts/{}", place + 1), pieces[place]).await.expect(200);
    }
    // A part that comes again replaces the first, whose bytes wait for the job.
    assert_eq!(bucket.objects().len(), 4);
    let file = shelf.post(&format!("{path}/complete"), json!({ "parts": 3 })).await.expect(201);
    assert!(shelf.at("GET", &file["signed_url"], &[]).await.text.as_bytes() == whole);
    // An upload that is not completed, and a file in the trash.
    let other = shelf.post("/files/uploads", json!({ "name": "other.txt" })).await.expect(201);
    let path = format!("/files/uploads/{}", other["id"].as_str().unwrap());
    shelf.put(&format!("{path}/parts/1"), b"some bytes").await.expect(200);
    let (first, second) = (shelf.upload("a", b"same").await, shelf.upload("b", b"same").await);
    let deleted = shelf.client.ask("DELETE", &format!("/files/{}", first["id"])).key(&key).send().await;
    deleted.expect(200);
    assert_eq!(shelf.at("GET", &first["signed_url"], &[]).await.status, 410);
    sweep(&program).await;
    // The joined file, and the bytes that the second still has.
    until("what nobody needs is deleted", async || (bucket.objects().len() == 2).then_some(())).await;
    assert_eq!(bucket.parts(), 0);
    assert_eq!(shelf.at("GET", &second["signed_url"], &[]).await.text, "same");
    shelf.client.ask("DELETE", &format!("/files/{}", second["id"])).key(&key).send().await.expect(200);
    sweep(&program).await;
    until("the bytes go with their last file", async || (bucket.objects().len() == 1).then_some(())).await;
    serving.stop().await;
}

#[testkit::both]
async fn a_store_that_refuses_or_is_gone_is_told_and_leaves_nothing(kind: Kind) {
    let bucket = Bucket::open().await;
    let page = page().await;
    let mut program = program(kind, &bucket, SECRET).await.with("SVC_ALLOW_OUTBOUND", "127.0.0.1");
    let key = program.key("files:read,files:write");
    let serving = program.serve().await;
    let shelf = Shelf { client: program.client(), key: &key };
    let file = shelf.upload("there.txt", b"0123456789").await;
    let upload = shelf.post("/files/uploads", json!({ "name": "parts.txt" })).await.expect(201);
    let path = format!("/files/uploads/{}", upload["id"].as_str().unwrap());
    shelf.put(&format!("{path}/parts/1"), b"part").await.expect(200);
    serving.stop().await;
    let objects = bucket.objects();

    let unreachable = ("SVC_OBJECT_STORE_ENDPOINT", "http://127.0.0.1:1".to_owned());
    for (name, value) in [("AWS_SECRET_ACCESS_KEY", "another secret".to_owned()), unreachable] {
        program = program.with(name, value);
        let serving = program.serve().await;
        let shelf = Shelf { client: program.client(), key: &key };
        let sending = shelf.client.ask("POST", "/files").key(&key).header("idempotency-key", "once");
        let sent = sending.form(&[], ("a", b"x")).send().await;
        let fetched = shelf.post("/files/from-url", json!({ "url": page })).await;
        let part = shelf.put(&format!("{path}/parts/2"), b"another").await;
        let joined = shelf.post(&format!("{path}/complete"), json!({})).await;
        for answer in [&sent, &fetched, &part, &joined] {
            answer.expect_error(503, "service_unavailable");
            assert_eq!(answer.headers["retry-after"], "10");
        }
        let read = shelf.at("GET", &file["signed_url"], &[]).await;
        assert_eq!((read.status, read.headers["retry-after"].as_str()), (503, "10"), "{name}");
        // What needs no bytes works.
        assert_eq!(shelf.at("GET", &file["url"], &[]).await.status, 302);
        let listed = shelf.client.ask("GET", "/media").key(&key).send().await.expect(200);
        assert_eq!(listed.as_array().unwrap().len(), 1);
        serving.stop().await;
        let (findings, is_success) = doctor(&program, &[]).await;
        assert!(!is_success && findings["files"].0 == "fail", "{name}: {findings:?}");
        let rows =
            program.data.db.read(|read| Ok(file_rows::table.count().get_result::<i64>(read.connection())?));
        assert_eq!(rows.await.unwrap(), 1, "no file is begun and forgotten");
        assert_eq!(bucket.objects(), objects);
    }

    program =
        program.with("AWS_SECRET_ACCESS_KEY", SECRET).with("SVC_OBJECT_STORE_ENDPOINT", &bucket.endpoint);
    let (findings, _) = doctor(&program, &[]).await;
    assert_eq!(findings["files"].0, "ok", "{findings:?}");
    let serving = program.serve().await;
    let shelf = Shelf { client: program.client(), key: &key };
    let sending = shelf.client.ask("POST", "/files").key(&key).header("idempotency-key", "once");
    sending.form(&[], ("a", b"x")).send().await.expect(201);
    let joined = shelf.post(&format!("{path}/complete"), json!({})).await.expect(201);
    assert_eq!(shelf.at("GET", &joined["signed_url"], &[]).await.text, "part");
    assert_eq!(shelf.at("GET", &file["signed_url"], &[]).await.text, "0123456789");
    serving.stop().await;
}
