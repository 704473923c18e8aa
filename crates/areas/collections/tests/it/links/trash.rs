//! Links of items that are trashed and restored.

use super::Library;
use serde_json::{Value, json};
use testkit::Kind;

#[testkit::both]
async fn links_wait_in_the_trash(kind: Kind) {
    let library = Library::open(kind).await;
    let (books, authors) = (library.books, library.authors);
    let (ann, bob) = (library.author("Ann").await, library.author("Bob").await);
    let book = library.put(books, json!({ "title": "A", "authors": [ann, bob], "editor": [ann] })).await;
    library.trash(authors, ann).await.expect(200);
    assert_eq!(library.value(books, book, "authors").await, json!([bob]));
    assert_eq!(library.value(books, book, "editor").await, Value::Null);
    // Concurrent changes of other links do not affect it.
    let eve = library.author("Eve").await;
    library.change(books, book, json!({ "authors": [eve] })).await.expect(200);
    library.restore(authors, ann).await.expect(200);
    assert_eq!(library.value(books, book, "authors").await, json!([ann, eve]));
    assert_eq!(library.value(books, book, "editor").await, json!([ann]));
    assert_eq!(library.value(authors, ann, "books").await, json!([book]));
    library.purge(authors, ann).await.expect(200);
    assert_eq!(library.value(books, book, "authors").await, json!([eve]));
    let left = format!("SELECT count(*) AS n FROM item_links WHERE item_id = {ann} OR to_id = '{ann}'");
    assert_eq!(crate::number(&library.app, &left).await, 0);
}

#[testkit::both]
async fn a_place_that_was_taken_is_taken(kind: Kind) {
    let library = Library::open(kind).await;
    let (books, authors) = (library.books, library.authors);
    let (ann, bob) = (library.author("Ann").await, library.author("Bob").await);
    let book = library.put(books, json!({ "title": "A", "editor": [ann] })).await;
    library.trash(authors, ann).await.expect(200);
    library.change(books, book, json!({ "editor": [bob] })).await.expect(200);
    library.restore(authors, ann).await.expect(200);
    assert_eq!(library.value(books, book, "editor").await, json!([bob]));
    library.change(books, book, json!({ "editor": null })).await.expect(200);
    library.trash(authors, ann).await.expect(200);
    library.restore(authors, ann).await.expect(200);
    assert_eq!(library.value(books, book, "editor").await, Value::Null);
}

#[testkit::both]
async fn restrict_refuses_while_anybody_points(kind: Kind) {
    let library = Library::with(kind, json!({ "on_delete": "restrict" }), json!([]), json!([])).await;
    let (books, authors) = (library.books, library.authors);
    let ann = library.author("Ann").await;
    let book = library.put(books, json!({ "title": "A", "authors": [ann] })).await;
    let refused = library.trash(authors, ann).await;
    refused.expect_error(409, "resource_in_use");
    assert_eq!(
        refused.body["error"]["details"],
        json!({ "item_id": ann, "field_key": "authors", "item_ids": [book] })
    );
    library.purge(authors, ann).await.expect_error(409, "resource_in_use");
    assert_eq!(library.look(authors, ann).await["data"]["books"], json!([book]));
    library.trash(books, book).await.expect(200);
    library.trash(authors, ann).await.expect(200);
}

#[testkit::both]
async fn cascades_follow_in_one_operation(kind: Kind) {
    let library = Library::with(kind, json!({ "on_delete": "cascade" }), json!([]), json!([])).await;
    let (books, authors) = (library.books, library.authors);
    library
        .add(
            books,
            "follows",
            "relation",
            json!({
                "target_collection_id": books, "cardinality": "one", "on_delete": "cascade"
            }),
        )
        .await;
    let (ann, bob) = (library.author("Ann").await, library.author("Bob").await);
    let first = library.put(books, json!({ "title": "A", "authors": [ann, bob] })).await;
    let mut last = first;
    let mut chain = vec![first];
    for number in 0..60 {
        last = library.put(books, json!({ "title": format!("Part {number}"), "follows": [last] })).await;
        chain.push(last);
    }
    library.trash(authors, ann).await.expect(200);
    for book in chain {
        library
            .app
            .get(&library.at(books, format_args!("/{book}")), &library.key)
            .await
            .expect_error(404, "not_found");
    }
    assert_eq!(library.value(authors, bob, "books").await, Value::Null);
    let sql = "SELECT count(*) AS n FROM item_activity WHERE action = 'trashed' AND operation_id IS NOT NULL";
    assert_eq!(crate::number(&library.app, sql).await, 62);
    let sql = "SELECT count(DISTINCT operation_id) AS n FROM item_activity";
    assert_eq!(crate::number(&library.app, sql).await, 1);
    library.restore(books, first).await.expect(200);
    assert_eq!(library.value(authors, bob, "books").await, json!([first]));
    library.restore(authors, ann).await.expect(200);
    assert_eq!(library.value(books, first, "authors").await, json!([ann, bob]));
}

#[testkit::both]
async fn a_thousand_follow_at_once_and_the_rest_in_a_job(kind: Kind) {
    let library = Library::with(kind, json!({ "on_delete": "cascade" }), json!([]), json!([])).await;
    let (books, authors) = (library.books, library.authors);
    let ann = library.author("Ann").await;
    copies(&library, ann, "authors", 1_130).await;
    let live =
        format!("SELECT count(*) AS n FROM items WHERE collection_id = {books} AND trashed_at IS NULL");
    let locked = library.put(books, json!({ "title": "Locked" })).await;
    copies_of(&library, locked, ann, "authors").await;
    library
        .app
        .sql(format!(
            "UPDATE items SET locked_by = '{{\"type\":\"system\",\"id\":\"x\"}}' WHERE id = {locked}"
        ))
        .await;
    library.trash(authors, ann).await.expect(200);
    assert_eq!(crate::number(&library.app, &live).await, 131);
    library.work().await;
    assert_eq!(crate::number(&library.app, &live).await, 1, "what is locked stays");
    let sql = "SELECT count(DISTINCT operation_id) AS n FROM item_activity WHERE action = 'trashed'";
    assert_eq!(crate::number(&library.app, sql).await, 1);
    let emitted = "FROM events WHERE kind = 'item.trashed' AND request_id IS NOT NULL";
    assert_eq!(crate::number(&library.app, &format!("SELECT count(*) AS n {emitted}")).await, 1_131);
    let one = format!("SELECT count(DISTINCT request_id) AS n {emitted} AND key_id = '{}'", library.key.id);
    assert_eq!(
        crate::number(&library.app, &one).await,
        1,
        "the request is told with what follows in a job, too"
    );
}

#[testkit::both]
async fn copies_beyond_a_hundred_follow_in_a_job(kind: Kind) {
    let library = Library::open(kind).await;
    let (books, authors) = (library.books, library.authors);
    let ann = library.author("Ann").await;
    copies(&library, ann, "editor", 150).await;
    let holding =
        format!("SELECT count(*) AS n FROM items WHERE collection_id = {books} AND data LIKE '%editor%'");
    library.work().await;
    assert_eq!(crate::number(&library.app, &holding).await, 150);
    library.trash(authors, ann).await.expect(200);
    assert_eq!(crate::number(&library.app, &holding).await, 50);
    library.work().await;
    assert_eq!(crate::number(&library.app, &holding).await, 0);
    library.restore(authors, ann).await.expect(200);
    library.work().await;
    assert_eq!(crate::number(&library.app, &holding).await, 150);
}

/// Inserts many books that link to an author, by SQL. The copies in the values of the books are still missing.
async fn copies(library: &Library, author: i64, field: &str, many: usize) {
    let book = library.book("Copy").await;
    let (books, authors, workspace) = (library.books, library.authors, library.key.workspace);
    let columns = "workspace_id, collection_id, data, title, comment_count, version, created_by, updated_by, \
                   created_at, updated_at";
    library
        .app
        .sql(format!(
            "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {many}) \
             INSERT INTO items ({columns}) SELECT {columns} FROM items, n WHERE id = {book}"
        ))
        .await;
    let field = library.field_id(books, field).await;
    library
        .app
        .sql(format!(
            "INSERT INTO item_links (workspace_id, collection_id, item_id, field_id, to_kind, to_collection_id, to_id, \
             position, version, created_by, created_at, updated_at) SELECT {workspace}, {books}, id, {field}, 'item', \
             {authors}, '{author}', 0, 1, created_by, created_at, updated_at FROM items WHERE collection_id = {books}"
        ))
        .await;
    library
        .app
        .db()
        .write(move |tx| records::compute::enqueue_recompute(tx, workspace, books))
        .await
        .unwrap();
}

/// Links one more book to an author, in the same way.
async fn copies_of(library: &Library, book: i64, author: i64, field: &str) {
    let (books, authors, workspace) = (library.books, library.authors, library.key.workspace);
    let field = library.field_id(books, field).await;
    library
        .app
        .sql(format!(
            "INSERT INTO item_links (workspace_id, collection_id, item_id, field_id, to_kind, to_collection_id, to_id, \
             position, version, created_by, created_at, updated_at) SELECT {workspace}, {books}, id, {field}, 'item', \
             {authors}, '{author}', 0, 1, created_by, created_at, updated_at FROM items WHERE id = {book}"
        ))
        .await;
}
