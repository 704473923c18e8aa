//! Relation fields: both ends agree, whichever is written.

use super::Library;
use serde_json::{Value, json};
use std::sync::Arc;
use testkit::Kind;

#[testkit::both]
async fn both_ends_say_the_same(kind: Kind) {
    let library = Library::open(kind).await;
    let (ann, bob) = (library.author("Ann").await, library.author("Bob").await);
    let (books, authors) = (library.books, library.authors);
    let first = library.put(books, json!({ "title": "First", "authors": [bob, ann] })).await;
    assert_eq!(library.value(books, first, "authors").await, json!([bob, ann]), "in the order given");
    assert_eq!(library.value(authors, ann, "books").await, json!([first]));
    let second = library.book("Second").await;
    library.change(authors, ann, json!({ "books": [second, first] })).await.expect(200);
    assert_eq!(library.value(books, second, "authors").await, json!([ann]));
    assert_eq!(library.value(books, first, "authors").await, json!([bob, ann]));
    library.change(books, first, json!({ "authors": [ann] })).await.expect(200);
    assert_eq!(library.value(authors, bob, "books").await, Value::Null);
    assert_eq!(library.value(authors, ann, "books").await, json!([second, first]));
    library.change(books, first, json!({ "authors": null })).await.expect(200);
    assert_eq!(library.value(authors, ann, "books").await, json!([second]));
    assert_eq!(crate::number(&library.app, "SELECT count(*) AS n FROM item_links").await, 2);
}

#[testkit::both]
async fn events_of_the_other_end_name_the_writer(kind: Kind) {
    let library = Library::open(kind).await;
    let ann = library.author("Ann").await;
    let before = library.look(library.authors, ann).await;
    let book = library.put(library.books, json!({ "title": "A", "authors": [ann] })).await;
    let emitted = crate::events(&library.app).await;
    let (kind, data) = emitted.last().unwrap();
    assert_eq!((kind.as_str(), &data["item"]["id"]), ("item.updated", &json!(ann)));
    assert_eq!(data["changed"]["books"], json!({ "old": null, "new": [book] }));
    let now = library.look(library.authors, ann).await;
    assert_eq!(now["version"], before["version"], "what it holds of others is not its own change");
    let sql = format!(
        "SELECT count(*) AS n FROM item_activity WHERE item_id = {ann} AND actor LIKE 'key\\_%' ESCAPE '\\'"
    );
    assert_eq!(crate::number(&library.app, &sql).await, 2);
    // Writing the same value again is no change and publishes nothing.
    library.change(library.books, book, json!({ "authors": [ann] })).await.expect(200);
    assert_eq!(crate::events(&library.app).await.len(), emitted.len());
}

#[testkit::both]
async fn more_than_25_are_cut_and_said_so(kind: Kind) {
    let library = Library::open(kind).await;
    let (books, authors) = (library.books, library.authors);
    let mut all = Vec::new();
    for number in 0..30 {
        all.push(library.author(&format!("A{number}")).await);
    }
    let book = library.put(books, json!({ "title": "Crowd", "authors": all })).await;
    let shown = library.look(books, book).await;
    assert_eq!(shown["data"]["authors"], json!(all[..25]));
    let more = &shown["has_more"]["authors"];
    assert_eq!((&more["total"], &more["total_is_exact"]), (&json!(30), &json!(true)));
    assert_eq!(more["url"], format!("/collections/{books}/items/{book}/links?field_key=authors"));
    // A value that was read can be written back.
    let back = shown["data"].clone();
    let at = library.at(books, format_args!("/{book}"));
    library.app.put(&at, &library.key, json!({ "data": back })).await.expect(200);
    assert_eq!(library.look(books, book).await["has_more"]["authors"]["total"], 30);
    // A deleted link after the first 25 lowers the total.
    library.change(authors, all[29], json!({ "books": [] })).await.expect(200);
    let shown = library.look(books, book).await;
    assert_eq!(shown["data"]["authors"], json!(all[..25]));
    assert_eq!(shown["has_more"]["authors"]["total"], 29);
    // A deleted link among the first 25 is replaced by the next.
    library.change(authors, all[0], json!({ "books": null })).await.expect(200);
    assert_eq!(library.value(books, book, "authors").await, json!(all[1..26]));
    library.change(books, book, json!({ "authors": all[20..26] })).await.expect(200);
    let shown = library.look(books, book).await;
    assert_eq!((&shown["data"]["authors"], &shown["has_more"]), (&json!(all[20..26]), &Value::Null));
    assert_eq!(library.value(authors, all[28], "books").await, Value::Null);
}

#[testkit::both]
async fn items_are_listed_by_what_they_point_to(kind: Kind) {
    let library = Library::open(kind).await;
    let (books, authors) = (library.books, library.authors);
    let (ann, bob) = (library.author("Ann").await, library.author("Bob").await);
    let first =
        library.put(books, json!({ "title": "B", "price": 2, "authors": [ann, bob], "editor": [ann] })).await;
    let second = library.put(books, json!({ "title": "A", "price": 1, "authors": [ann] })).await;
    let third = library.put(books, json!({ "title": "C", "price": 3, "authors": [bob] })).await;
    // With few items the planner would prefer a scan.
    for collection in [books, authors] {
        let rows = vec![json!({ "data": {} }); 150];
        library
            .app
            .post(&library.at(collection, "/bulk-create"), &library.key, json!({ "rows": rows }))
            .await
            .expect(200);
    }
    let list = async |collection, query: String| {
        let answer = library.app.get(&library.at(collection, format_args!("?{query}")), &library.key).await;
        let found: Vec<i64> =
            answer.expect(200).as_array().unwrap().iter().map(|item| item["id"].as_i64().unwrap()).collect();
        (found, answer.headers["x-svc-query-plan"].clone())
    };
    let emitted = |found: &[i64], plan: &str| (found.to_vec(), plan.to_owned());
    assert_eq!(
        list(books, format!("filter[authors]={ann}")).await,
        emitted(&[second, first], "links(authors); visited=2")
    );
    assert_eq!(
        list(books, format!("filter[authors]={ann}&sort=id")).await,
        emitted(&[first, second], "links(authors); visited=2")
    );
    assert_eq!(
        list(books, format!("filter[authors]={ann}&sort=title")).await,
        emitted(&[second, first], "links(authors); visited=2")
    );
    assert_eq!(
        list(books, format!("filter[authors][in]={ann},{bob}&sort=title")).await.0,
        [second, first, third]
    );
    assert_eq!(
        list(books, format!("filter[editor]={ann}")).await,
        emitted(&[first], "links(editor); visited=1")
    );
    assert_eq!(
        list(authors, format!("filter[books]={third}")).await,
        emitted(&[bob], "links(books); visited=1")
    );
    assert_eq!(
        list(books, format!("filter[authors]={ann}&filter[title]=A")).await,
        emitted(&[second], "links(authors); visited=2")
    );
    // A link to or from the trash is not found.
    library.trash(books, first).await.expect(200);
    assert_eq!(list(books, format!("filter[authors]={ann}")).await.0, [second]);
    library.trash(authors, ann).await.expect(200);
    assert_eq!(list(books, format!("filter[authors]={ann}")).await.0, Vec::<i64>::new());
}

#[testkit::both]
async fn what_does_not_exist_is_named(kind: Kind) {
    let library = Library::open(kind).await;
    let (books, authors) = (library.books, library.authors);
    library.add(books, "readers", "contact", json!({})).await;
    library.add(books, "owner", "user", json!({})).await;
    library.add(books, "scans", "file", json!({})).await;
    library.add(books, "parts", "relation", json!({ "target_collection_id": books })).await;
    let (ann, book) = (library.author("Ann").await, library.book("A").await);
    let gone = library.author("Gone").await;
    library.trash(authors, gone).await.expect(200);
    let refused = library.change(books, book, json!({ "authors": [ann, book, gone] })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("data.authors"));
    assert_eq!(refused.body["error"]["errors"][0]["code"], "not_found");
    let message = refused.body["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains(&format!("{book}, {gone}")) && !message.contains(&format!(" {ann},")),
        "{message}"
    );
    for (key, code) in
        [("readers", "not_found"), ("owner", "not_found"), ("scans", "not_found"), ("parts", "self_link")]
    {
        let refused = library.change(books, book, json!({ key: [book] })).await;
        assert_eq!(refused.expect_error(400, "validation_error"), Some(format!("data.{key}")));
        assert_eq!(refused.body["error"]["errors"][0]["code"], code, "{}", refused.text);
    }
    let two = library.change(books, book, json!({ "editor": [ann, ann + 1] })).await;
    two.expect_error(400, "validation_error");
    let other = library.book("B").await;
    library.change(books, book, json!({ "parts": [other] })).await.expect(200);
    // Items of another workspace count as missing.
    let stranger = crate::full(&library.app).await;
    let theirs =
        crate::seed::collection(&library.app, &stranger, json!([{ "key": "name", "type": "text" }])).await;
    let theirs =
        library.app.post(&format!("/collections/{theirs}/items"), &stranger, json!({ "data": {} })).await;
    let theirs = theirs.expect(201)["id"].clone();
    library.change(books, book, json!({ "authors": [theirs] })).await.expect_error(400, "validation_error");
}

#[testkit::both]
async fn one_is_one_at_either_end(kind: Kind) {
    let library = Library::open(kind).await;
    let (books, authors) = (library.books, library.authors);
    library.set(authors, "books", json!({ "cardinality": "one" })).await;
    let ann = library.author("Ann").await;
    let first = library.put(books, json!({ "title": "A", "authors": [ann] })).await;
    let second = library.book("B").await;
    let refused = library.change(books, second, json!({ "authors": [ann] })).await;
    assert_eq!(refused.expect_error(409, "link_exists").as_deref(), Some("data.authors"));
    assert_eq!(refused.body["error"]["details"]["to"], first);
    assert_eq!(library.value(books, second, "authors").await, Value::Null);
    library.change(authors, ann, json!({ "books": [second] })).await.expect(200);
    assert_eq!(library.value(books, first, "authors").await, Value::Null);
    assert_eq!(library.value(books, second, "authors").await, json!([ann]));
}

#[testkit::both]
async fn a_field_for_one_item_takes_its_id_alone(kind: Kind) {
    let library = Library::open(kind).await;
    let books = library.books;
    let (ann, bob) = (library.author("Ann").await, library.author("Bob").await);
    // A single id and a list are both accepted, and a list is returned.
    let book = library.put(books, json!({ "title": "A", "editor": ann })).await;
    for (sent, shown) in [
        (json!([bob]), json!([bob])),
        (json!(ann), json!([ann])),
        (Value::Null, Value::Null),
        (json!(bob), json!([bob])),
        (json!([]), Value::Null),
        (json!(ann), json!([ann])),
    ] {
        let changed = library.change(books, book, json!({ "editor": sent })).await.expect(200);
        assert_eq!(changed["data"]["editor"], shown, "{sent}");
        assert_eq!(library.value(books, book, "editor").await, shown, "{sent}");
    }
    let listed = library.app.get(&library.at(books, ""), &library.key).await.expect(200);
    assert_eq!(listed[0]["data"]["editor"], json!([ann]));
    let events = crate::events(&library.app).await;
    let shown = events
        .iter()
        .rev()
        .find(|(kind, _)| kind == "item.updated")
        .map(|(_, data)| &data["item"]["data"]["editor"]);
    assert_eq!(shown, Some(&json!([ann])));
    let found = library
        .app
        .get(&library.at(books, format_args!("?filter[editor]={ann}")), &library.key)
        .await
        .expect(200);
    assert_eq!(found[0]["id"], book);
    for wrong in [json!("x"), json!(0), json!(1.5), json!([ann, bob]), json!({ "id": ann }), json!(true)] {
        let refused = library.change(books, book, json!({ "editor": wrong })).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("data.editor"), "{wrong}");
    }
    // A field for many items accepts lists only.
    let refused = library.change(books, book, json!({ "authors": ann })).await;
    assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some("data.authors"));
}

#[testkit::both]
async fn a_locked_item_keeps_its_links(kind: Kind) {
    let library = Library::open(kind).await;
    let ann = library.author("Ann").await;
    library
        .app
        .sql(format!("UPDATE items SET locked_by = '{{\"type\":\"system\",\"id\":\"x\"}}' WHERE id = {ann}"))
        .await;
    let body = json!({ "data": { "title": "A", "authors": [ann] } });
    let refused = library.app.post(&library.at(library.books, ""), &library.key, body).await;
    refused.expect_error(409, "item_locked");
    // A link without a reverse field does not change its target.
    library.put(library.books, json!({ "title": "A", "editor": [ann] })).await;
}

#[testkit::both]
async fn many_write_both_ends_at_once(kind: Kind) {
    let library = Arc::new(Library::open(kind).await);
    let (mut authors, mut books) = (Vec::new(), Vec::new());
    for number in 0..6 {
        authors.push(library.author(&format!("A{number}")).await);
        books.push(library.book(&format!("B{number}")).await);
    }
    let mut writes = Vec::new();
    for round in 0..24_usize {
        let library = library.clone();
        let some = |ids: &[i64]| json!([ids[round % 6], ids[(round * 5 + 1) % 6], ids[(round / 2) % 6]]);
        let (to_books, to_authors) = (some(&books), some(&authors));
        let (book, author) = (books[(round / 3) % 6], authors[(round * 7) % 6]);
        writes.push(tokio::spawn(async move {
            let answer = if round % 2 == 0 {
                library.change(library.books, book, json!({ "authors": to_authors })).await
            } else {
                library.change(library.authors, author, json!({ "books": to_books })).await
            };
            answer.expect(200);
        }));
    }
    for write in writes {
        write.await.unwrap();
    }
    for book in &books {
        let listed = library.value(library.books, *book, "authors").await;
        for author in &authors {
            let back = library.value(library.authors, *author, "books").await;
            let has = |list: &Value, id: &i64| list.as_array().is_some_and(|list| list.contains(&json!(id)));
            assert_eq!(has(&listed, author), has(&back, book), "book {book}, author {author}");
        }
    }
}
