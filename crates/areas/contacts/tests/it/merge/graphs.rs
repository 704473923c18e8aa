//! Random contacts, merged in random order. Everything that belonged to a merged contact belongs to the survivor,
//! exactly once.
//!
//! `SVC_TEST_MERGE_GRAPHS` is the number of graphs, 3 by default.

use crate::Crm;
use crate::filters::world::Dice;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::Kind;

const CONTACTS: usize = 10;
const MERGES: usize = 10;

/// The expected state of a contact.
#[derive(Default)]
struct Person {
    id: i64,
    /// The index of its survivor.
    into: Option<usize>,
    merged: BTreeSet<i64>,
    tags: BTreeSet<String>,
    identities: BTreeSet<(String, String)>,
    segments: BTreeSet<usize>,
    notes: Vec<String>,
    proofs: Vec<String>,
    tasks: Vec<i64>,
    reminders: Vec<i64>,
    external_ids: Vec<String>,
    /// This field and those below keep one value in the survivor.
    company: Option<String>,
    file: Option<i64>,
    opted_out: bool,
}

impl Person {
    /// Takes over the state of a merged contact.
    fn take(&mut self, other: Person, prefers_other: bool) {
        self.merged.insert(other.id);
        self.merged.extend(other.merged);
        self.tags.extend(other.tags);
        self.identities.extend(other.identities);
        self.segments.extend(other.segments);
        self.notes.extend(other.notes);
        self.proofs.extend(other.proofs);
        self.tasks.extend(other.tasks);
        self.reminders.extend(other.reminders);
        self.external_ids.extend(other.external_ids);
        let keeps = |own: bool, theirs: bool| own && !(prefers_other && theirs);
        if !keeps(self.company.is_some(), other.company.is_some()) {
            self.company = other.company.or(self.company.take());
        }
        if !keeps(self.file.is_some(), other.file.is_some()) {
            self.file = other.file.or(self.file);
        }
        self.opted_out |= other.opted_out;
    }
}

/// A collection of orders whose items refer to contacts.
struct Orders {
    items: String,
    /// The id of each order, the index of its buyer and the index of the contact that it links to.
    all: Vec<(i64, usize, usize)>,
}

/// Returns the path of tasks, or of a resource below it.
fn tasks(crm: &Crm, below: &str) -> String {
    format!("/workspaces/{}/tasks{below}", crm.key.workspace)
}

fn whole(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

async fn segments(crm: &Crm, people: &[Person], count: usize) -> Vec<Value> {
    let mut made = Vec::new();
    for segment in 0..count {
        let members: Vec<i64> = people
            .iter()
            .filter(|person| person.segments.contains(&segment))
            .map(|person| person.id)
            .collect();
        let body = json!({ "name": format!("S{segment}"), "contact_ids": members });
        made.push(crm.app.post("/contacts/segments", &crm.key, body).await.expect(201)["id"].clone());
    }
    made
}

async fn person(crm: &Crm, dice: &mut Dice, number: usize) -> Person {
    let (app, key) = (&crm.app, &crm.key);
    let mut person = Person::default();
    let mut data = json!({ "$name": format!("Person {number}") });
    for (field, kind, value) in [
        ("$phone", "phone", format!("+3461234560{number}")),
        ("$email", "email", format!("p{number}@example.com")),
        ("$username", "username", format!("user{number}")),
        ("$chat_user_id", "chat_user_id", format!("chat-{number}")),
    ] {
        if dice.flip() {
            data[field] = json!(value);
            person.identities.insert((kind.to_owned(), value));
        }
    }
    person.company = dice.flip().then(|| format!("Company {number}"));
    if let Some(company) = &person.company {
        data["$company"] = json!(company);
    }
    if dice.flip() {
        let name = format!("{number}.txt");
        let uploaded = app.ask("POST", "/files").key(key).form(&[], (&name, name.as_bytes())).send().await;
        person.file = Some(whole(&uploaded.expect(201)["id"]));
        data["papers"] = json!([person.file]);
    }
    person.tags = dice.some(&["a", "b", "c", "d"]).into_iter().map(|tag| (*tag).to_owned()).collect();
    person.external_ids = dice.some(&["e"]).into_iter().map(|letter| format!("{letter}{number}")).collect();
    person.segments = dice.some(&[0, 1, 2]).into_iter().copied().collect();
    let body = json!({ "data": data, "tags": person.tags, "external_id": person.external_ids.first() });
    person.id = whole(&app.post("/contacts", key, body).await.expect(201)["id"]);
    let path = format!("/contacts/{}", person.id);
    for place in 0..dice.below(4) {
        person.notes.push(format!("note {number}-{place}"));
        app.post(&format!("{path}/notes"), key, json!({ "body": person.notes.last() })).await.expect(201);
    }
    for place in 0..dice.below(3) {
        person.opted_out = dice.flip();
        person.proofs.push(format!("proof {number}-{place}"));
        let what = if person.opted_out { "opt-out" } else { "opt-in" };
        app.post(&format!("{path}/{what}"), key, json!({ "proof": person.proofs.last() })).await.expect(200);
    }
    for place in 0..dice.below(3) {
        let task = json!({ "title": format!("task {number}-{place}"), "contact_id": person.id });
        person.tasks.push(whole(&app.post(&tasks(crm, ""), key, task).await.expect(201)["id"]));
    }
    if dice.flip() {
        let reminder = json!({ "title": "x", "due_at": "2026-02-01T00:00:00Z", "contact_id": person.id });
        person.reminders.push(whole(&app.post("/reminders", key, reminder).await.expect(201)["id"]));
    }
    person
}

async fn orders(crm: &Crm, dice: &mut Dice, people: &[Person]) -> Orders {
    let (app, key) = (&crm.app, &crm.key);
    let fields = json!([{ "label": "Title", "type": "text" }, { "label": "Buyers", "type": "contact" }]);
    let collection =
        app.post("/collections", key, json!({ "name": "Orders", "fields": fields })).await.expect(201);
    let items = format!("/collections/{}/items", collection["id"]);
    let mut all = Vec::new();
    for _ in 0..CONTACTS {
        let (buyer, other) = (dice.below(CONTACTS), dice.below(CONTACTS));
        let data = json!({ "title": "x", "buyers": [people[buyer].id, people[other].id] });
        let item = app.post(&items, key, json!({ "data": data })).await.expect(201);
        let link = json!({ "to": { "type": "contact", "id": people[other].id } });
        app.post(&format!("{items}/{}/links", item["id"]), key, link).await.expect(201);
        all.push((whole(&item["id"]), buyer, other));
    }
    Orders { items, all }
}

/// Merges one contact into another, each named by any id that it ever had, and updates the expected state.
async fn merge(crm: &Crm, dice: &mut Dice, people: &mut [Person]) {
    let (target, source) = (dice.below(CONTACTS), dice.below(CONTACTS));
    let prefers_source = dice.flip();
    let prefer = if prefers_source { "source" } else { "target" };
    let body = json!({ "source_id": people[source].id, "prefer": prefer });
    let answer = crm.app.post(&format!("/contacts/{}/merge", people[target].id), &crm.key, body).await;
    let survivor = survivor(people, target);
    // A contact that was merged before stands for its survivor.
    let source = self::survivor(people, source);
    if survivor == source {
        answer.expect_error(409, "invalid_state");
    } else {
        assert_eq!(answer.expect(200)["id"], people[survivor].id);
        let id = people[source].id;
        let other =
            std::mem::replace(&mut people[source], Person { id, into: Some(survivor), ..Person::default() });
        people[survivor].take(other, prefers_source);
    }
}

fn survivor(people: &[Person], place: usize) -> usize {
    people[place].into.map_or(place, |into| survivor(people, into))
}

fn sorted<T: Ord>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort();
    values
}

fn texts(values: &Value, key: &str) -> Vec<String> {
    sorted(values.as_array().unwrap().iter().map(|value| value[key].as_str().unwrap().to_owned()))
}

/// Checks that a survivor has the expected state.
async fn expect_whole(crm: &Crm, person: &Person) {
    let (app, key) = (&crm.app, &crm.key);
    let shown = crm.get(&json!(person.id)).await;
    let tags = sorted(shown["tags"].as_array().unwrap().iter().map(|tag| tag.as_str().unwrap().to_owned()));
    assert_eq!(tags, Vec::from_iter(person.tags.clone()));
    let identities = shown["identities"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let identities = sorted(identities.map(|one| (text(&one["kind"]), text(&one["value"]))));
    assert_eq!(identities, Vec::from_iter(person.identities.clone()));
    let merged = sorted(shown["merged_ids"].as_array().unwrap().iter().map(whole));
    assert_eq!(merged, Vec::from_iter(person.merged.clone()));
    assert_eq!(texts(&shown["consents"], "proof"), sorted(person.proofs.clone()));
    assert_eq!(shown["opted_out"], person.opted_out);
    assert_eq!(shown["data"]["$company"].as_str(), person.company.as_deref());
    assert!(shown["trashed_at"].is_null());
    let path = format!("/contacts/{}", person.id);
    let notes = app.get(&format!("{path}/notes"), key).await.expect(200);
    assert_eq!(texts(&notes, "body"), sorted(person.notes.clone()));
    assert!(notes.as_array().unwrap().iter().all(|note| note["contact_id"] == person.id));
    let files = app.get(&format!("{path}/files"), key).await.expect(200);
    let files: Vec<i64> = files.as_array().unwrap().iter().map(|file| whole(&file["id"])).collect();
    assert_eq!(files, Vec::from_iter(person.file));
    for external_id in &person.external_ids {
        let found = app.get(&format!("/contacts/external:{external_id}"), key).await.expect(200);
        assert_eq!(found["id"], person.id);
    }
    for (kind, value) in person.identities.iter().filter(|(kind, _)| kind == "phone" || kind == "email") {
        assert_eq!(app.get(&format!("/contacts/{kind}:{value}"), key).await.expect(200)["id"], person.id);
    }
    for id in &person.merged {
        assert_eq!(crm.get(&json!(id)).await, shown);
    }
    for task in &person.tasks {
        assert_eq!(app.get(&tasks(crm, &format!("/{task}")), key).await.expect(200)["contact_id"], person.id);
    }
    let reminders = app.get(&format!("/reminders?contact_id={}", person.id), key).await.expect(200);
    let reminders = sorted(reminders.as_array().unwrap().iter().map(|reminder| whole(&reminder["id"])));
    assert_eq!(reminders, sorted(person.reminders.clone()));
}

#[testkit::both]
async fn random_merges_keep_everything_once(kind: Kind) {
    let graphs: u8 = std::env::var("SVC_TEST_MERGE_GRAPHS").map_or(3, |text| text.parse().unwrap());
    for seed in 0..graphs {
        let mut dice = Dice::new(seed);
        let crm = Crm::open(kind).await;
        let papers = json!({ "field_key": "papers", "type": "file" });
        crm.app.post("/variables/contact-fields", &crm.key, papers).await.expect(201);
        let mut people = Vec::new();
        for number in 0..CONTACTS {
            people.push(person(&crm, &mut dice, number).await);
        }
        let segments = segments(&crm, &people, 3).await;
        let orders = orders(&crm, &mut dice, &people).await;
        for _ in 0..MERGES {
            merge(&crm, &mut dice, &mut people).await;
            if dice.below(4) == 0 {
                crm.app.service.jobs.run_due().await.unwrap();
            }
        }
        while crm.app.service.jobs.run_due().await.unwrap() > 0 {}

        let live: Vec<&Person> = people.iter().filter(|person| person.into.is_none()).collect();
        assert!((2..CONTACTS - 2).contains(&live.len()), "{} of {CONTACTS} remain", live.len());
        let listed = crm.app.get("/contacts?limit=100", &crm.key).await.expect(200);
        let listed = sorted(listed.as_array().unwrap().iter().map(|contact| whole(&contact["id"])));
        assert_eq!(listed, sorted(live.iter().map(|person| person.id)), "seed {seed}");
        for person in &live {
            expect_whole(&crm, person).await;
        }
        for (place, segment) in segments.iter().enumerate() {
            let inside: Vec<&&Person> =
                live.iter().filter(|person| person.segments.contains(&place)).collect();
            let found =
                crm.app.get(&format!("/contacts?limit=100&segment_id={segment}"), &crm.key).await.expect(200);
            let found = sorted(found.as_array().unwrap().iter().map(|contact| whole(&contact["id"])));
            assert_eq!(found, sorted(inside.iter().map(|person| person.id)));
            let shown = crm.app.get(&format!("/contacts/segments/{segment}"), &crm.key).await.expect(200);
            assert_eq!(shown["contact_count"], inside.len());
        }
        for (item, buyer, other) in &orders.all {
            let [buyer, other] = [buyer, other].map(|place| people[survivor(&people, *place)].id);
            let path = format!("{}/{item}", orders.items);
            let buyers = if buyer == other { json!([buyer]) } else { json!([buyer, other]) };
            let shown = crm.app.get(&path, &crm.key).await.expect(200);
            let found = sorted(shown["data"]["buyers"].as_array().unwrap().iter().map(whole));
            assert_eq!(found, sorted(buyers.as_array().unwrap().iter().map(whole)), "seed {seed}");
            let links = crm.app.get(&format!("{path}/links"), &crm.key).await.expect(200);
            let to: Vec<&Value> = links.as_array().unwrap().iter().map(|link| &link["to"]["id"]).collect();
            assert_eq!(to, [&json!(other)], "{links}");
        }
        // An identity that was taken over is still unique.
        for person in &live {
            let taken = person.identities.iter().filter(|(kind, _)| kind == "email" || kind == "phone");
            for (kind, value) in taken {
                let body = json!({ "data": { format!("${kind}"): value } });
                let answer = crm.app.post("/contacts", &crm.key, body).await;
                answer.expect_error(409, "duplicate_value");
                assert_eq!(answer.body["error"]["details"]["existing_id"], person.id);
            }
        }
    }
}
