//! `kill -9` while parts of a file are sent and while they are joined, with the real program: no part that was acknowledged
//! is lost, there is one file, and nothing of what did not end stays.
//!
//! `SVC_TEST_UPLOAD_PARTS` says how many parts, 12 if not set; each has 5 MiB.

use crate::shop::setting;
use auth::Seal;
use auth::schema::idempotency_keys;
use chrono::Duration;
use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use files::Files;
use files::schema::{files as file_rows, reserved_objects, upload_parts};
use futures::future::join_all;
use model::Timestamp;
use ring::digest;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use store::Db;
use testkit::{Answer, Key, Kind, Program, until};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

const PART: usize = 5 << 20;

/// The bytes of a part, unlike those of any other.
fn part(number: usize) -> Vec<u8> {
    let text = format!("part {number} of a long file\n");
    text.bytes().cycle().take(PART).collect()
}

fn sha256(bytes: &[u8]) -> String {
    digest::digest(&digest::SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The parts that are acknowledged.
async fn kept(db: &Db) -> Vec<usize> {
    let numbers = db.read(|read| {
        let numbers = upload_parts::table.select(upload_parts::number).order(upload_parts::number);
        Ok(numbers.load::<i64>(read.connection())?)
    });
    numbers.await.unwrap().into_iter().map(|number| usize::try_from(number).unwrap()).collect()
}

/// The files in a folder and in those within it.
fn stored(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(stored(&path)) } else { all.push(path) }
    }
    all
}

/// Begins to send a part, and sends half of it.
async fn send_half(listen: &str, path: &str, key: &Key, number: usize) -> TcpStream {
    let mut connection = TcpStream::connect(listen).await.unwrap();
    let head = format!(
        "PUT /api/v1{path}/parts/{number} HTTP/1.1\r\nhost: {listen}\r\nauthorization: Bearer {}\r\n\
         content-type: application/octet-stream\r\ncontent-length: {PART}\r\n\r\n",
        key.secret
    );
    connection.write_all(head.as_bytes()).await.unwrap();
    connection.write_all(&part(number)[..PART / 2]).await.unwrap();
    connection
}

/// The lease of the claim lasts for half a minute of the machine's time: to the next process it looks as if that had passed.
async fn let_claims_end(db: &Db) {
    let past = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let ended = db.write(move |tx| {
        let claims = diesel::update(idempotency_keys::table).set(idempotency_keys::lease_until.eq(past));
        Ok(claims.execute(tx.connection())?)
    });
    ended.await.unwrap();
}

#[testkit::both]
async fn a_killed_upload_goes_on_and_leaves_one_file(kind: Kind) {
    let parts = setting("SVC_TEST_UPLOAD_PARTS", 12);
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
    let (client, db) = (program.client(), &program.data.db);
    let key = program.key("files:write,files:read");
    let whole: Vec<u8> = (1..=parts).flat_map(part).collect();
    let mut serving = program.serve().await;
    let new = json!({ "name": "tour.txt", "size": whole.len(), "sha256": sha256(&whole) });
    let upload = client.ask("POST", "/files/uploads").key(&key).json(&new).send().await.expect(201);
    let path = format!("/files/uploads/{}", upload["id"].as_str().unwrap());
    let send = async |number: usize| -> Option<Answer> {
        let asking = client.ask("PUT", &format!("{path}/parts/{number}")).key(&key);
        asking.bytes("application/octet-stream", &part(number)).try_send().await.ok()
    };
    let complete = async |once: &str| -> Option<Answer> {
        let asking = client.ask("POST", &format!("{path}/complete")).key(&key);
        asking.header("idempotency-key", once).json(&json!({ "parts": parts })).try_send().await.ok()
    };
    let folder = program.data_dir().join("files");

    // Killed when some parts are there, and one has come by half.
    let half = send_half(&program.listen, &path, &key, parts).await;
    until("half a part has come", async || (!stored(&folder).is_empty()).then_some(())).await;
    let killing = async {
        until("parts are stored", async || (!kept(db).await.is_empty()).then_some(())).await;
        serving.kill();
    };
    let (answers, ()) = tokio::join!(join_all((1..parts).map(&send)), killing);
    drop(half);
    let acknowledged: Vec<usize> =
        (1..=parts).zip(&answers).filter(|(_, answer)| answer.is_some()).map(|(number, _)| number).collect();
    answers.iter().flatten().for_each(|answer| assert_eq!(answer.status, 200, "{}", answer.text));
    let there = kept(db).await;
    assert!(acknowledged.iter().all(|number| there.contains(number)), "{acknowledged:?}, {there:?}");
    assert!(there.len() < parts, "all parts were there before the kill");
    serving = program.serve().await;
    let incomplete = complete("early").await.unwrap();
    incomplete.expect_error(409, "upload_incomplete");
    let missing: Vec<usize> = (1..=parts).filter(|number| !there.contains(number)).collect();
    assert_eq!(incomplete.body["error"]["details"]["missing_parts"], json!(missing));
    for answer in join_all(missing.into_iter().map(&send)).await {
        answer.unwrap().expect(200);
    }

    // Killed when the parts are being joined.
    let reserved = async || {
        let keys = reserved_objects::table.select(reserved_objects::storage_key);
        db.read(move |read| Ok(keys.load::<String>(read.connection())?)).await.unwrap().len()
    };
    let killing = async {
        until("the parts are joined", async || (reserved().await > 0).then_some(())).await;
        serving.kill();
    };
    let (unanswered, ()) = tokio::join!(complete("once"), killing);
    assert!(unanswered.is_none(), "completed before the kill");
    let_claims_end(db).await;
    serving = program.serve().await;
    let file = complete("once").await.unwrap().expect(201);
    assert_eq!((&file["size"], &file["sha256"]), (&json!(whole.len()), &json!(sha256(&whole))));
    let again = client.ask("POST", &format!("{path}/complete")).key(&key).send().await;
    assert_eq!(again.expect(201)["id"], file["id"]);
    let link = file["signed_url"].as_str().unwrap();
    let read = client.ask_beside("GET", &link[link.find("/d/").unwrap()..]).send().await;
    assert!(read.text.as_bytes() == whole, "other bytes came back");
    let listed = client.ask("GET", "/media").key(&key).send().await.expect(200);
    assert_eq!(listed.as_array().unwrap().len(), 1);
    serving.stop().await;

    // Two years later nothing is left but the one file.
    assert!(stored(&folder).len() > parts + 1, "the parts, and what was written by half");
    let objects = files::objects_in(&folder).unwrap();
    let storage =
        Files::new(objects, Arc::new(Seal::new(&[7; 32]).unwrap()), "https://svc.example".to_owned());
    program.data.clock.advance(Duration::days(730));
    files::sweep(db, &storage).await.unwrap();
    let rows = file_rows::table.select(file_rows::status);
    let rows = db.read(move |read| Ok(rows.load::<String>(read.connection())?)).await.unwrap();
    assert_eq!((rows, reserved().await), (vec!["ready".to_owned()], 0));
    let left = stored(&folder);
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(fs::read(&left[0]).unwrap() == whole);
}
