//! Matching the rows of an import with existing items.

use super::{Shop, counts};
use crate::number;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn rows_find_their_items(kind: Kind) {
    let shop = Shop::open(kind).await;
    let first = "sku,name,price\na,A,1\nb,B,2\n";
    shop.import(json!({ "content": first })).await;
    let second = "sku,name,price\na,A,9\nb,,2\nc,C,3\nc,C,4\n,D,5\n";
    let import_of = |on_match: &str| json!({ "content": second, "match_on": ["sku"], "on_match": on_match });
    let skipped = shop.import(import_of("skip")).await;
    assert_eq!(skipped["counts"], counts(1, 0, 0, 3, 1));
    assert_eq!(skipped["errors"][0]["code"], "required");
    let refused = shop.import(import_of("error")).await;
    assert_eq!(refused["counts"], counts(0, 0, 0, 0, 5));
    assert_eq!(refused["errors"][0]["code"], "already_exists");
    let updated = shop.import(import_of("update")).await;
    assert_eq!(updated["counts"], counts(0, 2, 2, 0, 1), "c says 3, which it is, and then 4: {updated}");
    let item =
        |sku: &str, name: &str, price: i64| json!({ "sku": sku, "name": name, "price": price, "stock": 5 });
    let items: Vec<Value> = shop.items().await;
    for (found, expected) in items.iter().zip([item("a", "A", 9), item("b", "B", 2), item("c", "C", 4)]) {
        assert_eq!(found, &expected);
    }
    // Match with an index, without one, and by two fields.
    let file = "sku,name,price\na,A,9\nb,B,2\nc,C,4\n";
    for on in [json!(["sku"]), json!(["name"]), json!(["name", "price"]), json!(["price", "sku", "name"])] {
        let again = shop.import(json!({ "content": file, "match_on": on })).await;
        assert_eq!(again["counts"], counts(0, 0, 3, 0, 0), "{on}");
    }
    let before = number(&shop.app, "SELECT CAST(SUM(version) AS BIGINT) AS n FROM items").await;
    assert_eq!(before, 5, "what changes nothing raises no version");
    shop.import(json!({ "content": "name,sku\nA,z\n" })).await;
    let ambiguous = shop.import(json!({ "content": "name,price\nA,1\n", "match_on": ["name"] })).await;
    assert_eq!(ambiguous["errors"][0]["code"], "ambiguous_match");
}

#[testkit::both]
async fn external_keys_are_kept_and_found(kind: Kind) {
    let shop = Shop::open(kind).await;
    let import_of = |text: &str| {
        json!({
            "content": text, "mapping": { "ref": "external_key" }, "match_on": ["external_key"],
        })
    };
    assert_eq!(shop.import(import_of("ref,name\nx,A\ny,B\n")).await["counts"], counts(2, 0, 0, 0, 0));
    let again = shop.import(import_of("ref,name\nx,A\ny,C\n")).await;
    assert_eq!(again["counts"], counts(0, 1, 1, 0, 0));
    let clash = shop.import(json!({ "content": "external_key,name\nx,D\n" })).await;
    assert_eq!(clash["errors"][0]["code"], "duplicate_value");
    assert_eq!(clash["errors"][0]["column"], "external_key");
}

#[testkit::both]
async fn rows_see_what_earlier_rows_did(kind: Kind) {
    let shop = Shop::with(
        kind,
        json!([
            { "key": "name", "type": "text" }, { "key": "code", "type": "integer", "unique": true },
        ]),
    )
    .await;
    let import = async |rows: &str| {
        let done =
            shop.import(json!({ "content": format!("name,code\n{rows}"), "match_on": ["name"] })).await;
        (done["counts"].clone(), done["errors"].clone())
    };
    import("X,1\n").await;
    // Row X frees the code for row B, row A exists by the time it is changed, and row C conflicts with the new code
    // of X.
    let (done, errors) = import("A,2\nX,3\nB,1\nA,4\nC,3\nD,2\n").await;
    assert_eq!(done, counts(3, 2, 0, 0, 1), "{errors}");
    assert_eq!((&errors[0]["row"], &errors[0]["code"]), (&json!(5), &json!("duplicate_value")));
    // Row E conflicts because it comes before row X.
    let (done, errors) = import("E,3\nX,5\nF,3\n").await;
    assert_eq!(done, counts(1, 1, 0, 0, 1), "{errors}");
    let items = shop.items().await;
    let codes: Vec<(&str, i64)> =
        items.iter().map(|item| (item["name"].as_str().unwrap(), item["code"].as_i64().unwrap())).collect();
    assert_eq!(codes, [("X", 5), ("A", 4), ("B", 1), ("D", 2), ("F", 3)]);
    for table in ["item_unique", "item_search"] {
        assert_eq!(number(&shop.app, &format!("SELECT COUNT(*) AS n FROM {table}")).await, 5, "{table}");
    }
}

#[testkit::both]
async fn rows_find_their_items_without_an_index(kind: Kind) {
    let shop = Shop::open(kind).await;
    shop.import(json!({ "content": "name,price\nA 0,0\nOther,1\n" })).await;
    // The rows fill three batches of 500. The last batch matches items of the earlier batches as well as older items.
    let mut text = "name,price\n".to_owned();
    for row in (0..1_100).chain(0..300) {
        text.push_str(&format!("A {row},{row}\n"));
    }
    let import_of = |dry_run: bool| json!({ "content": text, "match_on": ["name"], "dry_run": dry_run });
    let rehearsed = shop.import(import_of(true)).await;
    // A dry run knows that rows match earlier batches, but not whether their values differ.
    assert_eq!(rehearsed["counts"], counts(1_099, 300, 1, 0, 0));
    let done = shop.import(import_of(false)).await;
    assert_eq!(done["counts"], counts(1_099, 0, 301, 0, 0));
    assert_eq!(shop.import(import_of(false)).await["counts"], counts(0, 0, 1_400, 0, 0));
    assert_eq!(shop.items().await.len(), 1_101);
    // A deleted item is not matched.
    let sql = "SELECT id AS n FROM items WHERE data LIKE '%\"A 7\"%'";
    let gone = number(&shop.app, sql).await;
    shop.app.delete(&shop.path(&format!("/items/{gone}")), &shop.key).await.expect(200);
    assert_eq!(shop.import(import_of(false)).await["counts"], counts(1, 0, 1_399, 0, 0));
}

#[testkit::both]
async fn a_large_collection_gets_the_index_that_rows_are_found_by(kind: Kind) {
    let shop = Shop::with(kind, json!([
        { "key": "name", "type": "text" }, { "key": "code", "type": "integer" }, { "key": "place", "type": "text" },
    ])).await;
    // One more than `query::LARGE`.
    shop.app.sql(format!(
        "WITH RECURSIVE numbers(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM numbers WHERE i <= 20000) \
         INSERT INTO items (workspace_id, collection_id, data, title, comment_count, version, created_by, updated_by, \
         created_at, updated_at) SELECT {}, {}, '{{\"name\":\"n\",\"code\":' || i || ',\"place\":\"p' || (i % 2) || '\"}}', 'n', 0, 1, \
         '{{\"type\":\"system\",\"id\":\"test\"}}', '{{\"type\":\"system\",\"id\":\"test\"}}', created_at, created_at \
         FROM numbers, collections WHERE collections.id = {}",
        shop.key.workspace, shop.collection, shop.collection,
    )).await;
    let text = "name,code,place\nnew,7,p1\nn,8,p0\nmore,20002,p0\nmore,20002,p0\n";
    let import_of = |on: &[&str]| json!({ "content": text, "match_on": on, "on_match": "update" });
    assert_eq!(shop.import(import_of(&["code"])).await["counts"], counts(1, 1, 2, 0, 0));
    let indexes = async || {
        let listed = shop.app.get(&shop.path("/indexes"), &shop.key).await.expect(200);
        let shown = |index: &Value| {
            assert_eq!((&index["origin"], &index["status"]), (&json!("auto"), &json!("ready")));
            assert_eq!(index["progress"], json!({ "done": 20_001, "total": 20_001 }));
            index["kind"].clone()
        };
        listed.as_array().unwrap().iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(indexes().await, ["single"]);
    // Damage another item, so that a scan would fail.
    let spoilt = |data: &str| format!("UPDATE items SET data = {data} WHERE data LIKE '%\"code\":9,%'");
    shop.app.sql(spoilt("'{\"code\":9,'")).await;
    assert_eq!(shop.import(import_of(&["code"])).await["counts"], counts(0, 0, 4, 0, 0));
    shop.app.sql("UPDATE items SET data = '{\"name\":\"n\",\"code\":9,\"place\":\"p1\"}' WHERE data = '{\"code\":9,'").await;
    shop.app.sql("DELETE FROM items WHERE data LIKE '%\"code\":20002,%'").await;
    // Matching by two fields creates an index on both.
    assert_eq!(shop.import(import_of(&["place", "code"])).await["counts"], counts(1, 0, 3, 0, 0));
    assert_eq!(indexes().await, ["single", "composite"]);
    shop.app.sql(spoilt("'{\"code\":9,'")).await;
    assert_eq!(shop.import(import_of(&["code", "place"])).await["counts"], counts(0, 0, 4, 0, 0));
}
