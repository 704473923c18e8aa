//! Rollups and lookups. Their values must equal a recount.

use super::Library;
use fields::{FieldOptions, FieldType};
use model::CollectionId;
use records::compute::{self, Candidate};
use records::shape::{self, Shapes};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use testkit::Kind;

fn rollup(key: &str, aggregate: &str, field: Value, result: &str) -> Value {
    let options =
        json!({ "relation": "books", "aggregate": aggregate, "field": field, "result_type": result });
    json!({ "key": key, "type": "rollup", "options": options })
}

/// Opens a library whose authors have computed values of their books, and whose books have lookups of their editor.
async fn counting(kind: testkit::Kind) -> Library {
    let look = |key: &str, field: &str, result: &str| json!({ "key": key, "type": "lookup", "options": { "relation": "editor", "field": field, "result_type": result } });
    let of_books = json!([look("editor_age", "age", "number"), look("editor_wealth", "wealth", "number")]);
    let of_authors = json!([
        rollup("works", "count", Value::Null, "integer"),
        rollup("wealth", "sum", json!("price"), "number"),
        rollup("mean", "avg", json!("price"), "number"),
        rollup("least", "min", json!("price"), "number"),
        rollup("most", "max", json!("price"), "number"),
        rollup("prices", "count_distinct", json!("price"), "integer"),
        rollup("all_sold", "all", json!("sold"), "boolean"),
        rollup("any_sold", "any", json!("sold"), "boolean"),
        rollup("titles", "join", json!("title"), "text"),
        { "key": "list", "type": "lookup", "options": { "relation": "books", "field": "title", "result_type": "json" } },
    ]);
    Library::with(kind, json!({}), of_books, of_authors).await
}

/// Computes the expected rollups of an author from its books.
async fn recount(library: &Library, books: &[i64]) -> Value {
    let mut rows = Vec::new();
    for book in books {
        rows.push(library.look(library.books, *book).await["data"].clone());
    }
    let prices: Vec<f64> = rows.iter().filter_map(|row| row["price"].as_f64()).collect();
    let number = |value: f64| {
        let value: f64 = format!("{value:.14e}").parse().unwrap();
        if value.fract() == 0.0 { json!(format!("{value}").parse::<i64>().unwrap()) } else { json!(value) }
    };
    let titles: Vec<&str> = rows.iter().filter_map(|row| row["title"].as_str()).collect();
    let distinct: BTreeSet<String> = prices.iter().map(ToString::to_string).collect();
    let mut counted = json!({
        "works": rows.len(),
        "wealth": number(prices.iter().sum()),
        "prices": distinct.len(),
    });
    let all = counted.as_object_mut().unwrap();
    if !rows.is_empty() {
        all.insert("all_sold".into(), rows.iter().all(|row| row["sold"] == true).into());
        all.insert("any_sold".into(), rows.iter().any(|row| row["sold"] == true).into());
        all.insert("titles".into(), titles.join(", ").into());
        all.insert("list".into(), json!(titles));
    }
    if !prices.is_empty() {
        #[expect(clippy::cast_precision_loss, reason = "few")]
        all.insert("mean".into(), number(prices.iter().sum::<f64>() / prices.len() as f64));
        all.insert("least".into(), number(prices.iter().copied().fold(f64::MAX, f64::min)));
        all.insert("most".into(), number(prices.iter().copied().fold(f64::MIN, f64::max)));
    }
    counted
}

/// Creates items by one request and returns their ids.
async fn create_in(library: &Library, collection: CollectionId, rows: Value) -> Vec<i64> {
    let path = format!("/collections/{collection}/items/bulk-create");
    let report = library.app.post(&path, &library.key, json!({ "rows": rows })).await.expect(200);
    report["results"].as_array().unwrap().iter().map(|result| result["id"].as_i64().unwrap()).collect()
}

async fn expect_right(library: &Library, author: i64, books: &[i64]) {
    let mut data = library.look(library.authors, author).await["data"].clone();
    for key in ["name", "age", "books"] {
        data.as_object_mut().unwrap().remove(key);
    }
    assert_eq!(data, recount(library, books).await);
}

#[testkit::both]
async fn rows_with_links_and_without_are_created_by_one_request(kind: Kind) {
    let library = counting(kind).await;
    let author = library.put(library.authors, json!({ "name": "Ann", "age": 40 })).await;
    let create = async |rows: Value| create_in(&library, library.books, rows).await;
    let linked = create(json!([
        { "data": { "title": "One", "price": 10, "authors": [author], "editor": [author] } },
        { "data": { "title": "Two", "price": 5 } },
        { "data": { "title": "Three", "price": 2.5, "sold": true, "authors": [author] } },
    ]))
    .await;
    expect_right(&library, author, &[linked[0], linked[2]]).await;
    assert_eq!(library.look(library.books, linked[0]).await["data"]["editor_age"], 40);
    let plain =
        create(json!([{ "data": { "title": "Four", "price": 1 } }, { "data": { "title": "Five" } }])).await;
    expect_right(&library, author, &[linked[0], linked[2]]).await;
    assert_eq!(library.look(library.books, plain[0]).await["data"], json!({ "title": "Four", "price": 1 }));
    let authors = create_in(
        &library,
        library.authors,
        json!([{ "data": { "name": "Bea" } }, { "data": { "name": "Cy" } }]),
    )
    .await;
    for author in authors {
        expect_right(&library, author, &[]).await;
    }
}

#[testkit::both]
async fn rollups_are_what_a_recount_gives(kind: Kind) {
    let library = counting(kind).await;
    let (books, authors) = (library.books, library.authors);
    let ann = library.author("Ann").await;
    expect_right(&library, ann, &[]).await;
    let mut written = Vec::new();
    for (number, price) in [Some(0.1), Some(0.2), Some(7.0), None, Some(7.0)].iter().enumerate() {
        let data =
            json!({ "title": format!("T{number}"), "price": price, "sold": number != 3, "authors": [ann] });
        written.push(library.put(books, data).await);
    }
    expect_right(&library, ann, &written).await;
    library.change(books, written[3], json!({ "sold": true, "price": -3.5, "title": "X" })).await.expect(200);
    expect_right(&library, ann, &written).await;
    library.trash(books, written[1]).await.expect(200);
    let left = [written[0], written[2], written[3], written[4]];
    expect_right(&library, ann, &left).await;
    library.restore(books, written[1]).await.expect(200);
    expect_right(&library, ann, &written).await;
    library.change(authors, ann, json!({ "books": [written[4], written[0]] })).await.expect(200);
    expect_right(&library, ann, &[written[4], written[0]]).await;
    library.purge(books, written[4]).await.expect(200);
    expect_right(&library, ann, &[written[0]]).await;
    library.change(books, written[0], json!({ "authors": null })).await.expect(200);
    expect_right(&library, ann, &[]).await;
    // Rollups use all links, not the copy of the first 25.
    let mut many = Vec::new();
    for number in 0..40 {
        many.push(library.put(books, json!({ "title": format!("M{number}"), "price": number })).await);
    }
    library.change(authors, ann, json!({ "books": many })).await.expect(200);
    expect_right(&library, ann, &many).await;
    library.change(books, many[39], json!({ "price": 1000.25 })).await.expect(200);
    expect_right(&library, ann, &many).await;
}

#[testkit::both]
async fn chains_are_followed_to_their_end_and_only_where_they_lead(kind: Kind) {
    let library = counting(kind).await;
    let (books, authors) = (library.books, library.authors);
    let ann = library.put(authors, json!({ "name": "Ann", "age": 40 })).await;
    let edited = library.put(books, json!({ "title": "Edited", "editor": [ann] })).await;
    assert_eq!(library.value(books, edited, "editor_age").await, 40);
    assert_eq!(library.value(books, edited, "editor_wealth").await, 0);
    let own = library.put(books, json!({ "title": "Own", "price": 5, "authors": [ann] })).await;
    assert_eq!(library.value(books, edited, "editor_wealth").await, 5, "book, author, book");
    library.change(books, own, json!({ "price": 6.5 })).await.expect(200);
    assert_eq!(library.value(books, edited, "editor_wealth").await, 6.5);
    let before = crate::events(&library.app).await.len();
    library.change(authors, ann, json!({ "name": "Anna" })).await.expect(200);
    assert_eq!(crate::events(&library.app).await.len(), before + 1, "nobody looks at the name");
    library.change(authors, ann, json!({ "age": 41 })).await.expect(200);
    let emitted = crate::events(&library.app).await;
    assert_eq!(emitted.len(), before + 3);
    assert_eq!(emitted.last().unwrap().1["changed"], json!({ "editor_age": { "old": 40, "new": 41 } }));
    // A book that is edited by its own author changes, and the lookup returns the new value to it.
    library.change(books, own, json!({ "editor": [ann] })).await.expect(200);
    let answer = library.change(books, own, json!({ "price": 8 })).await.expect(200);
    assert_eq!(answer["data"]["editor_wealth"], 8, "the answer has what came back");
    library.trash(authors, ann).await.expect(200);
    assert_eq!(library.value(books, own, "editor_age").await, Value::Null);
}

#[testkit::both]
async fn many_that_look_are_followed_by_jobs(kind: Kind) {
    let library = counting(kind).await;
    let (books, authors) = (library.books, library.authors);
    let ann = library.put(authors, json!({ "name": "Ann", "age": 1 })).await;
    for number in 0..130 {
        library.put(books, json!({ "title": format!("{number}"), "editor": [ann] })).await;
    }
    let holding = |age: i64| {
        format!(
            "SELECT count(*) AS n FROM items WHERE collection_id = {books} AND data LIKE '%\"editor_age\":{age}%'"
        )
    };
    assert_eq!(crate::number(&library.app, &holding(1)).await, 130);
    library.change(authors, ann, json!({ "age": 2 })).await.expect(200);
    assert_eq!(crate::number(&library.app, &holding(2)).await, 100, "in the same transaction");
    library.change(authors, ann, json!({ "age": 3 })).await.expect(200);
    library.work().await;
    assert_eq!(crate::number(&library.app, &holding(3)).await, 130);
}

#[testkit::both]
async fn a_new_field_is_computed_for_all(kind: Kind) {
    let library = counting(kind).await;
    let (books, workspace) = (library.books, library.key.workspace);
    let ann = library.author("Ann").await;
    for _ in 0..120 {
        library.put(books, json!({ "title": "T", "editor": [ann] })).await;
    }
    library.work().await;
    let options = json!({ "relation": "editor", "field": "name", "result_type": "text" });
    library.add(books, "editor_name", "lookup", options).await;
    let before = crate::events(&library.app).await.len();
    library.app.db().write(move |tx| compute::enqueue_recompute(tx, workspace, books)).await.unwrap();
    library.work().await;
    let sql = format!(
        "SELECT count(*) AS n FROM items WHERE collection_id = {books} AND data LIKE '%\"editor_name\":\"Ann\"%'"
    );
    assert_eq!(crate::number(&library.app, &sql).await, 120);
    assert_eq!(crate::events(&library.app).await.len(), before, "nobody hears of it");
}

#[testkit::both]
async fn more_links_than_fit_are_counted_by_a_job(kind: Kind) {
    let library = counting(kind).await;
    let authors = library.authors;
    let ann = library.author("Ann").await;
    let first = library.put(library.books, json!({ "title": "T", "price": 2, "authors": [ann] })).await;
    let (link, back) = (
        "workspace_id, collection_id, field_id, to_kind, to_collection_id, position, version, created_by, created_at, updated_at",
        library.field_id(authors, "books").await,
    );
    let columns = "workspace_id, collection_id, data, title, comment_count, version, created_by, updated_by, created_at, updated_at";
    library
        .app
        .sql(format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) \
        INSERT INTO items ({columns}) SELECT {columns} FROM items, n WHERE id = {first}"
        ))
        .await;
    library.app.sql(format!("INSERT INTO item_links (item_id, to_id, {link}) SELECT i.id, l.to_id, l.workspace_id, \
        l.collection_id, l.field_id, l.to_kind, l.to_collection_id, l.position, 1, l.created_by, l.created_at, l.updated_at \
        FROM items i, item_links l WHERE l.item_id = {first} AND i.id > {first}")).await;
    library.app.sql(format!("INSERT INTO item_links (item_id, to_id, {link}) SELECT {ann}, CAST(i.id AS TEXT), l.workspace_id, \
        l.collection_id, l.field_id, l.to_kind, l.to_collection_id, l.position + 1, 1, l.created_by, l.created_at, l.updated_at \
        FROM items i, item_links l WHERE l.item_id = {ann} AND l.field_id = {back} AND i.id > {first}")).await;
    library.change(library.books, first, json!({ "price": 3 })).await.expect(200);
    assert_eq!(library.value(authors, ann, "works").await, 1, "not yet");
    library.work().await;
    let shown = library.look(authors, ann).await;
    assert_eq!((&shown["data"]["works"], &shown["data"]["wealth"]), (&json!(1201), &json!(2403)));
    assert_eq!(shown["has_more"]["books"]["total_is_exact"], false);
    let refused = library.change(authors, ann, json!({ "books": [first] })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("data.books"));
}

#[testkit::both]
async fn a_sum_that_is_not_kept_says_why(kind: Kind) {
    let library = counting(kind).await;
    let (books, authors) = (library.books, library.authors);
    let mut ids = Vec::new();
    for price in [json!(1e308), json!(1e308), json!(0.1)] {
        ids.push(library.put(books, json!({ "title": "A", "price": price })).await);
    }
    let ann = library.put(authors, json!({ "name": "Ann", "books": [ids[0], ids[1]] })).await;
    let emitted = async || {
        let shown = library.look(authors, ann).await;
        (shown["data"]["wealth"].clone(), shown["data"]["mean"].clone(), shown["computed_errors"].clone())
    };
    assert_eq!(emitted().await, (json!(null), json!(1e308), json!({ "wealth": "out_of_range" })));
    library.change(books, ids[1], json!({ "price": 1 })).await.expect(200);
    assert_eq!(emitted().await, (json!(null), json!(5e307), json!({ "wealth": "too_precise" })));
    library.change(books, ids[0], json!({ "price": 0.2 })).await.expect(200);
    assert_eq!(emitted().await, (json!(1.2), json!(0.6), json!(null)));
    library.change(authors, ann, json!({ "books": [ids[0], ids[2]] })).await.expect(200);
    assert_eq!(emitted().await, (json!(0.3), json!(0.15), json!(null)));
}

#[testkit::both]
async fn a_sum_of_rounded_values_is_rounded(kind: Kind) {
    let third = json!({ "key": "third", "type": "formula",
        "options": { "expression": "price / 3", "result_type": "number" } });
    let thirds = json!([rollup("thirds", "sum", json!("third"), "number")]);
    let library = Library::with(kind, json!({}), json!([third]), thirds).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(library.put(library.books, json!({ "title": "A", "price": 2 })).await);
    }
    let ann = library.put(library.authors, json!({ "name": "Ann", "books": ids })).await;
    assert_eq!(library.value(library.authors, ann, "thirds").await, json!(1.333_333_333_333_33));
}

#[testkit::both]
async fn only_what_fits_can_be_computed(kind: Kind) {
    let library = counting(kind).await;
    let (authors, workspace) = (library.authors, library.key.workspace);
    library.add(library.books, "notes", "json", json!({})).await;
    let found = library.app.db().read(move |read| {
        let shapes = Shapes::new([&::collections::items::ITEMS]);
        let shape = shape::for_read(read, &shapes, workspace, authors)?;
        let mut answers = Vec::new();
        for (kind, options) in [
            ("rollup", json!({ "relation": "books", "aggregate": "count" })),
            ("rollup", json!({ "relation": "books", "aggregate": "sum", "field": "price" })),
            ("rollup", json!({ "relation": "books", "aggregate": "join", "field": "title" })),
            ("rollup", json!({ "relation": "books", "aggregate": "any", "field": "sold" })),
            ("rollup", json!({ "relation": "books", "aggregate": "max", "field": "title" })),
            ("rollup", json!({ "relation": "books", "aggregate": "avg", "field": "editor_age" })),
            ("lookup", json!({ "relation": "books", "field": "title" })),
            ("rollup", json!({ "relation": "name", "aggregate": "count" })),
            ("rollup", json!({ "relation": "books" })),
            ("rollup", json!({ "relation": "books", "aggregate": "sum" })),
            ("rollup", json!({ "relation": "books", "aggregate": "sum", "field": "title" })),
            ("rollup", json!({ "relation": "books", "aggregate": "all", "field": "price" })),
            ("rollup", json!({ "relation": "books", "aggregate": "join", "field": "price" })),
            ("lookup", json!({ "relation": "books", "field": "prices" })),
            ("lookup", json!({ "relation": "books", "field": "authors" })),
            ("lookup", json!({ "relation": "books", "field": "notes" })),
            ("lookup", json!({ "relation": "books", "field": "editor_wealth" })),
        ] {
            let options: FieldOptions = serde_json::from_value(options).unwrap();
            let kind = FieldType::parse(kind).unwrap();
            // The last candidate would create a cycle: wealth depends on prices, and editor_wealth on wealth.
            let key = if options.field.as_deref() == Some("editor_wealth") { "wealth" } else { "fresh" };
            let checked = compute::check(read, &shapes, &shape, Candidate { key, kind, options: &options })?;
            answers.push(
                checked
                    .map_or_else(|problem| problem.code.to_owned(), |kind| kind.unwrap().as_str().to_owned()),
            );
        }
        Ok(answers)
    });
    assert_eq!(
        found.await.unwrap(),
        [
            "integer",
            "number",
            "text",
            "boolean",
            "text",
            "number",
            "json",
            "invalid_relation",
            "invalid_aggregate",
            "invalid_field",
            "invalid_aggregate",
            "invalid_aggregate",
            "invalid_aggregate",
            "invalid_field",
            "invalid_field",
            "invalid_field",
            "formula_cycle",
        ]
    );
}
