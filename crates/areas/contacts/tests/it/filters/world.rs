//! Random contacts, with values in every system field and in fields of every type.

use super::model::{Known, Sort};
use crate::Crm;
use business::team::{self, NewMember};
use chrono::Duration;
use contacts::CONTACTS;
use diesel::{ExpressionMethods, QueryDsl, RunQueryDsl};
use model::{IndexId, JsonText};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use records::shape::{self, IndexKind, Shapes};
use records::{columnar, sets};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use testkit::Kind;

pub const PEOPLE: usize = 30;

/// A source of random choices that repeats for the same seed.
pub struct Dice(TestRunner);

impl Dice {
    pub fn new(seed: u8) -> Self {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
        Self(TestRunner::new_with_rng(Config::default(), rng))
    }

    pub fn below(&mut self, most: usize) -> usize {
        (0..most).new_tree(&mut self.0).unwrap().current()
    }

    pub fn one<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    pub fn flip(&mut self) -> bool {
        any::<bool>().new_tree(&mut self.0).unwrap().current()
    }

    /// Returns a random subset, in order.
    pub fn some<'a, T>(&mut self, all: &'a [T]) -> Vec<&'a T> {
        all.iter().filter(|_| self.flip()).collect()
    }
}

/// A field and values that callers may write to it.
pub struct Pool {
    pub known: Known,
    pub values: Vec<Value>,
}

/// The contacts of a workspace, and the known fields.
pub struct World {
    pub crm: Crm,
    /// The fields that callers set.
    pub pools: Vec<Pool>,
    /// All fields, including those that the service sets.
    pub all: Vec<Known>,
    pub members: Vec<i64>,
    pub contacts: Vec<Value>,
}

pub fn listed(value: Value) -> Vec<Value> {
    value.as_array().unwrap().clone()
}

/// Returns the fields of the workspace, one of each type: type, options, sort and values.
fn own_fields(
    friends: &Value,
    members: &[i64],
    file: &Value,
) -> Vec<(&'static str, Value, Sort, Vec<Value>)> {
    let choices = json!({ "choices": [
        { "label": "Größe Ä", "key": "big" }, { "label": "小", "key": "small" }, { "label": "5", "key": "five" },
        { "label": "True", "key": "true" },
    ] });
    let text = || {
        listed(json!([
            "",
            "a",
            "A",
            "ä",
            "a\u{308}",
            "Ägypten 日本",
            "5",
            "5.0",
            "true",
            "null",
            "a b ",
            "100%",
            "a_b",
            "👩‍👩‍👧",
            "ﬁn",
            "2026-01-15",
        ]))
    };
    let number = || listed(json!([-1.5, -1, 0, 0.1, 1, 5, 5.5, 100, 123456789.125, 1e15]));
    let whole = || listed(json!([-10, -1, 0, 1, 5, 42, 1_000_000_000]));
    let plain = || json!({});
    vec![
        ("text", plain(), Sort::Text, text()),
        ("long_text", plain(), Sort::Text, text()),
        ("email", plain(), Sort::Text, listed(json!(["a@example.com", "A@example.com", "b@example.com"]))),
        (
            "url",
            plain(),
            Sort::Text,
            listed(json!(["https://example.com/a", "https://example.com/A", "https://b.example"])),
        ),
        ("phone", plain(), Sort::Text, listed(json!(["+34612345678", "+5511987654321", "+5511987654322"]))),
        ("number", json!({ "precision": 3 }), Sort::Number, number()),
        ("currency", json!({ "currency": "EUR" }), Sort::Number, listed(json!([0.5, 5, 99.99]))),
        ("percent", plain(), Sort::Number, listed(json!([0, 12.5, 100]))),
        ("rating", plain(), Sort::Number, listed(json!([1, 3, 5]))),
        ("duration", plain(), Sort::Number, listed(json!([0, 60, 3600]))),
        ("integer", plain(), Sort::Number, whole()),
        ("boolean", plain(), Sort::Boolean, listed(json!([true, false]))),
        (
            "date",
            plain(),
            Sort::Date,
            listed(json!(["0001-01-01", "1990-02-28", "2026-01-15", "9999-12-31"])),
        ),
        (
            "datetime",
            plain(),
            Sort::Datetime,
            listed(json!([
                "1969-12-31T23:59:59.999Z",
                "2026-01-15T00:00:00.000Z",
                "2026-01-15T12:30:00.001Z",
                "2026-06-01T00:00:00+02:00",
            ])),
        ),
        ("time", plain(), Sort::Time, listed(json!(["00:00", "09:30", "09:30:01", "23:59:59"]))),
        ("select", choices.clone(), Sort::Select, listed(json!(["big", "small", "five", "true"]))),
        (
            "multi_select",
            choices,
            Sort::Words,
            listed(json!([["big"], ["big", "small"], ["five", "true"], []])),
        ),
        ("tags", plain(), Sort::Words, listed(json!([["é", "b"], ["e\u{301}"], ["C", "5"], []]))),
        ("contact", plain(), Sort::Ids, vec![json!([friends[0]]), friends.clone(), json!([])]),
        ("user", plain(), Sort::Ids, vec![json!([members[0]]), json!(members), json!([])]),
        ("file", plain(), Sort::Ids, vec![json!([file]), json!([])]),
        (
            "json",
            plain(),
            Sort::Json,
            listed(json!([
                { "a": [1, null, "ü"] }, [1, "x", true, { "a": 1 }], [["x"]], 5, "5", 5.5, "x", "ü y", true, "true", [5, "b"],
            ])),
        ),
    ]
}

/// Returns the system fields that callers set, except identities, which must be unique.
fn system_fields() -> Vec<(&'static str, Sort, Vec<Value>)> {
    vec![
        (
            "$avatar_url",
            Sort::Text,
            listed(json!(["https://example.com/a.png", "https://example.com/B.png"])),
        ),
        ("$language", Sort::Text, listed(json!(["en", "pt-BR", "PT-br"]))),
        ("$country", Sort::Text, listed(json!(["BR", "ES", "de"]))),
        ("$timezone", Sort::Text, listed(json!(["Europe/Madrid", "America/Sao_Paulo"]))),
        ("$source", Sort::Select, listed(json!(["website", "referral", "other"]))),
        ("$stage", Sort::Select, listed(json!(["new", "won", "lost"]))),
        (
            "$company",
            Sort::Text,
            listed(json!(["Acme", "acme", "Acme ", "ACME S.A.", "Größe", "Gro\u{308}ße", "日本"])),
        ),
        ("$birthday", Sort::Date, listed(json!(["1990-02-03", "2000-02-29", "1899-12-31"]))),
        ("$tags", Sort::Words, Vec::new()),
    ]
}

impl World {
    pub async fn new(kind: Kind, dice: &mut Dice, columnar: bool) -> Self {
        let crm = Crm::open(kind).await;
        let mut members = Vec::new();
        for name in ["Marta", "Nuno"] {
            let workspace = crm.key.workspace;
            let new =
                NewMember { name: name.into(), email: format!("{name}@example.com"), ..NewMember::default() };
            members.push(
                crm.app.db().write(move |tx| team::add(tx, workspace, new.clone())).await.unwrap().id.0,
            );
        }
        let friends = json!([
            crm.create(json!({ "$name": "F" })).await["id"],
            crm.create(json!({ "$name": "G" })).await["id"]
        ]);
        let uploaded =
            crm.app.ask("POST", "/files").key(&crm.key).form(&[], ("a.txt", b"hello")).send().await;
        let file = uploaded.expect(201)["id"].clone();
        let described = crm.app.get("/contacts/system-fields", &crm.key).await.expect(200);
        let choices = |field: &Value| -> Vec<(String, String)> {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let all = field["choices"].as_array().or_else(|| field["options"]["choices"].as_array());
            all.into_iter().flatten().map(|choice| (text(&choice["key"]), text(&choice["label"]))).collect()
        };
        let known = |key: &str, sort: Sort| {
            let field = described.as_array().unwrap().iter().find(|field| field["key"] == key);
            Known { choices: choices(field.unwrap()), ..Known::new(key, sort) }
        };
        let mut pools: Vec<Pool> = system_fields()
            .into_iter()
            .map(|(key, sort, values)| Pool { known: known(key, sort), values })
            .collect();
        for (kind, options, sort, values) in own_fields(&friends, &members, &file) {
            let key = format!("f_{kind}");
            let body = json!({ "field_key": key, "label": kind, "type": kind, "options": options });
            let made = crm.app.post("/variables/contact-fields", &crm.key, body).await.expect(201);
            pools.push(Pool { known: Known { choices: choices(&made), ..Known::new(key, sort) }, values });
        }
        let numbered = json!({ "field_key": "f_auto_number", "type": "auto_number" });
        crm.app.post("/variables/contact-fields", &crm.key, numbered).await.expect(201);
        let mut all: Vec<Known> = pools.iter().map(|pool| pool.known.clone()).collect();
        for key in ["$name", "$phone", "$email", "$username", "$chat_user_id"] {
            all.push(known(key, Sort::Text));
        }
        for (key, sort) in [
            ("$created_via", Sort::Select),
            ("$status", Sort::Select),
            ("$assignee", Sort::Ids),
            ("$autopilot", Sort::Boolean),
            ("$opted_out", Sort::Boolean),
            ("$paused_until", Sort::Datetime),
        ] {
            all.push(known(key, sort));
        }
        // Fails if a new system field is missing here.
        for field in described.as_array().unwrap() {
            assert!(all.iter().any(|known| field["key"] == *known.key), "{field}");
        }
        for (key, sort) in [
            ("f_auto_number", Sort::Number),
            ("id", Sort::Number),
            ("version", Sort::Number),
            ("created_at", Sort::Datetime),
            ("updated_at", Sort::Datetime),
            ("created_by", Sort::Text),
            ("external_key", Sort::Text),
            ("external_id", Sort::Text),
        ] {
            all.push(Known::new(key, sort));
        }
        // Members of a contact outside of `data`, and the names of system fields without `$`.
        for bare in
            ["name", "tags", "status", "assignee", "autopilot", "paused_until", "opted_out", "phone", "stage"]
        {
            let field = all.iter().find(|known| known.key.strip_prefix('$') == Some(bare)).unwrap();
            all.push(Known { key: bare.to_owned(), ..field.clone() });
        }
        let mut world = Self { crm, pools, all, members, contacts: Vec::new() };
        let columns = if columnar { Some(world.make_columns().await) } else { None };
        for number in 0..PEOPLE {
            world.add(dice, number).await;
            if let Some(index) = columns.filter(|_| dice.below(8) == 0) {
                world.merge_columns(index).await;
            }
        }
        world.read().await;
        world
    }

    /// Creates a columnar index over all fields, into which the existing contacts have still to be written.
    async fn make_columns(&self) -> IndexId {
        use records::schema::{collection_indexes as i, item_changes, items};
        let workspace = self.crm.key.workspace;
        let made = self.crm.app.db().write(move |tx| {
            let shapes = Shapes::new([&CONTACTS]);
            let shape = sets::for_read(tx, &shapes, workspace, &CONTACTS)?;
            let now = tx.now();
            let index: IndexId = diesel::insert_into(i::table)
                .values((
                    i::workspace_id.eq(workspace),
                    i::collection_id.eq(shape.collection),
                    i::kind.eq(IndexKind::Columnar.as_str()),
                    i::parts.eq(JsonText::of(&columnar::parts(&shape))),
                    i::origin.eq("auto"),
                    i::status.eq("ready"),
                    i::built_to.eq(0),
                    i::rows_done.eq(0),
                    i::rows_total.eq(0),
                    i::created_at.eq(now),
                    i::updated_at.eq(now),
                ))
                .returning(i::id)
                .get_result(tx.connection())?;
            let there: Vec<i64> = items::table
                .filter(items::collection_id.eq(shape.collection))
                .select(items::id)
                .load(tx.connection())?;
            for id in there {
                let change = (item_changes::index_id.eq(index), item_changes::item_id.eq(id));
                diesel::insert_into(item_changes::table).values(change).execute(tx.connection())?;
            }
            shape::bump(tx, shape.collection)?;
            Ok(index)
        });
        made.await.unwrap()
    }

    /// Merges the changes so far into segments, which are small.
    async fn merge_columns(&self, index: IndexId) {
        let shapes = Arc::new(Shapes::new([&CONTACTS]));
        while columnar::merge(self.crm.app.db(), &shapes, index, 7).await.unwrap() {}
    }

    fn random_data(&self, dice: &mut Dice) -> Map<String, Value> {
        let mut data = Map::new();
        for pool in self.pools.iter().filter(|pool| !pool.values.is_empty()) {
            if dice.below(3) > 0 {
                data.insert(pool.known.key.clone(), dice.one(&pool.values).clone());
            }
        }
        data
    }

    /// Creates a contact, and often changes it by other operations.
    async fn add(&self, dice: &mut Dice, number: usize) {
        let (app, key) = (&self.crm.app, &self.crm.key);
        let mut data = self.random_data(dice);
        data.insert(
            "$name".to_owned(),
            json!(*dice.one(&["Ana", "ana", "Ana ", "Żółw", "日本", "x%y", "A\u{301}na"])),
        );
        if dice.flip() {
            data.insert("$phone".to_owned(), json!(format!("+34 612 34 {number:04}")));
        }
        for (field, value) in [
            ("$email", format!("{}{number}@Example.com", dice.one(&["a", "A", "b.c"]))),
            ("$username", format!("{}{number}", dice.one(&["ünal", "u\u{308}nal", "Zoé"]))),
            ("$chat_user_id", format!("U{number:03}")),
        ] {
            if dice.flip() {
                data.insert(field.to_owned(), value.into());
            }
        }
        let tags = dice.some(&["vip", "a b", "ÉTÉ", "e\u{301}te\u{301}", "5", "true"]);
        let external_id = dice.flip().then(|| format!("{}{number}", dice.one(&["k", "K", "é"])));
        let body = json!({ "data": data, "tags": tags, "external_id": external_id });
        let made = app.post("/contacts", key, body).await.expect(201);
        let path = format!("/contacts/{}", made["id"]);
        if dice.below(4) == 0 {
            app.patch(&path, key, json!({ "status": "blocked" })).await.expect(200);
        }
        if dice.below(3) == 0 {
            let member = *dice.one(&self.members);
            app.put(&format!("{path}/assignment"), key, json!({ "assignee_id": member })).await.expect(200);
        }
        if dice.below(3) == 0 {
            let until = dice.flip().then_some("2026-03-01T10:00:00+01:00");
            let pause = json!({ "enabled": false, "paused_until": until });
            app.put(&format!("{path}/autopilot"), key, pause).await.expect(200);
        }
        if dice.below(4) == 0 {
            app.post(&format!("{path}/opt-out"), key, json!({})).await.expect(200);
        }
        app.data.clock.advance(Duration::milliseconds(1_001 * i64::try_from(dice.below(20)).unwrap()));
        if dice.flip() {
            let mut data = self.random_data(dice);
            for pool in &self.pools {
                if pool.known.key != "$tags" && dice.below(8) == 0 {
                    data.insert(pool.known.key.clone(), Value::Null);
                }
            }
            app.patch(&path, key, json!({ "data": data })).await.expect(200);
        }
    }

    async fn read(&mut self) {
        let answer = self.crm.app.get("/contacts?limit=100", &self.crm.key).await;
        assert_eq!(answer.body["has_more"], false);
        self.contacts = listed(answer.expect(200));
        assert_eq!(self.contacts.len(), PEOPLE + 2);
    }
}
