//! `kill -9` in the middle of an import, twice, with the real program: every row of the file is counted once and is an
//! item once.
//!
//! `SVC_TEST_IMPORT_ROWS` says how many rows, 3,000 if not set.

use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use model::Timestamp;
use records::schema::items;
use serde_json::{Value, json};
use std::fmt::Write;
use store::Db;
use store::schema::{events, jobs};
use testkit::{Kind, Program, until};
use transfer::schema::item_imports;

/// Every so many rows there is one that cannot be taken.
const WRONG: i64 = 50;

/// Rows with their own numbers, which no index keeps from being there twice.
fn file(rows: i64) -> String {
    let mut text = "number,label,amount\n".to_owned();
    for number in 1..=rows {
        let amount = if number % WRONG == 0 { "much" } else { "12.5" };
        writeln!(text, "{number},\"row {number}, of many\",{amount}").unwrap();
    }
    text
}

/// How many rows are done and whether there are more to do.
async fn progress(db: &Db) -> (i64, bool) {
    let found = db.read(|read| {
        let query = item_imports::table.select((item_imports::rows_done, item_imports::status));
        Ok(query.get_result::<(i64, String)>(read.connection())?)
    });
    let (rows, status) = found.await.unwrap();
    (rows, matches!(status.as_str(), "queued" | "validating" | "running"))
}

/// Waits until more than `rows` are done, or all of them, however long that takes as long as it goes on.
async fn beyond(db: &Db, rows: i64) -> (i64, bool) {
    let mut now = progress(db).await;
    while now.0 <= rows && now.1 {
        let before = now;
        now = until("the import goes on", async || {
            let now = progress(db).await;
            (now != before).then_some(now)
        })
        .await;
    }
    now
}

/// The lease lasts a minute of the machine's time: to the next process it looks as if that had passed.
async fn let_lease_end(db: &Db) {
    let past = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
    let ended = db.write(move |tx| {
        let imports = jobs::table.filter(jobs::kind.eq("data.import"));
        Ok(diesel::update(imports).set(jobs::lease_until.eq(past)).execute(tx.connection())?)
    });
    assert_eq!(ended.await.unwrap(), 1, "one import is not at its end");
}

/// The numbers of all items, in order.
async fn numbers(db: &Db) -> Vec<i64> {
    let data = db.read(|read| Ok(items::table.select(items::data).load::<String>(read.connection())?));
    let number = |text: &String| serde_json::from_str::<Value>(text).unwrap()["number"].as_i64().unwrap();
    let mut numbers: Vec<i64> = data.await.unwrap().iter().map(number).collect();
    numbers.sort_unstable();
    numbers
}

#[testkit::both]
async fn a_killed_import_goes_on_and_doubles_nothing(kind: Kind) {
    let rows: i64 = std::env::var("SVC_TEST_IMPORT_ROWS").map_or(3_000, |text| text.parse().unwrap());
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
    let (client, db) = (program.client(), &program.data.db);
    let key = program.key("collections:write,collections:read,items:write,items:read");

    let mut serving = program.serve().await;
    let new = json!({ "name": "Rows", "fields": [
        { "field_key": "number", "type": "integer" },
        { "field_key": "label", "type": "text" },
        { "field_key": "amount", "type": "number" },
    ] });
    let collection = client.ask("POST", "/collections").key(&key).json(&new).send().await.expect(201);
    let path = format!("/collections/{}", collection["id"]);
    let new_import = json!({ "content": file(rows) });
    let asking = client.ask("POST", &format!("{path}/items/import")).key(&key).json(&new_import);
    let import = asking.send().await.expect(201);

    let mut done = 0;
    for part in [0, rows / 3] {
        beyond(db, part.max(done)).await;
        serving.kill();
        let (now, goes_on) = progress(db).await;
        assert!(now > done && now < rows && goes_on, "{now} of {rows} rows: not in the middle of the import");
        done = now;
        let_lease_end(db).await;
        serving = program.serve().await;
    }
    while beyond(db, done).await.1 {
        done = progress(db).await.0;
    }

    let path = format!("{path}/imports/{}", import["id"].as_str().unwrap());
    let ended = client.ask("GET", &path).key(&key).send().await.expect(200);
    let failed = rows / WRONG;
    assert_eq!(ended["status"], "completed_with_errors");
    let counts =
        json!({ "created": rows - failed, "updated": 0, "unchanged": 0, "skipped": 0, "failed": failed });
    assert_eq!((&ended["counts"], &ended["processed"]["rows"]), (&counts, &json!(rows)));
    assert_eq!(ended["processed"], ended["total"]);
    let event_numbers: Vec<i64> =
        ended["errors"].as_array().unwrap().iter().map(|error| error["row"].as_i64().unwrap()).collect();
    assert_eq!(event_numbers, (1..=failed.min(1_000)).map(|place| place * WRONG).collect::<Vec<_>>());
    let expected: Vec<i64> = (1..=rows).filter(|number| number % WRONG != 0).collect();
    assert!(numbers(db).await == expected, "each row that could be taken is one item");
    let ends = db.read(|read| {
        let ends = events::table.filter(events::kind.eq("import.completed"));
        Ok(ends.count().get_result::<i64>(read.connection())?)
    });
    assert_eq!(ends.await.unwrap(), 1, "its end is told once");
    drop(serving);
}
