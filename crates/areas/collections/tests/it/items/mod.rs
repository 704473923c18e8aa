//! Items.

mod at_once;
mod bulk;
mod comments;
mod fields;
mod files;
mod numbers;
mod one;
mod order;
mod required;
mod together;
mod trash;

use crate::{full, seed};
use model::CollectionId;
use serde_json::{Value, json};
use testkit::{Key, Kind, TestApp};

/// A service with a key and a collection of products.
pub struct Shop {
    pub app: TestApp,
    pub key: Key,
    pub collection: CollectionId,
}

/// Returns the fields of the products.
pub fn product_fields() -> Value {
    json!([
        { "key": "name", "type": "text", "required": true },
        { "key": "sku", "type": "text", "unique": true },
        { "key": "price", "type": "number", "indexed": true, "options": { "min": 0 } },
        { "key": "stock", "type": "integer" },
        { "key": "active", "type": "boolean", "default": true },
        { "key": "category", "type": "select", "options": seed::choices(&["toys", "books", "food"]) },
        { "key": "tags", "type": "multi_select", "options": seed::choices(&["new", "sale"]) },
        { "key": "number", "type": "auto_number" },
        { "key": "made_on", "type": "date" },
        { "key": "changed", "type": "updated_at" },
    ])
}

impl Shop {
    pub async fn open(kind: Kind) -> Self {
        let app = TestApp::new(kind).await;
        let key = full(&app).await;
        let collection = seed::collection(&app, &key, product_fields()).await;
        Self { app, key, collection }
    }

    /// Returns a path below the items of the collection.
    pub fn at(&self, rest: impl std::fmt::Display) -> String {
        format!("/collections/{}/items{rest}", self.collection)
    }

    /// Returns the path of an item, followed by `rest`.
    pub fn of(&self, item: &Value, rest: &str) -> String {
        self.at(format_args!("/{}{rest}", item["id"]))
    }

    /// Creates an item with these values.
    pub async fn put_up(&self, data: Value) -> Value {
        self.app.post(&self.at(""), &self.key, json!({ "data": data })).await.expect(201)
    }

    /// Reads an item.
    pub async fn look(&self, item: &Value) -> Value {
        self.app.get(&self.of(item, ""), &self.key).await.expect(200)
    }
}
