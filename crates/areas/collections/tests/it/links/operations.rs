//! The operations on links.

use super::Library;
use model::Env;
use serde_json::{Value, json};
use testkit::{Answer, Kind};

impl Library {
    /// Returns the path of an item's links.
    fn links(&self, item: i64, rest: &str) -> String {
        self.at(self.books, format_args!("/{item}/links{rest}"))
    }

    async fn link(&self, item: i64, body: Value) -> Answer {
        self.app.post(&self.links(item, ""), &self.key, body).await
    }

    async fn list(&self, item: i64, query: &str) -> Vec<Value> {
        let rows = self.app.get(&self.links(item, query), &self.key).await.expect(200);
        rows.as_array().unwrap().clone()
    }

    /// Inserts a file of the workspace.
    async fn file(&self, name: &str) -> i64 {
        let workspace = self.key.workspace;
        self.app
            .sql(format!(
                "INSERT INTO files (workspace_id, name, mime_type, size, sha256, storage_key, path_token, status, \
                 uploaded_by, version, created_at, updated_at) VALUES ({workspace}, '{name}', 'text/plain', 1, '', \
                 '{name}', '{name}', 'ready', '{{}}', 1, '2026-01-15 12:00:00', '2026-01-15 12:00:00')"
            ))
            .await;
        crate::number(&self.app, "SELECT max(id) AS n FROM files").await
    }
}

fn to(id: i64) -> Value {
    json!({ "type": "item", "id": id })
}

#[testkit::both]
async fn free_links_point_to_items_files_and_runs(kind: Kind) {
    let library = Library::open(kind).await;
    let workspace = library.app.workspace().await;
    let (book, ann) = (library.book("A").await, library.author("Ann").await);
    let made =
        library.link(book, json!({ "to": to(ann), "role": "fan", "note": "since 2020" })).await.expect(201);
    assert_eq!(
        made["linked"],
        json!({ "type": "item", "id": ann, "title": "Ann", "collection_id": library.authors })
    );
    assert_eq!(
        (&made["role"], &made["field_key"], &made["direction"]),
        (&json!("fan"), &Value::Null, &json!("out"))
    );
    assert_eq!(made["from"], json!({ "collection_id": library.books, "item_id": book }));
    let file = library.file("scan").await;
    library.link(book, json!({ "to": { "type": "file", "id": file } })).await.expect(201);
    let listed = library.list(book, "").await;
    assert_eq!(listed.len(), 2);
    assert_eq!(
        listed[1]["linked"],
        json!({ "type": "file", "id": file, "title": "scan", "mime_type": "text/plain" })
    );
    assert_eq!(library.list(book, "?type=file").await.len(), 1);
    assert_eq!(library.list(book, "?role=fan").await, std::slice::from_ref(&made));
    assert_eq!(library.list(book, "?role=foe").await.len(), 0);
    // A run of another workspace, which then moves to this one.
    let runner = library.app.key(workspace, Env::Live, &["*"]).await;
    let theirs = library.app.post("/runs", &runner, json!({ "input": "Hello" })).await.expect(200);
    let foreign = json!({ "to": { "type": "run", "id": theirs["id"] } });
    library.link(book, foreign.clone()).await.expect_error(404, "not_found");
    library.app.sql(format!("UPDATE runs SET workspace_id = {}", library.key.workspace)).await;
    let run = library.link(book, foreign).await.expect(201);
    assert_eq!(
        run["linked"],
        json!({ "type": "run", "id": theirs["id"], "title": null, "status": "completed" })
    );
    let emitted = crate::events(&library.app).await;
    let created: Vec<_> = emitted.iter().filter(|(kind, _)| kind == "item.link.created").collect();
    assert_eq!((created.len(), &created[0].1["link"]), (3, &made));
    let sql = format!(
        "SELECT count(*) AS n FROM item_activity WHERE action = 'linked' AND item_id IN ({book}, {ann})"
    );
    assert_eq!(crate::number(&library.app, &sql).await, 4, "three at the book, one at the other end");
    assert_eq!(library.look(library.books, book).await["version"], 1, "no value of it changed");
}

#[testkit::both]
async fn links_of_a_field_are_its_values(kind: Kind) {
    let library = Library::open(kind).await;
    let (books, authors) = (library.books, library.authors);
    let (book, ann, bob) =
        (library.book("A").await, library.author("Ann").await, library.author("Bob").await);
    let made = library
        .link(book, json!({ "to": to(ann), "field_key": "authors", "note": "first" }))
        .await
        .expect(201);
    library.link(book, json!({ "to": to(bob), "field_key": "authors", "position": -1 })).await.expect(201);
    assert_eq!(library.value(books, book, "authors").await, json!([bob, ann]));
    assert_eq!(library.value(authors, ann, "books").await, json!([book]));
    assert_eq!(library.look(books, book).await["version"], 3);
    let again = library.link(book, json!({ "to": to(ann), "field_key": "authors" })).await;
    again.expect_error(409, "link_exists");
    assert_eq!(again.body["error"]["details"]["existing_id"], made["id"]);
    let keys: Vec<_> =
        library.list(book, "?field_key=authors").await.iter().map(|link| link["to"]["id"].clone()).collect();
    assert_eq!(keys, [json!(bob), json!(ann)]);
    // For the author, its own row is outgoing and the row of the book is incoming.
    let at = |query: &str| library.at(authors, format_args!("/{ann}/links{query}"));
    let seen = library.app.get(&at("?direction=in"), &library.key).await.expect(200);
    assert_eq!(
        (&seen[0]["id"], &seen[0]["field_key"], &seen[0]["direction"]),
        (&made["id"], &json!("authors"), &json!("in"))
    );
    assert_eq!(seen[0]["linked"]["title"], "A");
    let both = library.app.get(&at("?direction=both"), &library.key).await.expect(200);
    assert_eq!((both.as_array().unwrap().len(), &both[0]["field_key"]), (1, &json!("books")));
    // Deleting a link from either end removes both rows.
    let gone = library.app.delete(&at(&format!("/{}", made["id"])), &library.key).await.expect(200);
    assert_eq!(gone, json!({ "id": made["id"], "object": "item_link", "deleted": true }));
    assert_eq!(library.value(books, book, "authors").await, json!([bob]));
    assert_eq!(library.value(authors, ann, "books").await, Value::Null);
    library.app.delete(&at(&format!("/{}", made["id"])), &library.key).await.expect_error(404, "not_found");
    let kinds = crate::event_types(&library.app).await;
    assert_eq!(
        kinds.iter().filter(|kind| kind.starts_with("item.link.")).collect::<Vec<_>>(),
        ["item.link.created", "item.link.created", "item.link.deleted"]
    );
    let sql = format!(
        "SELECT count(*) AS n FROM item_activity WHERE action = 'unlinked' AND item_id IN ({book}, {ann})"
    );
    assert_eq!(crate::number(&library.app, &sql).await, 2);
}

#[testkit::both]
async fn a_single_link_is_replaced_on_request(kind: Kind) {
    let library = Library::open(kind).await;
    let (books, authors) = (library.books, library.authors);
    library.set(authors, "books", json!({ "cardinality": "one" })).await;
    let (ann, bob) = (library.author("Ann").await, library.author("Bob").await);
    let (first, second) = (library.book("A").await, library.book("B").await);
    let body =
        |id: i64, key: &str, replace: bool| json!({ "to": to(id), "field_key": key, "replace": replace });
    library.link(first, body(ann, "editor", false)).await.expect(201);
    library.link(first, body(bob, "editor", false)).await.expect_error(409, "link_exists");
    library.link(first, body(bob, "editor", true)).await.expect(201);
    assert_eq!(library.value(books, first, "editor").await, json!([bob]));
    // An author can have only one book.
    library.link(first, body(ann, "authors", false)).await.expect(201);
    let refused = library.link(second, body(ann, "authors", false)).await;
    refused.expect_error(409, "link_exists");
    assert_eq!(refused.body["error"]["details"]["item_id"], first);
    library.link(second, body(ann, "authors", true)).await.expect(201);
    assert_eq!(library.value(books, first, "authors").await, Value::Null);
    assert_eq!(library.value(books, second, "authors").await, json!([ann]));
    assert_eq!(library.value(authors, ann, "books").await, json!([second]));
}

#[testkit::both]
async fn bad_links_are_refused(kind: Kind) {
    let library = Library::open(kind).await;
    let (books, authors) = (library.books, library.authors);
    let (book, other, ann) = (library.book("A").await, library.book("B").await, library.author("Ann").await);
    let gone = library.author("Gone").await;
    library.trash(authors, gone).await.expect(200);
    for (body, param) in [
        (json!({ "to": { "type": "contact", "id": "ana" } }), "to.id"),
        (json!({ "to": { "type": "task", "id": "x" } }), "to.id"),
        (json!({ "to": { "type": "conversation", "id": 1 } }), "to.type"),
        (json!({ "to": { "type": "planet", "id": 1 } }), "to.type"),
        (json!({ "to": { "type": "item", "id": "run_x" } }), "to.id"),
        (json!({ "to": { "type": "run", "id": 5 } }), "to.id"),
        (json!({ "to": to(book) }), "to.id"),
        (json!({ "to": to(other), "field_key": "authors" }), "to.id"),
        (json!({ "to": { "type": "file", "id": 1 }, "field_key": "authors" }), "to.type"),
        (json!({ "to": to(ann), "field_key": "title" }), "field_key"),
        (json!({ "to": to(ann), "field_key": "autors" }), "field_key"),
        (json!({ "to": to(ann), "role": " " }), "role"),
        (json!({ "to": to(ann), "extra": 1 }), "extra"),
        (json!({ "role": "x" }), "to"),
    ] {
        let refused = library.link(book, body.clone()).await;
        assert_eq!(refused.expect_error(400, "validation_error").as_deref(), Some(param), "{body}");
    }
    for body in [
        json!({ "to": to(gone) }),
        json!({ "to": to(gone), "field_key": "authors" }),
        json!({ "to": to(i64::MAX) }),
        json!({ "to": { "type": "contact", "id": 999 } }),
        json!({ "to": { "type": "task", "id": 999 } }),
        json!({ "to": { "type": "file", "id": 999 } }),
        json!({ "to": { "type": "run", "id": "run_01" } }),
        json!({ "to": { "type": "run", "id": "'; --" } }),
    ] {
        let refused = library.link(book, body.clone()).await;
        assert_eq!(refused.expect_error(404, "not_found").as_deref(), Some("to.id"), "{body}");
    }
    library.link(gone, json!({ "to": to(ann) })).await.expect_error(404, "not_found");
    for query in ["?direction=up", "?type=planet", "?paginate=true&starting_after=x"] {
        library
            .app
            .get(&library.links(book, query), &library.key)
            .await
            .expect_error(400, "validation_error");
    }
    // Other workspaces find nothing.
    let made = library.link(book, json!({ "to": to(ann) })).await.expect(201);
    let stranger = crate::full(&library.app).await;
    let at = library.links(book, "");
    library.app.get(&at, &stranger).await.expect_error(404, "not_found");
    library.app.post(&at, &stranger, json!({ "to": to(ann) })).await.expect_error(404, "not_found");
    library.app.delete(&format!("{at}/{}", made["id"]), &stranger).await.expect_error(404, "not_found");
    let theirs =
        crate::seed::collection(&library.app, &stranger, json!([{ "key": "name", "type": "text" }])).await;
    let mine =
        library.app.post(&format!("/collections/{theirs}/items"), &stranger, json!({ "data": {} })).await;
    let mine = mine.expect(201)["id"].as_i64().unwrap();
    library.link(book, json!({ "to": to(mine) })).await.expect_error(404, "not_found");
    // Locked items and archived collections keep their links.
    let lock = |id: i64| {
        format!("UPDATE items SET locked_by = '{{\"type\":\"system\",\"id\":\"x\"}}' WHERE id = {id}")
    };
    library.app.sql(lock(book)).await;
    library
        .link(book, json!({ "to": to(ann), "field_key": "authors" }))
        .await
        .expect_error(409, "item_locked");
    library.app.delete(&format!("{at}/{}", made["id"]), &library.key).await.expect_error(409, "item_locked");
    library.app.sql(lock(ann)).await;
    library
        .link(other, json!({ "to": to(ann), "field_key": "authors" }))
        .await
        .expect_error(409, "item_locked");
    library
        .app
        .sql(format!("UPDATE collections SET status = 'archived', shape_version = 77 WHERE id = {books}"))
        .await;
    library.link(other, json!({ "to": to(ann) })).await.expect_error(409, "invalid_state");
}

#[testkit::both]
async fn all_links_of_a_kind_are_set_at_once(kind: Kind) {
    let library = Library::open(kind).await;
    let (books, authors) = (library.books, library.authors);
    let book = library.book("A").await;
    let mut people = Vec::new();
    for name in ["Ann", "Bob", "Eve", "Dan"] {
        people.push(library.author(name).await);
    }
    let put = async |body: Value| library.app.put(&library.links(book, ""), &library.key, body).await;
    let named = |ids: &[i64]| ids.iter().map(|id| json!({ "to": to(*id) })).collect::<Vec<_>>();
    let set = put(json!({ "field_key": "authors", "links": named(&people[..3]) })).await.expect(200);
    assert_eq!(set["summary"], json!({ "created": 3, "updated": 0, "unchanged": 0, "deleted": 0 }));
    assert_eq!(library.value(books, book, "authors").await, json!(people[..3]));
    let version = library.look(books, book).await["version"].clone();
    let set = put(json!({ "field_key": "authors", "links": named(&people[..3]) })).await.expect(200);
    assert_eq!(set["summary"]["unchanged"], 3);
    assert_eq!(library.look(books, book).await["version"], version, "nothing changed");
    let links =
        json!([{ "to": to(people[2]), "note": "leads" }, { "to": to(people[3]) }, { "to": to(people[1]) }]);
    let set = put(json!({ "field_key": "authors", "links": links })).await.expect(200);
    assert_eq!(set["summary"], json!({ "created": 1, "updated": 2, "unchanged": 0, "deleted": 1 }));
    let status: Vec<_> = set["results"].as_array().unwrap().iter().map(|one| one["status"].clone()).collect();
    assert_eq!(status, ["updated", "created", "updated"]);
    assert_eq!(library.value(books, book, "authors").await, json!([people[2], people[3], people[1]]));
    assert_eq!(library.value(authors, people[0], "books").await, Value::Null);
    assert_eq!(library.value(authors, people[3], "books").await, json!([book]));
    let at = library.at(authors, format_args!("/{}/links", people[2]));
    assert_eq!(
        library.app.get(&at, &library.key).await.expect(200)[0]["note"],
        "leads",
        "at the other end too"
    );
    // Free links, by type and role.
    let free = |role: &str, ids: &[i64]| json!({ "type": "item", "role": role, "links": named(ids) });
    put(free("fan", &people[..2])).await.expect(200);
    put(free("foe", &people[2..3])).await.expect(200);
    put(free("foe", &people[..1])).await.expect_error(409, "link_exists");
    let set = put(free("fan", &people[1..2])).await.expect(200);
    assert_eq!(set["summary"], json!({ "created": 0, "updated": 1, "unchanged": 0, "deleted": 1 }));
    assert_eq!(library.list(book, "?role=foe").await.len(), 1, "the other kind stays");
    put(json!({ "type": "item", "links": [] })).await.expect(200);
    assert_eq!(library.list(book, "").await.len(), 3, "those of the field are another kind");
    put(json!({ "field_key": "authors", "links": [] })).await.expect(200);
    assert_eq!(library.list(book, "?direction=both").await.len(), 0);
    for (body, param) in [
        (json!({ "links": [] }), "field_key"),
        (json!({ "field_key": "authors", "type": "item", "links": [] }), "field_key"),
        (json!({ "field_key": "price", "links": [] }), "field_key"),
        (json!({ "field_key": "editor", "links": named(&people) }), "links"),
        (json!({ "field_key": "authors", "links": named(&[people[0], people[0]]) }), "links[1].to"),
        (json!({ "field_key": "authors", "links": named(&[people[0], book]) }), "links[1].to.id"),
        (json!({ "type": "file", "links": named(&people) }), "links[0].to.type"),
        (
            json!({ "type": "conversation", "links": [{ "to": { "type": "conversation", "id": 1 } }] }),
            "links[0].to.type",
        ),
    ] {
        assert_eq!(
            put(body.clone()).await.expect_error(400, "validation_error").as_deref(),
            Some(param),
            "{body}"
        );
    }
    assert_eq!(library.list(book, "?direction=both").await.len(), 0, "a refusal leaves nothing");
}

#[testkit::both]
async fn pages_join_to_the_whole(kind: Kind) {
    let library = Library::open(kind).await;
    let book = library.book("Hub").await;
    let (mut people, file) = (Vec::new(), library.file("f").await);
    for number in 0..12 {
        people.push(library.author(&format!("P{number}")).await);
    }
    library.change(library.books, book, json!({ "authors": people })).await.expect(200);
    for person in &people[..5] {
        library.link(book, json!({ "to": to(*person), "role": "fan", "position": 3 })).await.expect(201);
        let back = json!({ "to": to(book), "role": "hub" });
        let at = library.at(library.authors, format_args!("/{person}/links"));
        library.app.post(&at, &library.key, back).await.expect(201);
    }
    library.link(book, json!({ "to": { "type": "file", "id": file } })).await.expect(201);
    library.trash(library.authors, people[1]).await.expect(200);
    for (query, many) in
        [("direction=out", 16), ("direction=in", 15), ("direction=both", 20), ("type=item", 15)]
    {
        let whole = library.list(book, &format!("?{query}")).await;
        assert_eq!(whole.len(), many, "{query}");
        for limit in [1, 3, 7] {
            let (mut joined, mut after) = (Vec::new(), String::new());
            loop {
                let path = library.links(book, &format!("?{query}&paginate=true&limit={limit}{after}"));
                let page = library.app.get(&path, &library.key).await;
                joined.extend(page.expect(200).as_array().unwrap().clone());
                let Some(cursor) = page.body["next_cursor"].as_str() else { break };
                after = format!("&starting_after={cursor}");
            }
            assert_eq!(joined, whole, "{query} by {limit}");
        }
    }
}

#[testkit::both]
async fn the_kinds_are_listed(kind: Kind) {
    let library = Library::open(kind).await;
    let kinds = library.app.get("/item-links/kinds", &library.key).await.expect(200);
    let available = |kind: &&Value| kind["available"] == true;
    let available: Vec<_> =
        kinds.as_array().unwrap().iter().filter(available).map(|kind| kind["type"].clone()).collect();
    assert_eq!(available, ["item", "contact", "task", "file", "run"]);
}
