//! Texts: order to the last letter, and comparison without case.

use super::{create, ids, list, query};
use crate::{full, seed};
use model::CollectionId;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use std::cmp::Ordering;
use testkit::{Key, Kind, TestApp};

/// Returns prefixes that are longer than the part of a text in an index.
fn beginnings() -> [String; 3] {
    [format!("https://example.com/{}", "p".repeat(250)), "語".repeat(90), "é".repeat(140)]
}

/// The way in which a query finds items.
#[derive(Debug, Clone, Copy, PartialEq)]
enum By {
    Scan,
    Index,
    Composite,
    Columns,
}

const WAYS: [By; 4] = [By::Scan, By::Index, By::Composite, By::Columns];

/// A collection of items with these texts.
struct Shelf<'a> {
    app: &'a TestApp,
    key: &'a Key,
    collection: CollectionId,
    by: By,
}

impl<'a> Shelf<'a> {
    async fn of(app: &'a TestApp, key: &'a Key, by: By, texts: &[String]) -> Self {
        let fields = json!([{ "key": "t", "type": "text" }, { "key": "n", "type": "number" }]);
        let collection = seed::collection(app, key, fields).await;
        match by {
            By::Scan => {}
            By::Index => drop(seed::index_on(app, key, collection, &[("t".to_owned(), false)]).await),
            By::Composite => {
                let parts = [("t".to_owned(), true), ("n".to_owned(), false)];
                seed::index_on(app, key, collection, &parts).await;
            }
            By::Columns => {
                let index = seed::columns(app, key, collection).await;
                for (place, text) in texts.iter().enumerate() {
                    create(app, key, collection, json!({ "t": text, "n": place % 3 })).await;
                    // Some changes stay pending, outside of any segment.
                    if place == texts.len() / 2 {
                        seed::merge(app, index).await;
                    }
                }
                return Self { app, key, collection, by };
            }
        }
        for (place, text) in texts.iter().enumerate() {
            create(app, key, collection, json!({ "t": text, "n": place % 3 })).await;
        }
        Self { app, key, collection, by }
    }

    /// Returns the texts of all pages, in order.
    async fn pages(&self, pairs: &[(&str, &str)], limit: usize) -> Vec<String> {
        let mut found = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let mut all: Vec<(String, String)> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            all.push(("limit".to_owned(), limit.to_string()));
            all.extend(after.take().map(|after| ("starting_after".to_owned(), after)));
            let answer = list(self.app, self.key, self.collection, &query(&all)).await;
            for item in answer.expect(200).as_array().unwrap() {
                found.push(item["data"]["t"].as_str().unwrap().to_owned());
            }
            match answer.body["next_cursor"].as_str() {
                Some(next) => {
                    assert!(next.len() < 1_000, "a cursor of {} letters", next.len());
                    after = Some(next.to_owned());
                }
                None => return found,
            }
        }
    }
}

/// Returns the last letter of each text.
fn ends(texts: &[String]) -> String {
    texts.iter().filter_map(|text| text.chars().next_back()).collect()
}

#[testkit::both]
async fn long_texts_are_in_order_to_their_ends(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    for beginning in beginnings() {
        let texts: Vec<String> = "hcfaegbd".chars().map(|end| format!("{beginning}{end}")).collect();
        for by in WAYS {
            let shelf = Shelf::of(&app, &key, by, &texts).await;
            for limit in [1, 3, 100] {
                assert_eq!(ends(&shelf.pages(&[("sort", "t")], limit).await), "abcdefgh", "{by:?} {limit}");
                assert_eq!(ends(&shelf.pages(&[("sort", "-t")], limit).await), "hgfedcba", "{by:?} {limit}");
                assert_eq!(
                    ends(&shelf.pages(&[("sort", "t,-n")], limit).await),
                    "abcdefgh",
                    "{by:?} {limit}"
                );
                assert_eq!(
                    ends(&shelf.pages(&[("sort", "-t,n")], limit).await),
                    "hgfedcba",
                    "{by:?} {limit}"
                );
            }
            let bound = format!("{beginning}d");
            for (op, expected) in
                [("gt", "efgh"), ("gte", "defgh"), ("lt", "abc"), ("lte", "abcd"), ("eq", "d")]
            {
                let filter = format!("filter[t][{op}]");
                let pairs = [(filter.as_str(), bound.as_str()), ("sort", "t")];
                assert_eq!(ends(&shelf.pages(&pairs, 2).await), expected, "{by:?} {op}");
                let count = query(&[(filter, bound.clone())]);
                let path = format!(
                    "/collections/{}/items/aggregate?metrics=count,min:t,max:t&{count}",
                    shelf.collection
                );
                let values = app.get(&path, &key).await.expect(200)["groups"][0]["values"].clone();
                let end = |end: Option<char>| json!(format!("{beginning}{}", end.unwrap()));
                assert_eq!(values["count"], json!(expected.len()), "{by:?} {op}");
                assert_eq!(values["min:t"], end(expected.chars().next()), "{by:?} {op}");
                assert_eq!(values["max:t"], end(expected.chars().next_back()), "{by:?} {op}");
                let count =
                    format!("/collections/{}/items/aggregate?metrics=count&{count}", shelf.collection);
                let counted = app.get(&count, &key).await.expect(200)["groups"][0]["values"]["count"].clone();
                assert_eq!(counted, json!(expected.len()), "{by:?} {op}");
            }
            let groups =
                format!("/collections/{}/items/aggregate?metrics=count&group_by=t", shelf.collection);
            let groups = app.get(&groups, &key).await.expect(200)["groups"].clone();
            let texts: Vec<String> = groups
                .as_array()
                .unwrap()
                .iter()
                .map(|group| group["group"]["t"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(ends(&texts), "abcdefgh");
        }
    }
}

#[testkit::both]
async fn pages_go_on_behind_texts_that_no_cursor_holds(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let fields = json!([{ "key": "t", "type": "long_text" }]);
    let collection = seed::collection(&app, &key, fields).await;
    let beginning = "Ähnlich ".repeat(300);
    for end in "dbca".chars() {
        create(&app, &key, collection, json!({ "t": format!("{beginning}{end}") })).await;
    }
    for (sort, expected) in [("t", "abcd"), ("-t", "dcba")] {
        let shelf = Shelf { app: &app, key: &key, collection, by: By::Scan };
        assert_eq!(ends(&shelf.pages(&[("sort", sort)], 1).await), expected);
        // A deleted item no longer tells the position of its cursor, but no other item may be missed.
        let answer = list(&app, &key, collection, &format!("sort={sort}&limit=2")).await;
        let (first, cursor) = (ids(&answer), answer.body["next_cursor"].as_str().unwrap().to_owned());
        app.delete(&format!("/collections/{collection}/items/{}", first[1]), &key).await.expect(200);
        let answer = list(&app, &key, collection, &format!("sort={sort}&starting_after={cursor}")).await;
        let rest: Vec<String> = answer
            .expect(200)
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["data"]["t"].as_str().unwrap().to_owned())
            .collect();
        assert!(ends(&rest).ends_with(&expected[2..]), "{}", ends(&rest));
        app.post(&format!("/collections/{collection}/items/{}/restore", first[1]), &key, json!({}))
            .await
            .expect(200);
    }
}

#[testkit::both]
async fn random_texts_are_in_the_order_of_a_naive_sort(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let mut runner = TestRunner::deterministic();
    let text = (0..4_usize, "[aAáÁbnñσςΣαάßS -]{0,4}");
    for round in 0..3 {
        let many = prop::collection::vec(text.clone(), 24).new_tree(&mut runner).unwrap().current();
        let beginnings = beginnings();
        let texts: Vec<String> = many
            .into_iter()
            .map(|(place, end)| format!("{}{end}x", beginnings.get(place).map_or("", String::as_str)))
            .collect();
        for by in WAYS {
            let shelf = Shelf::of(&app, &key, by, &texts).await;
            let mut expected: Vec<(usize, String)> = texts.iter().cloned().enumerate().collect();
            expected.sort_by(|one, other| fields::text::order(&one.1, &other.1).then(one.0.cmp(&other.0)));
            let bound = expected[7].1.clone();
            let sorted: Vec<String> = expected.into_iter().map(|(_, text)| text).collect();
            assert_eq!(shelf.pages(&[("sort", "t")], 5).await, sorted, "{round} {by:?}");
            let behind: Vec<String> = sorted
                .iter()
                .filter(|text| fields::text::order(text, &bound) == Ordering::Greater)
                .cloned()
                .collect();
            let pairs = [("filter[t][gt]", bound.as_str()), ("sort", "t")];
            assert_eq!(shelf.pages(&pairs, 4).await, behind, "{round} {by:?}");
            let mut turned = sorted.clone();
            turned.sort_by(|one, other| fields::text::order(other, one));
            assert_eq!(shelf.pages(&[("sort", "-t")], 7).await, turned, "{round} {:?}", shelf.by);
        }
    }
}

#[testkit::both]
async fn accents_decide_only_between_equal_letters(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let names = ["Zapata", "Álvarez", "Núñez", "Ñáñez", "alvarez", "ÁLVAREZ", "Alvarado"].map(str::to_owned);
    for by in WAYS {
        let shelf = Shelf::of(&app, &key, by, &names).await;
        let sorted = shelf.pages(&[("sort", "t")], 2).await;
        assert_eq!(
            sorted,
            ["Alvarado", "alvarez", "ÁLVAREZ", "Álvarez", "Ñáñez", "Núñez", "Zapata"],
            "{by:?}"
        );
        assert_eq!(shelf.pages(&[("filter[t][lt]", "b"), ("sort", "t")], 9).await, sorted[..4], "{by:?}");
        // Equality and patterns respect accents.
        for (filter, found) in [
            ("filter[t]", vec!["Álvarez"]),
            ("filter[t][like]", vec!["Álvarez"]),
            ("filter[t][ilike]", vec!["ÁLVAREZ", "Álvarez"]),
        ] {
            assert_eq!(shelf.pages(&[(filter, "Álvarez"), ("sort", "t")], 9).await, found, "{by:?} {filter}");
        }
    }
}

#[testkit::both]
async fn case_is_that_of_unicode(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let names =
        ["Νικος", "ΝΙΚΟΣ", "İstanbul", "ﬁsh", "Straße", "STRASSE", "ılıca", "ΑΠΟΛΥΤΟΣ"].map(str::to_owned);
    for by in WAYS {
        let shelf = Shelf::of(&app, &key, by, &names).await;
        for (op, pattern, found) in [
            ("ilike", "νικος", vec!["Νικος", "ΝΙΚΟΣ"]),
            ("ilike", "ΝΙΚΟΣ", vec!["Νικος", "ΝΙΚΟΣ"]),
            ("ilike", "%ος", vec!["Νικος", "ΝΙΚΟΣ", "ΑΠΟΛΥΤΟΣ"]),
            ("ilike", "istan%", vec!["İstanbul"]),
            ("ilike", "İSTAN%", vec!["İstanbul"]),
            ("ilike", "ILICA", vec!["ılıca"]),
            ("ilike", "straße", vec!["Straße", "STRASSE"]),
            ("ilike", "%trasse", vec!["Straße", "STRASSE"]),
            ("ilike", "stra_e", vec!["Straße"]),
            ("like", "_stanbul", vec!["İstanbul"]),
            ("ilike", "_stanbul", vec!["İstanbul"]),
            ("ilike", "_STAN%", vec!["İstanbul"]),
            ("like", "_sh", vec!["ﬁsh"]),
            ("ilike", "_sh", vec!["ﬁsh"]),
            ("ilike", "__sh", vec![]),
            ("ilike", "νικο_", vec!["Νικος", "ΝΙΚΟΣ"]),
        ] {
            let filter = format!("filter[t][{op}]");
            let pairs = [(filter.as_str(), pattern), ("sort", "id")];
            assert_eq!(shelf.pages(&pairs, 9).await, found, "{by:?} {op} {pattern}");
        }
    }
    let shelf = Shelf::of(&app, &key, By::Scan, &names).await;
    for (q, found) in [
        ("νικος", 2),
        ("ΝΙΚΟΣ", 2),
        ("strasse", 2),
        ("STRAẞE", 2),
        ("istanbul", 1),
        ("ISTANBUL", 1),
        ("ilica", 1),
    ] {
        let path = format!(
            "/collections/{}/items/search?{}",
            shelf.collection,
            query(&[("q".to_owned(), q.to_owned())])
        );
        let answer = app.get(&path, &key).await;
        assert_eq!(answer.expect(200).as_array().unwrap().len(), found, "{q}");
    }
    let path = format!("/collections/{}/fields", shelf.collection);
    for (number, (expression, expected)) in
        [("contains({t}, \"νικος\")", 2), ("starts_with({t}, \"ΝΙΚ\")", 2), ("ends_with({t}, \"ος\")", 3)]
            .into_iter()
            .enumerate()
    {
        let field = json!({ "field_key": format!("f{number}"), "type": "formula", "options": { "expression": expression } });
        app.post(&path, &key, field).await.expect(201);
        let found = list(&app, &key, shelf.collection, &format!("filter[f{number}]=true")).await;
        assert_eq!(ids(&found).len(), expected, "{expression}");
    }
}

#[testkit::both]
async fn words_are_found_in_writing_without_spaces(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let texts = [
        "我的订单什么时候到货",
        "王小明",
        "สวัสดีครับผม",
        "東京タワーへ行く",
        "មិនអីទេបង",
        "nº2026-0042",
        "订 单",
        "red 订单 shoe",
        "한국어 단어",
        "👍 great",
    ]
    .map(str::to_owned);
    let shelf = Shelf::of(&app, &key, By::Scan, &texts).await;
    for (q, found) in [
        ("订单", vec![0, 7]),
        ("订单什么", vec![0]),
        ("小明", vec![1]),
        ("明", vec![1]),
        ("订", vec![0, 6, 7]),
        ("单", vec![0, 6, 7]),
        ("单订", vec![]),
        ("ครับ", vec![2]),
        ("สวัสดี", vec![2]),
        ("タワー", vec![3]),
        ("ﾀﾜｰ", vec![3]),
        ("東京", vec![3]),
        ("អីទេ", vec![4]),
        ("2026-0042", vec![5]),
        ("nº2026", vec![5]),
        ("0042", vec![5]),
        ("\"red 订单\"", vec![7]),
        ("\"订单 shoe\"", vec![7]),
        ("\"red 单\"", vec![]),
        ("red 单", vec![7]),
        ("단어", vec![8]),
        ("한국", vec![8]),
        ("👍", vec![]),
        ("t:小明", vec![1]),
        ("great", vec![9]),
    ] {
        let path = format!(
            "/collections/{}/items/search?{}",
            shelf.collection,
            query(&[("q".to_owned(), q.to_owned())])
        );
        let answer: Value = app.get(&path, &key).await.expect(200);
        let mut got: Vec<&str> =
            answer.as_array().unwrap().iter().map(|item| item["data"]["t"].as_str().unwrap()).collect();
        let mut expected: Vec<&str> = found.iter().map(|place: &usize| texts[*place].as_str()).collect();
        got.sort_unstable();
        expected.sort_unstable();
        assert_eq!(got, expected, "{q}");
    }
}

#[testkit::both]
async fn keys_and_words_of_older_versions_are_made_anew(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let texts = ["Zapata", "Álvarez 小明", "Núñez", "Alvarado"].map(str::to_owned);
    let shelf = Shelf::of(&app, &key, By::Index, &texts).await;
    let collection = shelf.collection;
    seed::index_on(&app, &key, collection, &[("n".to_owned(), false)]).await;
    let columns = seed::columns(&app, &key, collection).await;
    let listed = async || {
        let listed: Value = app.get(&format!("/collections/{collection}/indexes"), &key).await.expect(200);
        let of = |index: &Value| {
            (index["fields"][0]["field"].as_str().unwrap_or_default().to_owned(), index["id"].clone())
        };
        listed.as_array().unwrap().iter().map(of).collect::<std::collections::BTreeMap<_, _>>()
    };
    let before = listed().await;
    let damage = match kind {
        testkit::Kind::Sqlite => "UPDATE item_keys SET k = x'0161' WHERE index_id = ",
        testkit::Kind::Postgres => "UPDATE item_keys SET k = '\\x0161' WHERE index_id = ",
    };
    app.sql(format!("{damage}{}", before["t"])).await;
    app.sql("DELETE FROM item_search").await;
    let migration = match kind {
        testkit::Kind::Sqlite => include_str!("../../../../../../migrations/sqlite/0042_text_keys/up.sql"),
        testkit::Kind::Postgres => {
            include_str!("../../../../../../migrations/postgres/0042_text_keys/up.sql")
        }
    };
    for statement in migration.split(";\n").filter(|statement| !statement.trim().is_empty()) {
        app.sql(statement).await;
    }
    let sorted = ["Alvarado", "Álvarez 小明", "Núñez", "Zapata"];
    assert_eq!(shelf.pages(&[("sort", "t")], 2).await, sorted, "nobody waits for the new index");
    while app.service.jobs.run_due().await.unwrap() > 0 {}
    assert_eq!(shelf.pages(&[("sort", "t")], 2).await, sorted);
    let answer = list(&app, &key, collection, "sort=t&filter[t][gte]=n").await;
    assert!(answer.headers["x-svc-query-plan"].starts_with("index(t)"), "{:?}", answer.headers);
    assert_eq!(ids(&answer).len(), 2);
    let path =
        format!("/collections/{collection}/items/search?{}", query(&[("q".to_owned(), "小明".to_owned())]));
    assert_eq!(app.get(&path, &key).await.expect(200).as_array().unwrap().len(), 1);
    let after = listed().await;
    assert_eq!(after["n"], before["n"], "numbers are as they were");
    assert_ne!(after["t"], before["t"]);
    let gone = crate::number(
        &app,
        &format!("SELECT count(*) AS n FROM collection_indexes WHERE id = {}", columns.0),
    )
    .await;
    assert_eq!(gone, 0);
}

#[testkit::both]
async fn rows_are_matched_by_whole_texts(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    for beginning in beginnings() {
        for by in [By::Index, By::Composite] {
            let texts: Vec<String> = "hcfa".chars().map(|end| format!("{beginning}{end}")).collect();
            let shelf = Shelf::of(&app, &key, by, &texts).await;
            let row = |end: &str, n: i64| json!({ "data": { "t": format!("{beginning}{end}"), "n": n } });
            let body = json!({ "match_on": ["t"], "rows": [row("a", 70), row("x", 80)] });
            let path = format!("/collections/{}/items/bulk-upsert", shelf.collection);
            let report = app.post(&path, &key, body).await.expect(200);
            let summary = &report["summary"];
            assert_eq!((&summary["updated"], &summary["created"]), (&json!(1), &json!(1)), "{by:?}");
            let found = list(&app, &key, shelf.collection, "filter[n]=70").await;
            assert_eq!(found.expect(200)[0]["data"]["t"], json!(texts[3]));
            assert_eq!(ends(&shelf.pages(&[("sort", "t")], 2).await), "acfhx", "{by:?}");
        }
    }
}
