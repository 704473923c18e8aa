//! Random schemas, items, indexes, filters, orders and pages. The pages together must equal the result of a naive
//! model.

use super::{create, list, model, query};
use crate::{full, seed};
use ::model::{CollectionId, IndexId};
use model::CHOICES;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

const KINDS: [&str; 9] =
    ["text", "number", "integer", "boolean", "date", "datetime", "time", "select", "multi_select"];

/// A source of random choices that repeats for the same seed.
pub(super) struct Dice(TestRunner);

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
}

/// Returns a value of a type. There are few different values, so that ties occur.
pub(super) fn value(dice: &mut Dice, kind: &str) -> Value {
    let long = "x".repeat(300);
    let (longer, longest) = ("x".repeat(301), "x".repeat(300) + "É");
    match kind {
        "text" => json!(*dice.one(&[
            "a",
            "A",
            "b",
            "ä",
            "Ä",
            "a\u{308}",
            "é",
            "e\u{301}",
            "zebra",
            "Zebra",
            "100%",
            "a_b",
            "a\\b",
            "ﬁn",
            "fin",
            "日本",
            "T\u{308}x",
            "σ",
            "Σ",
            "null",
            "x y",
            "a,b",
            &long,
            &longer,
            &longest,
            "ς",
            "Straße",
            "strasse",
            "Álvarez",
            "Zapata",
        ])),
        "number" => json!(*dice.one(&[
            -99_999_999_999_999.9,
            -1.5,
            -1.0,
            0.0,
            0.1,
            0.25,
            1.0,
            1.5,
            2.0,
            10.0,
            1e15,
            123_456_789.125,
            1e-7
        ])),
        "integer" => {
            json!(*dice.one(&[-9_007_199_254_740_992_i64, -10, -1, 0, 1, 2, 10, 9_007_199_254_740_992]))
        }
        "boolean" => json!(dice.flip()),
        "date" => json!(*dice.one(&[
            "0001-01-01",
            "2025-12-31",
            "2026-01-01",
            "2026-01-15",
            "2026-02-28",
            "9999-12-31"
        ])),
        "datetime" => json!(*dice.one(&[
            "1969-12-31T23:59:59.999Z",
            "2026-01-01T00:00:00.000Z",
            "2026-01-01T12:30:00.001Z",
            "2026-01-15T00:00:00.000Z",
            "2030-06-01T10:00:00.000Z"
        ])),
        "time" => json!(*dice.one(&["00:00", "09:30", "09:30:01", "23:59:59"])),
        "select" => json!(*dice.one(&CHOICES)),
        _ => {
            let chosen: Vec<&str> = CHOICES.into_iter().filter(|_| dice.flip()).collect();
            json!(chosen)
        }
    }
}

/// Builds a condition on a field.
pub(super) fn condition(dice: &mut Dice, key: &str, kind: &str) -> Value {
    let ops: &[&str] = match kind {
        "text" => &["eq", "neq", "gt", "gte", "lt", "lte", "like", "ilike", "in"],
        "boolean" => &["eq", "neq", "in"],
        "multi_select" => &["eq", "neq", "in"],
        _ => &["eq", "neq", "gt", "gte", "lt", "lte", "in"],
    };
    let op = *dice.one(ops);
    let one =
        |dice: &mut Dice| if kind == "multi_select" { json!(*dice.one(&CHOICES)) } else { value(dice, kind) };
    let operand = match op {
        "eq" | "neq" if dice.below(4) == 0 => json!(""),
        "in" => (0..=dice.below(3)).map(|_| one(dice)).collect(),
        "like" | "ilike" => json!(
            *dice.one(&["a%", "A%", "%b", "%", "_", "z%a", "ä%", "100\\%", "a\\_b", "t%x", "f%", "%é%"])
        ),
        _ => one(dice),
    };
    json!({ "field": key, "op": op, "value": operand })
}

fn tree(dice: &mut Dice, fields: &[(String, &str)], levels: usize) -> Value {
    let leaf = |dice: &mut Dice| {
        let (key, kind) = dice.one(fields).clone();
        condition(dice, &key, kind)
    };
    if levels == 0 {
        return leaf(dice);
    }
    match dice.below(6) {
        0 => json!({ "or": (0..=dice.below(2)).map(|_| tree(dice, fields, levels - 1)).collect::<Value>() }),
        1 => json!({ "not": tree(dice, fields, levels - 1) }),
        _ => json!({ "and": (0..=dice.below(3)).map(|_| tree(dice, fields, levels - 1)).collect::<Value>() }),
    }
}

type SortParts = Vec<(String, String, bool)>;

fn sort(dice: &mut Dice, fields: &[(String, &str)]) -> SortParts {
    let sortable: Vec<_> = fields.iter().filter(|(_, kind)| *kind != "multi_select").collect();
    (0..dice.below(4))
        .map(|_| {
            let (key, kind) = *dice.one(&sortable);
            (key.clone(), (*kind).to_owned(), dice.flip())
        })
        .collect()
}

fn sort_text(sort: &SortParts) -> String {
    let parts: Vec<String> =
        sort.iter().map(|(key, _, desc)| format!("{}{key}", if *desc { "-" } else { "" })).collect();
    parts.join(",")
}

/// A collection with random fields and indexes.
pub(super) struct World {
    pub fields: Vec<(String, &'static str)>,
    pub collection: CollectionId,
    /// A columnar index, into which changes are merged now and then.
    columns: Option<IndexId>,
}

impl World {
    async fn merge_sometimes(&self, app: &TestApp, dice: &mut Dice) {
        if let Some(index) = self.columns.filter(|_| dice.below(3) == 0) {
            seed::merge(app, index).await;
        }
    }
}

pub(super) async fn world(app: &TestApp, key: &Key, dice: &mut Dice, columnar: bool) -> World {
    let mut fields: Vec<(String, &'static str)> = vec![("f0".to_owned(), "text")];
    for number in 1..=4 {
        fields.push((format!("f{number}"), *dice.one(&KINDS)));
    }
    let definitions: Value = fields
        .iter()
        .map(|(name, kind)| {
            let options = if kind.contains("select") { seed::choices(&CHOICES) } else { json!({}) };
            json!({ "key": name, "type": kind, "options": options })
        })
        .collect();
    let collection = seed::collection(app, key, definitions).await;
    let mut indexes: Vec<Vec<(String, bool)>> = Vec::new();
    for (name, _) in &fields {
        if dice.flip() {
            indexes.push(vec![(name.clone(), false)]);
        }
    }
    let ordered: Vec<&String> =
        fields.iter().filter(|(_, kind)| *kind != "multi_select").map(|(name, _)| name).collect();
    for _ in 0..3 {
        let mut parts: Vec<(String, bool)> = Vec::new();
        for _ in 0..=1 + dice.below(2) {
            let name = (*dice.one(&ordered)).clone();
            if parts.iter().all(|(other, _)| *other != name) {
                parts.push((name, dice.flip()));
            }
        }
        if parts.len() > 1 {
            indexes.push(parts);
        }
    }
    for parts in indexes {
        seed::index_on(app, key, collection, &parts).await;
    }
    let columns = if columnar { Some(seed::columns(app, key, collection).await) } else { None };
    World { fields, collection, columns }
}

pub(super) async fn insert(app: &TestApp, key: &Key, dice: &mut Dice, world: &World) -> Value {
    let mut data = serde_json::Map::new();
    for (name, kind) in &world.fields {
        if dice.below(4) > 0 {
            data.insert(name.clone(), value(dice, kind));
        }
    }
    if dice.below(9) == 0 {
        data.insert("f0".to_owned(), json!(""));
    }
    create(app, key, world.collection, data.into()).await
}

/// Builds a random query: the query string, and its sort and its tree.
fn question(dice: &mut Dice, world: &World) -> (Vec<(String, String)>, SortParts, Value) {
    let mut conditions = Vec::new();
    let mut pairs = Vec::new();
    for _ in 0..dice.below(3) {
        let (key, kind) = dice.one(&world.fields).clone();
        let condition = condition(dice, &key, kind);
        let op = condition["op"].as_str().unwrap();
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        // In a query string, several lists for one field would be joined to one list.
        let known = conditions.iter().any(|other: &Value| other["field"] == condition["field"]);
        match &condition["value"] {
            Value::Array(_) if known => continue,
            Value::Array(all) => {
                pairs.extend(all.iter().map(|one| (format!("filter[{key}][in][]"), text(one))));
            }
            one => pairs.push((format!("filter[{key}][{op}]"), text(one))),
        }
        conditions.push(condition);
    }
    if dice.flip() {
        let tree = tree(dice, &world.fields, 3);
        pairs.push(("filter_tree".to_owned(), tree.to_string()));
        conditions.push(tree);
    }
    let sort = sort(dice, &world.fields);
    if !sort.is_empty() {
        pairs.push(("sort".to_owned(), sort_text(&sort)));
    }
    (pairs, sort, json!({ "and": conditions }))
}

fn expected<'a>(world: &World, items: &'a [Value], sort: &SortParts, tree: &Value) -> Vec<&'a Value> {
    let kind = |name: &str| world.fields.iter().find(|(key, _)| key == name).unwrap().1.to_owned();
    let mut expected: Vec<&Value> = items.iter().filter(|item| model::fits_tree(item, tree, &kind)).collect();
    expected.sort_by(|one, other| model::order(sort, one, other));
    expected
}

pub(super) fn id(item: &Value) -> i64 {
    item["id"].as_i64().unwrap()
}

#[testkit::both]
async fn joined_pages_are_one_ordered_read(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let mut columnar = 0;
    for seed in 0..16 {
        let mut dice = Dice::new(seed);
        let world = world(&app, &key, &mut dice, seed % 2 == 0).await;
        let mut items = Vec::new();
        for _ in 0..40 {
            items.push(insert(&app, &key, &mut dice, &world).await);
            world.merge_sometimes(&app, &mut dice).await;
        }
        for number in 0..12 {
            let (pairs, sort, tree) = question(&mut dice, &world);
            let limit = 1 + dice.below(15);
            let by_id = dice.flip();
            let mut after: Option<String> = None;
            let mut joined = Vec::new();
            let mut plans = Vec::new();
            loop {
                let mut pairs = pairs.clone();
                pairs.push(("limit".to_owned(), limit.to_string()));
                pairs.extend(after.take().map(|after| ("starting_after".to_owned(), after)));
                let answer = list(&app, &key, world.collection, &query(&pairs)).await;
                let page = answer.expect(200);
                plans.push(answer.headers["x-svc-query-plan"].clone());
                joined.extend(page.as_array().unwrap().iter().map(id));
                if answer.body["has_more"] == false {
                    assert_eq!(answer.body["next_cursor"], Value::Null);
                    break;
                }
                assert_eq!(page.as_array().unwrap().len(), limit);
                after = Some(if by_id {
                    joined.last().unwrap().to_string()
                } else {
                    answer.body["next_cursor"].as_str().unwrap().to_owned()
                });
            }
            let expected: Vec<i64> = expected(&world, &items, &sort, &tree).into_iter().map(id).collect();
            columnar += plans.iter().filter(|plan| plan.starts_with("columnar")).count();
            assert_eq!(
                joined, expected,
                "seed {seed} question {number}\nfields {:?}\npairs {pairs:?}\nplans {plans:?}",
                world.fields
            );
        }
    }
    assert!(columnar > 50, "{columnar} pages came from columns");
}

#[testkit::both]
async fn items_that_stay_are_met_once_whatever_the_others_do(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    for seed in 100..108 {
        let mut dice = Dice::new(seed);
        let world = world(&app, &key, &mut dice, seed % 2 == 0).await;
        let mut items = Vec::new();
        for _ in 0..40 {
            items.push(insert(&app, &key, &mut dice, &world).await);
            world.merge_sometimes(&app, &mut dice).await;
        }
        for number in 0..4 {
            let (mut pairs, sort, tree) = question(&mut dice, &world);
            pairs.push(("limit".to_owned(), (2 + dice.below(5)).to_string()));
            let mut touched = Vec::new();
            let mut met = Vec::new();
            let mut after: Option<String> = None;
            loop {
                let mut pairs = pairs.clone();
                pairs.extend(after.take().map(|after| ("starting_after".to_owned(), after)));
                let answer = list(&app, &key, world.collection, &query(&pairs)).await;
                met.extend(answer.expect(200).as_array().unwrap().iter().map(id));
                if answer.body["has_more"] == false {
                    break;
                }
                after = answer.body["next_cursor"].as_str().map(str::to_owned);
                // The last item of the page is the one whose change is most likely to break paging.
                let last = *met.last().unwrap();
                let any = id(dice.one(&items));
                for (which, item) in [last, any].into_iter().enumerate() {
                    if touched.contains(&item) || dice.flip() {
                        continue;
                    }
                    touched.push(item);
                    let path = format!("/collections/{}/items/{item}", world.collection);
                    if which == 1 && dice.flip() {
                        app.delete(&path, &key).await.expect(200);
                    } else {
                        let (name, kind) = dice.one(&world.fields).clone();
                        let data = json!({ "data": { name: value(&mut dice, kind) } });
                        app.patch(&path, &key, data).await.expect(200);
                    }
                }
                world.merge_sometimes(&app, &mut dice).await;
                if dice.flip() {
                    touched.push(id(&insert(&app, &key, &mut dice, &world).await));
                }
            }
            let stayed: Vec<i64> = expected(&world, &items, &sort, &tree)
                .into_iter()
                .map(id)
                .filter(|item| !touched.contains(item))
                .collect();
            met.retain(|item| !touched.contains(item));
            assert_eq!(met, stayed, "seed {seed} question {number} {pairs:?} {:?}", world.fields);
            // Read the items again for the next query.
            let pairs = [("limit".to_owned(), "100".to_owned())];
            let now = list(&app, &key, world.collection, &query(&pairs)).await;
            items = now.expect(200).as_array().unwrap().clone();
            assert_eq!(now.body["has_more"], false);
        }
    }
}

/// Builds a random aggregation: its metrics and its groups.
fn aggregation(dice: &mut Dice, world: &World) -> (String, String) {
    let mut metrics = vec!["count".to_owned()];
    for (name, kind) in &world.fields {
        let functions: &[&str] = match *kind {
            "number" | "integer" => &["sum", "avg", "min", "max", "distinct"],
            "boolean" | "date" | "datetime" | "select" => &["min", "max", "distinct"],
            _ => continue,
        };
        if dice.flip() && metrics.len() < 9 {
            metrics.push(format!("{}:{name}", dice.one(functions)));
        }
    }
    let mut levels = Vec::new();
    for (name, kind) in &world.fields {
        let spans: &[&str] = match *kind {
            "boolean" | "select" | "integer" => &[""],
            "date" | "datetime" => &["", ":week", ":year"],
            _ => continue,
        };
        if dice.flip() && levels.len() < 2 {
            levels.push(format!("{name}{}", dice.one(spans)));
        }
    }
    (metrics.join(","), levels.join(","))
}

#[testkit::both]
async fn columns_and_items_have_the_same_sums(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let mut columnar = 0;
    for seed in 80..92 {
        let mut dice = Dice::new(seed);
        let world = world(&app, &key, &mut dice, true).await;
        let mut items = Vec::new();
        for _ in 0..40 {
            items.push(insert(&app, &key, &mut dice, &world).await);
            world.merge_sometimes(&app, &mut dice).await;
        }
        for number in 0..10 {
            let (mut pairs, sort, tree) = question(&mut dice, &world);
            pairs.retain(|(name, _)| name != "sort");
            let (metrics, levels) = aggregation(&mut dice, &world);
            if !levels.is_empty() {
                pairs.push(("group_by".to_owned(), levels));
            }
            // `created_by` is not in columns, so this metric makes the service read the items.
            let asked = [metrics.clone(), format!("{metrics},distinct:created_by")].map(|metrics| {
                let mut pairs = pairs.clone();
                pairs.push(("metrics".to_owned(), metrics));
                format!("/collections/{}/items/aggregate?{}", world.collection, query(&pairs))
            });
            // The client of the tests cannot send longer URLs.
            if asked[1].len() > 1_900 {
                continue;
            }
            let by_columns = app.get(&asked[0], &key).await;
            let by_rows = app.get(&asked[1], &key).await;
            let mut groups = by_rows.expect(200)["groups"].clone();
            for group in groups.as_array_mut().unwrap() {
                group["values"].as_object_mut().unwrap().remove("distinct:created_by");
            }
            assert_eq!(
                by_columns.expect(200)["groups"],
                groups,
                "seed {seed} question {number} {pairs:?} {metrics}"
            );
            let counted: i64 = groups
                .as_array()
                .unwrap()
                .iter()
                .map(|group| group["values"]["count"].as_i64().unwrap())
                .sum();
            let fitting = expected(&world, &items, &sort, &tree).len();
            assert_eq!(usize::try_from(counted).unwrap(), fitting, "seed {seed} question {number} {pairs:?}");
            columnar += usize::from(by_columns.headers["x-svc-query-plan"].starts_with("columnar"));
        }
    }
    assert!(columnar > 30, "{columnar} sums came from columns");
}

/// Returns a response as text, without `created_by`, because keys have other ids in another service.
fn explain(answer: &testkit::Answer) -> String {
    let mut body = answer.body.clone();
    for item in body["data"].as_array_mut().unwrap() {
        let item = item.as_object_mut().unwrap();
        item.remove("created_by");
        item.remove("updated_by");
    }
    format!("{body} {}", answer.headers["x-svc-query-plan"])
}

#[tokio::test]
async fn both_databases_answer_the_same_bytes() {
    let mut explained_by: Vec<Vec<String>> = Vec::new();
    for kind in [testkit::Kind::Sqlite, testkit::Kind::Postgres] {
        let app = TestApp::new(kind).await;
        let key = full(&app).await;
        let mut all = Vec::new();
        for seed in 50..54 {
            let mut dice = Dice::new(seed);
            let world = world(&app, &key, &mut dice, seed % 2 == 0).await;
            for _ in 0..30 {
                insert(&app, &key, &mut dice, &world).await;
                world.merge_sometimes(&app, &mut dice).await;
            }
            for _ in 0..20 {
                let (mut pairs, ..) = question(&mut dice, &world);
                pairs.push(("limit".to_owned(), "7".to_owned()));
                let asked = query(&pairs);
                // The client of the tests cannot send longer URLs.
                if asked.len() > 1_900 {
                    continue;
                }
                let answer = list(&app, &key, world.collection, &asked).await;
                answer.expect(200);
                all.push(format!("{pairs:?} {}", explain(&answer)));
            }
        }
        explained_by.push(all);
    }
    assert_eq!(explained_by[0], explained_by[1]);
}
