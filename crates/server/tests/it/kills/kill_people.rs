//! `kill -9` while contacts are imported, while contacts are merged, and at the moment of reminders, with the real program:
//! everything happens once, and nothing by halves.
//!
//! `SVC_TEST_CONTACT_ROWS` says how many rows are imported, 10,000 if not set, which take a debug build most of a minute;
//! `SVC_TEST_MERGE_NOTES` how many notes each merged contact has, 200 if not set; `SVC_TEST_REMINDERS` how many reminders are
//! due, 2,000 if not set.

use crate::shop::setting;
use contacts::schema::contact_notes;
use diesel::sql_types::{BigInt, Nullable};
use diesel::{ExpressionMethods, QueryDsl, QueryableByName, RunQueryDsl};
use model::Timestamp;
use records::schema::items;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use store::Db;
use store::schema::{events, jobs};
use tasks::schema::reminders;
use testkit::{Client, Key, Kind, Program, Serving, until};
use transfer::schema::item_imports;

/// Every so many rows there is one that cannot be taken, and one that changes the contact of the row before it.
const WRONG: usize = 50;
const AGAIN: usize = 40;

fn past() -> Timestamp {
    Timestamp::parse("2026-01-01T00:00:00Z").unwrap()
}

/// The leases last for a minute of the machine's time: to the next process it looks as if that had passed.
async fn let_leases_end(db: &Db, kind: &'static str) {
    let ended = db.write(move |tx| {
        let held = jobs::table.filter(jobs::kind.eq(kind)).filter(jobs::lease_until.is_not_null());
        Ok(diesel::update(held).set(jobs::lease_until.eq(past())).execute(tx.connection())?)
    });
    ended.await.unwrap();
}

async fn count_of(db: &Db, event: &'static str) -> usize {
    let count = db.read(move |read| {
        let query = events::table.filter(events::kind.eq(event)).count();
        Ok(query.get_result::<i64>(read.connection())?)
    });
    usize::try_from(count.await.unwrap()).unwrap()
}

fn email(number: usize) -> String {
    format!("c{number}@example.com")
}

fn is_wrong(number: usize) -> bool {
    number.is_multiple_of(WRONG)
}

fn is_again(number: usize) -> bool {
    number.is_multiple_of(AGAIN) && !is_wrong(number)
}

fn file(rows: usize) -> String {
    let mut text = "external_id,$name,$phone,$email,$tags\n".to_owned();
    for number in 1..=rows {
        if is_again(number) {
            writeln!(text, ",\"Again, {number}\",,{},again", email(number - 1)).unwrap();
            continue;
        }
        let phone =
            if is_wrong(number) { "12".to_owned() } else { format!("+55119{:08}", 80_000_000 + number) };
        writeln!(text, "r{number},Name {number},{phone},{},\"a,b\"", email(number)).unwrap();
    }
    text
}

/// How many rows of the import are done, and whether there are more to do.
async fn progress(db: &Db) -> (usize, bool) {
    let found = db.read(|read| {
        let query = item_imports::table.select((item_imports::rows_done, item_imports::status));
        Ok(query.get_result::<(i64, String)>(read.connection())?)
    });
    let (rows, status) = found.await.unwrap();
    (usize::try_from(rows).unwrap(), matches!(status.as_str(), "queued" | "validating" | "running"))
}

/// Waits until more than `rows` are done, or all of them, however long that takes as long as it goes on.
async fn beyond(db: &Db, rows: usize) -> (usize, bool) {
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

/// The names of all contacts by their e-mail addresses, of which none is there twice.
async fn contacts(db: &Db) -> BTreeMap<String, String> {
    let data = db.read(|read| Ok(items::table.select(items::data).load::<String>(read.connection())?));
    let mut contacts = BTreeMap::new();
    for text in data.await.unwrap() {
        let data: Value = serde_json::from_str(&text).unwrap();
        let text = |key: &str| data[key].as_str().unwrap().to_owned();
        assert_eq!(contacts.insert(text("$email"), text("$name")), None, "{data}");
    }
    contacts
}

/// Contacts that are merged in pairs: the survivors and the others.
struct Pairs<'a> {
    client: &'a Client,
    key: &'a Key,
    all: Vec<(i64, i64)>,
}

impl Pairs<'_> {
    async fn create(&self, path: &str, body: Value) -> i64 {
        let made = self.client.ask("POST", path).key(self.key).json(&body).send().await;
        made.expect(201)["id"].as_i64().unwrap()
    }

    /// Merges one pair; gives no answer where the service is killed.
    async fn merge(&self, pair: usize) -> Option<testkit::Answer> {
        let (survivor, other) = self.all[pair];
        let asking = self.client.ask("POST", &format!("/contacts/{survivor}/merge")).key(self.key);
        let once = format!("merge-{pair}");
        asking.header("idempotency-key", &once).json(&json!({ "source_id": other })).try_send().await.ok()
    }

    /// The pairs that are merged: with all their notes, or with none.
    async fn merged(&self, db: &Db, notes_each: usize) -> BTreeSet<usize> {
        #[derive(QueryableByName)]
        struct Row {
            #[diesel(sql_type = BigInt)]
            contact: i64,
            #[diesel(sql_type = Nullable<BigInt>)]
            merged_into: Option<i64>,
        }
        // One statement, because PostgreSQL shows each statement what is committed when it begins.
        let found = db.read(|read| {
            let merges = "SELECT merged_id AS contact, survivor_id AS merged_into FROM contact_merges";
            let notes = "SELECT contact_id, NULL FROM contact_notes";
            let rows = diesel::sql_query(format!("{merges} UNION ALL {notes}"));
            Ok(rows.load::<Row>(read.connection())?)
        });
        let (mut merged, mut notes) = (Vec::new(), Vec::new());
        for row in found.await.unwrap() {
            match row.merged_into {
                Some(survivor) => merged.push((survivor, row.contact)),
                None => notes.push(row.contact),
            }
        }
        assert_eq!(notes.len(), self.all.len() * 2 * notes_each, "no note is lost, and none is doubled");
        let of = |contact: i64| notes.iter().filter(|note| **note == contact).count();
        let is_merged = |(_, pair): &(usize, &(i64, i64))| merged.contains(pair);
        for pair in &self.all {
            let whole = if merged.contains(pair) { (2 * notes_each, 0) } else { (notes_each, notes_each) };
            assert_eq!((of(pair.0), of(pair.1)), whole, "{pair:?}");
        }
        self.all.iter().enumerate().filter(is_merged).map(|(place, _)| place).collect()
    }
}

/// Writes `each` notes for each contact, as they are stored.
async fn write_notes(db: &Db, contacts: Vec<i64>, each: usize) {
    let written = db.write(move |tx| {
        let (workspace, author): (i64, String) = contact_notes::table
            .select((contact_notes::workspace_id, contact_notes::author))
            .first(tx.connection())?;
        let now = tx.now();
        for contact in &contacts {
            let note = |place: usize| {
                (
                    contact_notes::workspace_id.eq(workspace),
                    contact_notes::contact_id.eq(*contact),
                    contact_notes::body.eq(format!("note {place} of {contact}")),
                    contact_notes::pinned.eq(false),
                    contact_notes::author.eq(&author),
                    contact_notes::version.eq(1),
                    contact_notes::created_at.eq(now),
                    contact_notes::updated_at.eq(now),
                )
            };
            for place in 0..each {
                diesel::insert_into(contact_notes::table).values(note(place)).execute(tx.connection())?;
            }
        }
        Ok(())
    });
    written.await.unwrap();
}

/// How often each reminder fired.
async fn fired(db: &Db) -> Vec<i64> {
    db.read(|read| Ok(reminders::table.select(reminders::fire_count).load(read.connection())?)).await.unwrap()
}

/// The program, on PostgreSQL as two processes.
async fn replicas(program: &Program, kind: Kind) -> Vec<Serving> {
    let mut all = vec![program.serve().await];
    if kind == Kind::Postgres {
        all.push(program.serve_at(&Program::address()).await);
    }
    all
}

#[testkit::both]
async fn a_killed_import_of_contacts_goes_on_and_doubles_nothing(kind: Kind) {
    let rows = setting("SVC_TEST_CONTACT_ROWS", 10_000);
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
    let (client, db) = (program.client(), &program.data.db);
    let key = program.key("contacts:write,contacts:read");
    let mut serving = program.serve().await;
    let new_import = json!({ "content": file(rows) });
    client.ask("POST", "/contacts/import").key(&key).json(&new_import).send().await.expect(201);
    let mut done = 0;
    for part in [0, rows / 3] {
        beyond(db, part.max(done)).await;
        serving.kill();
        let (now, goes_on) = progress(db).await;
        assert!(now > done && now < rows && goes_on, "{now} of {rows} rows: not in the middle of the import");
        done = now;
        let_leases_end(db, "data.import").await;
        serving = program.serve().await;
    }
    while beyond(db, done).await.1 {
        done = progress(db).await.0;
    }
    let mut expected = BTreeMap::new();
    let (mut failed, mut updated) = (0, 0);
    for number in 1..=rows {
        if is_wrong(number) {
            failed += 1;
        } else if is_again(number) {
            updated += 1;
            expected.insert(email(number - 1), format!("Again, {number}"));
        } else {
            expected.insert(email(number), format!("Name {number}"));
        }
    }
    assert!(contacts(db).await == expected, "each row that could be taken is one contact or changed one");
    let row = db.read(|read| {
        use item_imports as i;
        let counts = (
            i::status,
            i::created_count,
            i::updated_count,
            i::unchanged_count,
            i::skipped_count,
            i::failed_count,
        );
        Ok(i::table.select(counts).get_result::<(String, i64, i64, i64, i64, i64)>(read.connection())?)
    });
    let count = |number: usize| i64::try_from(number).unwrap();
    let counts =
        ("completed_with_errors".to_owned(), count(expected.len()), count(updated), 0, 0, count(failed));
    assert_eq!(row.await.unwrap(), counts);
    assert_eq!(count_of(db, "contact.import.completed").await, 1, "its end is told once");
    // Whoever was made by this import is found by each identity.
    let last = (1..=rows).rev().find(|number| !is_wrong(*number) && !is_again(*number)).unwrap();
    for name in [format!("external:r{last}"), format!("phone:+55119{:08}", 80_000_000 + last)] {
        let found = client.ask("GET", &format!("/contacts/{name}")).key(&key).send().await.expect(200);
        assert_eq!(found["data"]["$email"], email(last));
    }
    serving.stop().await;
}

#[testkit::both]
async fn a_killed_merge_happens_wholly_or_not_at_all(kind: Kind) {
    const PAIRS: usize = 24;
    let notes = setting("SVC_TEST_MERGE_NOTES", 200);
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
    let (client, db) = (program.client(), &program.data.db);
    let key = program.key("contacts:write,contacts:read,tasks:write,tasks:read");
    let serving = program.serve().await;
    let mut pairs = Pairs { client: &client, key: &key, all: Vec::new() };
    let at = format!("/workspaces/{}/tasks", key.workspace);
    let mut tasks = Vec::new();
    for pair in 0..PAIRS {
        let person =
            |who: &str| json!({ "data": { "$name": who, "$email": format!("{who}{pair}@example.com") } });
        let survivor = pairs.create("/contacts", person("a")).await;
        let other = pairs.create("/contacts", person("b")).await;
        pairs.all.push((survivor, other));
        let task = pairs.create(&at, json!({ "title": "Call", "contact_id": other })).await;
        tasks.push((task, survivor));
    }
    let first = pairs.all[0].0;
    let note = pairs.create(&format!("/contacts/{first}/notes"), json!({ "body": "x" })).await;
    let all = pairs.all.iter().flat_map(|(survivor, other)| [*survivor, *other]).collect();
    write_notes(db, all, notes).await;
    let note = client.ask("DELETE", &format!("/contacts/{first}/notes/{note}")).key(&key).send().await;
    assert_eq!(note.status, 200);

    let merging = async {
        let mut unanswered = None;
        for pair in 0..PAIRS {
            if pairs.merge(pair).await.is_none() {
                unanswered = Some(pair);
                break;
            }
        }
        unanswered
    };
    let killing = async {
        until("some are merged", async || (pairs.merged(db, notes).await.len() >= 3).then_some(())).await;
        serving.kill();
    };
    let (unanswered, ()) = tokio::join!(merging, killing);
    let merged = pairs.merged(db, notes).await;
    let unanswered = unanswered.expect("a merge is under way when the service is killed");
    assert!(
        merged.len() == unanswered || merged.len() == unanswered + 1,
        "{merged:?}, {unanswered} was unanswered"
    );

    let_leases_end(db, "data.references.replace").await;
    let serving = program.serve().await;
    for pair in 0..PAIRS {
        let answer = pairs.merge(pair).await.unwrap();
        let (survivor, other) = pairs.all[pair];
        assert_eq!(answer.expect(200)["id"], survivor);
        assert_eq!(answer.expect(200)["merged_ids"], json!([other]));
        assert_eq!(answer.headers.contains_key("idempotent-replayed"), merged.contains(&pair), "{pair}");
        let found = client.ask("GET", &format!("/contacts/email:b{pair}@example.com")).key(&key).send().await;
        assert_eq!(found.expect(200)["id"], survivor);
    }
    assert_eq!(pairs.merged(db, notes).await.len(), PAIRS);
    assert_eq!(count_of(db, "contact.merged").await, PAIRS);
    for (task, survivor) in tasks {
        until("the task follows", async || {
            let task = client.ask("GET", &format!("{at}/{task}")).key(&key).send().await.expect(200);
            (task["contact_id"] == survivor).then_some(())
        })
        .await;
    }
    serving.stop().await;
}

#[testkit::both]
async fn killed_reminders_fire_once_for_each_moment(kind: Kind) {
    let wanted = setting("SVC_TEST_REMINDERS", 2_000);
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc")).await;
    let (client, db) = (program.client(), &program.data.db);
    let key = program.key("reminders:write,reminders:read");
    let serving = program.serve().await;
    for recurrence in [Value::Null, json!({ "type": "rrule", "rule": "FREQ=DAILY" })] {
        let new = json!({ "title": "x", "due_at": "2099-01-01T09:00:00Z", "recurrence": recurrence });
        client.ask("POST", "/reminders").key(&key).json(&new).send().await.expect(201);
    }
    serving.stop().await;
    // Many like these two, whose moment came a while ago.
    let number = db.write(move |tx| {
        let columns = "workspace_id, livemode, title, note, status, due_at, timezone, recurrence, contact_id, assignee_id, \
            action, cancel_on_reply, next_slot_at, slots_done, snoozed_until, wake_at, last_fired_at, fire_count, \
            last_error, key_id, metadata, version, created_by, created_at, updated_at";
        let copy = format!("INSERT INTO reminders ({columns}) SELECT {columns} FROM reminders");
        let mut number = 2;
        while number < wanted {
            diesel::sql_query(&copy).execute(tx.connection())?;
            number *= 2;
        }
        let moment = Timestamp::parse("2026-01-02T09:00:00Z").unwrap();
        let due = (reminders::due_at.eq(moment), reminders::next_slot_at.eq(moment), reminders::wake_at.eq(moment));
        diesel::update(reminders::table).set(due).execute(tx.connection())?;
        Ok(number)
    });
    let number = number.await.unwrap();

    let mut serving = replicas(&program, kind).await;
    for part in [0, number / 2] {
        let firing = until("reminders fire", async || {
            let done = fired(db).await.iter().filter(|count| **count > 0).count();
            (done > part).then_some(done)
        });
        let seen = firing.await;
        serving.into_iter().for_each(Serving::kill);
        let done = fired(db).await.iter().filter(|count| **count > 0).count();
        assert!(done >= seen && done < number, "{done} of {number}: not in the middle");
        assert_eq!(count_of(db, "reminder.fired").await, done);
        let_leases_end(db, "reminders.fire").await;
        serving = replicas(&program, kind).await;
    }
    let all = until("all reminders have fired", async || {
        let counts = fired(db).await;
        counts.iter().all(|count| *count > 0).then_some(counts)
    });
    assert!(all.await.iter().all(|count| *count == 1), "each fires once, also for moments that were missed");
    assert_eq!(count_of(db, "reminder.fired").await, number);
    for serving in serving {
        serving.stop().await;
    }
}
