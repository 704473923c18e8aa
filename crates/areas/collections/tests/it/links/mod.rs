//! Links, rollups and lookups.

mod agreement;
mod computed;
mod crossing;
mod operations;
mod relations;
mod sources;
mod trash;

use crate::{full, seed};
use diesel::prelude::*;
use model::{CollectionId, JsonText};
use records::schema::collection_fields;
use records::shape;
use serde_json::{Value, json};
use testkit::{Answer, Key, Kind, TestApp};

/// A service with collections of authors and books that are related.
pub struct Library {
    pub app: TestApp,
    pub key: Key,
    pub authors: CollectionId,
    pub books: CollectionId,
}

impl Library {
    /// Opens a library. Books have many authors and authors many books. A book also has at most one editor, without a
    /// reverse field.
    pub async fn open(kind: Kind) -> Self {
        Self::with(kind, json!({}), json!([]), json!([])).await
    }

    /// Opens a library with further options of `authors` and further fields.
    pub async fn with(kind: Kind, options: Value, of_books: Value, of_authors: Value) -> Self {
        let app = TestApp::new(kind).await;
        let key = full(&app).await;
        let mut fields = json!([{ "key": "name", "type": "text" }, { "key": "age", "type": "number" }]);
        fields.as_array_mut().unwrap().extend(of_authors.as_array().unwrap().clone());
        let authors = seed::collection(&app, &key, fields).await;
        let mut to_authors = json!({ "target_collection_id": authors });
        to_authors.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        let one = json!({ "target_collection_id": authors, "cardinality": "one" });
        let mut fields = json!([
            { "key": "title", "type": "text" },
            { "key": "price", "type": "number", "indexed": true },
            { "key": "sold", "type": "boolean" },
            { "key": "authors", "type": "relation", "options": to_authors },
            { "key": "editor", "type": "relation", "options": one },
        ]);
        fields.as_array_mut().unwrap().extend(of_books.as_array().unwrap().clone());
        let books = seed::collection(&app, &key, fields).await;
        let library = Self { app, key, authors, books };
        let to_books = json!({ "target_collection_id": books });
        library.add(authors, "books", "relation", to_books).await;
        library.pair((books, "authors"), (authors, "books")).await;
        library
    }

    /// Adds a field to a collection.
    pub async fn add(&self, collection: CollectionId, key: &'static str, kind: &'static str, options: Value) {
        let workspace = self.key.workspace;
        let done = self.app.db().write(move |tx| {
            let given = json!({ "type": kind, "options": options });
            seed::field(tx, key, 99, &given, workspace, collection)?;
            shape::bump(tx, collection)
        });
        done.await.unwrap();
    }

    /// Changes the options of a field.
    pub async fn set(&self, collection: CollectionId, key: &'static str, options: Value) {
        let done = self.app.db().write(move |tx| {
            let field = collection_fields::table
                .filter(collection_fields::collection_id.eq(collection))
                .filter(collection_fields::field_key.eq(key));
            let stored: JsonText = field.select(collection_fields::options).get_result(tx.connection())?;
            let mut all: Value = stored.parse()?;
            all.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
            diesel::update(collection_fields::table)
                .filter(collection_fields::collection_id.eq(collection))
                .filter(collection_fields::field_key.eq(key))
                .set(collection_fields::options.eq(all.to_string()))
                .execute(tx.connection())?;
            shape::bump(tx, collection)
        });
        done.await.unwrap();
    }

    pub async fn field_id(&self, collection: CollectionId, key: &str) -> i64 {
        let sql = format!(
            "SELECT id AS n FROM collection_fields WHERE collection_id = {collection} AND field_key = '{key}'"
        );
        crate::number(&self.app, &sql).await
    }

    /// Makes two relation fields the reverse of each other.
    pub async fn pair(&self, one: (CollectionId, &'static str), other: (CollectionId, &'static str)) {
        for (this, that) in [(one, other), (other, one)] {
            let back = self.field_id(that.0, that.1).await;
            self.set(this.0, this.1, json!({ "reverse_field_id": back })).await;
        }
    }

    pub fn at(&self, collection: CollectionId, rest: impl std::fmt::Display) -> String {
        format!("/collections/{collection}/items{rest}")
    }

    /// Creates an item and returns its id.
    pub async fn put(&self, collection: CollectionId, data: Value) -> i64 {
        let body = json!({ "data": data });
        self.app.post(&self.at(collection, ""), &self.key, body).await.expect(201)["id"].as_i64().unwrap()
    }

    pub async fn book(&self, title: &str) -> i64 {
        self.put(self.books, json!({ "title": title })).await
    }

    pub async fn author(&self, name: &str) -> i64 {
        self.put(self.authors, json!({ "name": name })).await
    }

    /// Changes values of an item.
    pub async fn change(&self, collection: CollectionId, id: i64, data: Value) -> Answer {
        let at = self.at(collection, format_args!("/{id}"));
        self.app.patch(&at, &self.key, json!({ "data": data })).await
    }

    pub async fn look(&self, collection: CollectionId, id: i64) -> Value {
        self.app.get(&self.at(collection, format_args!("/{id}")), &self.key).await.expect(200)
    }

    /// Returns the value of a field.
    pub async fn value(&self, collection: CollectionId, id: i64, key: &str) -> Value {
        self.look(collection, id).await["data"][key].clone()
    }

    pub async fn trash(&self, collection: CollectionId, id: i64) -> Answer {
        self.app.delete(&self.at(collection, format!("/{id}")), &self.key).await
    }

    pub async fn purge(&self, collection: CollectionId, id: i64) -> Answer {
        self.app.delete(&self.at(collection, format!("/{id}?permanent=true")), &self.key).await
    }

    pub async fn restore(&self, collection: CollectionId, id: i64) -> Answer {
        self.app.post(&self.at(collection, format!("/{id}/restore")), &self.key, json!({})).await
    }

    /// Runs jobs until none is due.
    pub async fn work(&self) {
        while self.app.service.jobs.run_due().await.unwrap() > 0 {}
    }
}
