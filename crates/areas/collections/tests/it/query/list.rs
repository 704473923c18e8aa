//! The list of items: parameters, pages and errors.

use super::{create, ids, list, query};
use crate::{full, number, seed};
use ::model::CollectionId;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use operation::Cursors;
use query::{Budget, Planner};
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::{Key, Kind, TestApp};

/// Creates products with name, price, category and tags.
async fn products(app: &TestApp, key: &Key) -> CollectionId {
    let fields = json!([
        { "key": "name", "type": "text" },
        { "key": "price", "type": "number" },
        { "key": "category", "type": "select", "options": seed::choices(&["toys", "books"]) },
        { "key": "tags", "type": "multi_select", "options": seed::choices(&["new", "sale"]) },
        { "key": "notes", "type": "json" },
    ]);
    seed::collection(app, key, fields).await
}

async fn ask(app: &TestApp, key: &Key, collection: CollectionId, pairs: &[(&str, &str)]) -> testkit::Answer {
    let pairs: Vec<(String, String)> =
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    list(app, key, collection, &query(&pairs)).await
}

#[testkit::both]
async fn a_list_has_items_as_they_are_read_one_by_one(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = products(&app, &key).await;
    let first =
        create(&app, &key, collection, json!({ "name": "Ä \"x\"", "notes": { "a": [1.5, null] } })).await;
    let second = create(&app, &key, collection, json!({ "name": "b", "price": 5, "tags": ["new"] })).await;
    let answer = ask(&app, &key, collection, &[]).await;
    assert_eq!(answer.expect(200), json!([second, first]));
    assert_eq!(answer.headers["x-svc-query-plan"], "scan; visited=2");
    assert_eq!((&answer.body["has_more"], &answer.body["next_cursor"]), (&json!(false), &Value::Null));
    let some = ask(&app, &key, collection, &[("fields", "price, name"), ("include", "comment_count")]).await;
    assert_eq!(some.expect(200)[0]["data"], json!({ "name": "b", "price": 5 }));
    app.delete(&format!("/collections/{collection}/items/{}", second["id"]), &key).await.expect(200);
    assert_eq!(ids(&ask(&app, &key, collection, &[]).await), [first["id"].as_i64().unwrap()]);
    let trash = ask(&app, &key, collection, &[("trashed", "true"), ("filter[price]", "5")]).await;
    assert_eq!(ids(&trash), [second["id"].as_i64().unwrap()]);
    // A page can continue after an item that was trashed meanwhile.
    let after = second["id"].to_string();
    assert_eq!(ids(&ask(&app, &key, collection, &[("starting_after", &after)]).await).len(), 1);
}

#[testkit::both]
async fn lists_have_no_empty_parts(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = products(&app, &key).await;
    let item = create(&app, &key, collection, json!({ "name": "x" })).await;
    let at = format!("/collections/{collection}/items");
    let aggregate = format!("{at}/aggregate");
    for (path, name, good) in [
        (at.clone(), "sort", "name"),
        (at.clone(), "fields", "name"),
        (at.clone(), "expand", "name"),
        (at.clone(), "include", "comment_count"),
        (format!("{at}/{}", item["id"]), "fields", "name"),
        (format!("{at}/{}", item["id"]), "include", "comment_count"),
        (format!("{at}/search?q=x"), "sort", "name"),
        (format!("{at}/export"), "fields", "name"),
        (format!("{at}/export"), "sort", "name"),
        (aggregate.clone(), "metrics", "count"),
        (aggregate, "group_by", "name"),
        ("/events".to_owned(), "type", "item.created"),
        ("/events/live?wait_seconds=0".to_owned(), "types", "item.created"),
        ("/runs/run_00000000000000000000000000".to_owned(), "include", "steps"),
    ] {
        let joint = if path.contains('?') { "&" } else { "?" };
        for list in [
            ",".to_owned(),
            String::new(),
            "%20".to_owned(),
            format!("{good},"),
            format!(",{good}"),
            format!("{good},%20,{good}"),
        ] {
            let answer = app.get(&format!("{path}{joint}{name}={list}"), &key).await;
            assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(name), "{path} {list}");
        }
        if name != "expand" && !path.starts_with("/runs") {
            app.get(&format!("{path}{joint}{name}=%20{good}%20"), &key).await.expect(200);
        }
    }
}

#[testkit::both]
async fn what_is_wrong_is_named(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = products(&app, &key).await;
    let other = products(&app, &key).await;
    let foreign = create(&app, &key, other, json!({ "name": "x" })).await["id"].to_string();
    create(&app, &key, collection, json!({ "name": "x" })).await;
    create(&app, &key, collection, json!({ "name": "y" })).await;
    let cursor = ask(&app, &key, collection, &[("limit", "1")]).await.body["next_cursor"].clone();
    let cursor = cursor.as_str().unwrap();
    for (pairs, param) in [
        (vec![("filter[prize]", "5")], "filter[prize]"),
        (vec![("filter[price][is]", "5")], "filter[price]"),
        (vec![("filter[price][like]", "5%")], "filter[price]"),
        (vec![("filter[price]", "five")], "filter[price]"),
        (vec![("filter[price][gt]", "")], "filter[price]"),
        (vec![("filter[category]", "shoes")], "filter[category]"),
        (vec![("filter[tags][gt]", "new")], "filter[tags]"),
        (vec![("filter[notes]", "{")], "filter[notes]"),
        (vec![("filter[name][in][]", "a"), ("filter[name][eq][]", "b")], "filter[name]"),
        (vec![("filter", "5")], "filter"),
        (vec![("filter[name", "5")], "filter[name"),
        (vec![("filter[name]", "a\0")], "filter[name]"),
        (vec![("filter_tree", "[")], "filter_tree"),
        (vec![("filter_tree", "{\"and\":[{\"field\":\"x\",\"op\":\"eq\"}]}")], "filter_tree.and[0].field"),
        (vec![("sort", "tags")], "sort"),
        (vec![("sort", "-notes")], "sort"),
        (vec![("sort", "-nam")], "sort"),
        (vec![("sort", "name,price,category,id,version")], "sort"),
        (vec![("filter_tree", "")], "filter_tree"),
        (vec![("filter[id]", "+1")], "filter[id]"),
        (vec![("filter[id]", "01")], "filter[id]"),
        (vec![("limit", "0")], "limit"),
        (vec![("fields", "nope")], "fields"),
        (vec![("expand", "name")], "expand"),
        (vec![("include", "links")], "include"),
        (vec![("view_id", "x")], "view_id"),
        (vec![("view_id", "+1")], "view_id"),
        (vec![("view_id", "01")], "view_id"),
        (vec![("trashed", "maybe")], "trashed"),
        (vec![("starting_after", "x")], "starting_after"),
        (vec![("starting_after", "999999")], "starting_after"),
        (vec![("starting_after", &foreign)], "starting_after"),
        (vec![("starting_after", cursor), ("sort", "name")], "starting_after"),
        (vec![("starting_after", cursor), ("filter[name]", "x")], "starting_after"),
    ] {
        let answer = ask(&app, &key, collection, &pairs).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some(param), "{pairs:?}");
    }
    let near = ask(&app, &key, collection, &[("filter[prize]", "5")]).await;
    assert!(near.text.contains("did you mean `price`?"), "{}", near.text);
    ask(&app, &key, collection, &[("view_id", "99")]).await.expect_error(404, "not_found");
    let stranger = full(&app).await;
    ask(&app, &stranger, collection, &[]).await.expect_error(404, "not_found");
    assert_eq!(ids(&ask(&app, &key, collection, &[("starting_after", cursor)]).await).len(), 1);
}

#[testkit::both]
async fn any_place_in_a_cursor_is_a_page(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = products(&app, &key).await;
    seed::index_on(&app, &key, collection, &[("price".to_owned(), false)]).await;
    for price in 0..3 {
        create(&app, &key, collection, json!({ "price": price })).await;
    }
    for sort in ["price", "-price", "name", "id"] {
        // A cursor that the service itself could have sealed.
        let bound_to = json!([collection, [["sort", sort]], null, false]).to_string();
        let seal = Arc::new(auth::Seal::new(&[7; 32]).unwrap());
        let cursors = Cursors::new(seal, "listItems", key.workspace, bound_to);
        let ends = [0, 1, 2, 3, 127, 128, 254, 255];
        let short = ends.map(|byte| vec![byte]);
        let long = ends.map(|byte| [vec![byte; 40], vec![0, 255, byte]].concat());
        for place in [vec![], vec![0; 8], vec![255; 8], vec![3; 900]].into_iter().chain(short).chain(long) {
            let cursor = cursors.encode(&URL_SAFE_NO_PAD.encode(&place));
            ask(&app, &key, collection, &[("sort", sort), ("starting_after", &cursor)]).await.expect(200);
        }
        let no_place = cursors.encode("!");
        let answer = ask(&app, &key, collection, &[("sort", sort), ("starting_after", &no_place)]).await;
        assert_eq!(answer.expect_error(400, "validation_error").as_deref(), Some("starting_after"));
    }
}

#[testkit::both]
async fn a_row_that_moves_neither_skips_nor_doubles_its_neighbours(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = products(&app, &key).await;
    seed::index_on(&app, &key, collection, &[("price".to_owned(), false)]).await;
    let mut made = Vec::new();
    for price in 0..10 {
        made.push(create(&app, &key, collection, json!({ "price": price })).await["id"].as_i64().unwrap());
    }
    let page = ask(&app, &key, collection, &[("sort", "price"), ("limit", "4")]).await;
    assert_eq!(ids(&page), made[..4]);
    // Move the last item of the page to the end, and insert one before it.
    let last = format!("/collections/{collection}/items/{}", made[3]);
    app.patch(&last, &key, json!({ "data": { "price": 100 } })).await.expect(200);
    create(&app, &key, collection, json!({ "price": 1 })).await;
    let cursor = page.body["next_cursor"].as_str().unwrap().to_owned();
    let rest = ask(&app, &key, collection, &[("sort", "price"), ("starting_after", &cursor)]).await;
    assert_eq!(ids(&rest), [&made[4..], &made[3..4]].concat());
    let purged = format!("DELETE FROM items WHERE id = {}", made[3]);
    app.sql(purged).await;
    let gone = ask(&app, &key, collection, &[("starting_after", &made[3].to_string())]).await;
    assert_eq!(gone.expect_error(400, "validation_error").as_deref(), Some("starting_after"));
}

#[testkit::both]
async fn a_query_beyond_the_budget_names_what_to_index(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = products(&app, &key).await;
    for price in 0..40 {
        create(&app, &key, collection, json!({ "price": price, "category": "toys" })).await;
    }
    let planner = app.service.pipeline.services.get::<Planner>().unwrap();
    planner.set_budget(Budget { rows: 10, ..Budget::default() });
    let answer = ask(&app, &key, collection, &[("filter[price]", "99"), ("sort", "name")]).await;
    // A query that reaches its end succeeds, whatever it visited: the budget limits only what would still come.
    assert_eq!(ids(&answer), [0_i64; 0]);
    app.sql(
        "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) \
         INSERT INTO items (workspace_id, collection_id, data, title, comment_count, version, created_by, \
         updated_by, created_at, updated_at) SELECT workspace_id, collection_id, \
         '{\"price\":' || i || ',\"category\":\"toys\"}', title, 0, 1, created_by, updated_by, created_at, \
         updated_at FROM n, (SELECT * FROM items LIMIT 1) AS one",
    )
    .await;
    let answer = ask(&app, &key, collection, &[("filter[price]", "99"), ("sort", "name")]).await;
    answer.expect_error(400, "query_too_expensive");
    assert_eq!(answer.body["error"]["details"]["fields"], json!(["price", "name"]));
    assert!(answer.body["error"]["details"]["visited"].as_i64().unwrap() >= 10);
    planner.set_budget(Budget::default());
    let index = json!({ "fields": [{ "field": "price" }] });
    app.post(&format!("/collections/{collection}/indexes"), &key, index).await.expect(201);
    app.service.jobs.run_due().await.unwrap();
    planner.set_budget(Budget { rows: 10, ..Budget::default() });
    let answer = ask(&app, &key, collection, &[("filter[price]", "99"), ("sort", "name")]).await;
    assert_eq!(ids(&answer).len(), 1);
    assert_eq!(answer.headers["x-svc-query-plan"], "index(price); visited=1");
    assert!(number(&app, "SELECT count(*) AS n FROM item_keys").await >= 1_040);
}

#[testkit::both]
async fn a_view_filters_sorts_and_hides(kind: Kind) {
    use fields::saved::{SavedQuery, SavedQueryText};
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let collection = products(&app, &key).await;
    let mut made = Vec::new();
    for (name, price) in [("red shoe", 3), ("red hat", 2), ("blue shoe", 1), ("red boot", 9)] {
        let data = json!({ "name": name, "price": price });
        made.push(create(&app, &key, collection, data).await["id"].as_i64().unwrap());
    }
    let workspace = key.workspace;
    let stored = app.db().write(move |tx| {
        use diesel::{ExpressionMethods, RunQueryDsl};
        use records::schema::collection_views as v;
        let now = tx.now();
        let shape = records::shape::for_read(
            tx,
            &records::shape::Shapes::new([&::collections::items::ITEMS]),
            workspace,
            collection,
        )?;
        let text = SavedQueryText {
            filter_tree: Some(json!({ "field": "price", "op": "lt", "value": 5 })),
            sort: vec!["price".to_owned()],
            visible_fields: Some(vec!["name".to_owned()]),
            search: Some("red".to_owned()),
            ..SavedQueryText::default()
        };
        let query = SavedQuery::from_api(&shape, &text, now)?;
        let settings = json!({ "query": query, "materialized_sort": false }).to_string();
        let row = (
            v::workspace_id.eq(workspace),
            v::collection_id.eq(collection),
            v::name.eq("V"),
            v::name_key.eq("v"),
        );
        let rest =
            (v::kind.eq("grid"), v::settings.eq(settings), v::is_default.eq(false), v::locked.eq(false));
        let last = (v::position.eq(1), v::version.eq(1), v::created_at.eq(now), v::updated_at.eq(now));
        let id: i64 = diesel::insert_into(v::table)
            .values((row, rest, last))
            .returning(v::id)
            .get_result(tx.connection())?;
        Ok(id)
    });
    let view = stored.await.unwrap().to_string();
    let answer = ask(&app, &key, collection, &[("view_id", &view)]).await;
    assert_eq!(ids(&answer), [made[1], made[0]]);
    assert_eq!(answer.expect(200)[0]["data"], json!({ "name": "red hat" }));
    let narrowed =
        ask(&app, &key, collection, &[("view_id", &view), ("filter[price][gt]", "2"), ("fields", "price")])
            .await;
    assert_eq!(narrowed.expect(200)[0]["data"], json!({ "price": 3 }));
    let sorted = ask(&app, &key, collection, &[("view_id", &view), ("sort", "-price")]).await;
    assert_eq!(ids(&sorted), [made[0], made[1]]);
    app.sql("UPDATE collection_fields SET trashed_at = created_at WHERE field_key = 'price'").await;
    app.sql("UPDATE collections SET shape_version = shape_version + 1000").await;
    ask(&app, &key, collection, &[("view_id", &view)]).await.expect_error(409, "view_invalid");
    // Values of a deleted field are not shown, although they are still stored.
    let plain = ask(&app, &key, collection, &[]).await.expect(200);
    assert_eq!(plain[0]["data"], json!({ "name": "red boot" }));
}

#[testkit::both]
async fn relations_are_filtered_and_expanded(kind: Kind) {
    let app = TestApp::new(kind).await;
    let key = full(&app).await;
    let makers = seed::collection(&app, &key, json!([{ "key": "name", "type": "text" }])).await;
    let relation =
        json!({ "key": "makers", "type": "relation", "options": { "target_collection_id": makers } });
    let things = seed::collection(&app, &key, json!([{ "key": "name", "type": "text" }, relation])).await;
    let mut all = Vec::new();
    for number in 0..30 {
        all.push(create(&app, &key, makers, json!({ "name": format!("m{number}") })).await);
    }
    let maker = |place: usize| all[place]["id"].as_i64().unwrap();
    let everybody: Vec<i64> = (0..30).map(maker).collect();
    let one = create(&app, &key, things, json!({ "makers": [maker(0)] })).await["id"].as_i64().unwrap();
    let many = create(&app, &key, things, json!({ "makers": everybody })).await["id"].as_i64().unwrap();
    let none = create(&app, &key, things, json!({ "name": "x" })).await["id"].as_i64().unwrap();
    let of = async |pairs: &[(&str, &str)]| ask(&app, &key, things, pairs).await;
    let (first, last) = (maker(0).to_string(), maker(29).to_string());
    for (op, operand, found) in [
        ("filter[makers]", first.as_str(), &[many, one][..]),
        ("filter[makers]", &last, &[many]),
        ("filter[makers]", "", &[none]),
        ("filter[makers][neq]", &last, &[none, one]),
        ("filter[makers][in]", &format!("{first},{last}"), &[many, one]),
    ] {
        let answer = of(&[(op, operand)]).await;
        assert_eq!(ids(&answer), found, "{op} {operand}");
    }
    let expanded = of(&[("expand", "makers")]).await.expect(200);
    assert_eq!(expanded[0]["expanded"], json!({ "makers": [] }));
    assert_eq!(expanded[1]["expanded"]["makers"].as_array().unwrap().len(), 25);
    assert_eq!(expanded[2]["expanded"]["makers"][0]["data"], all[0]["data"]);
    // An item in the trash is not found by links either, even where values do not show the link.
    app.delete(&format!("/collections/{makers}/items/{last}"), &key).await.expect(200);
    assert_eq!(ids(&of(&[("filter[makers]", &last)]).await), [0_i64; 0]);
}
