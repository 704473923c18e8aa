//! Filters, order, pages, search and aggregates.

mod aggregate;
mod columnar;
mod indexes;
mod list;
mod model;
mod operators;
mod plans;
mod property;
mod related;
mod search;
mod texts;

use serde_json::Value;
use testkit::{Answer, Key, TestApp};

/// Encodes pairs as a query string.
pub fn query(pairs: &[(String, String)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

/// Lists items.
pub async fn list(app: &TestApp, key: &Key, collection: impl std::fmt::Display, query: &str) -> Answer {
    app.get(&format!("/collections/{collection}/items?{query}"), key).await
}

/// Returns the ids of a page of items.
pub fn ids(answer: &Answer) -> Vec<i64> {
    answer.expect(200).as_array().unwrap().iter().map(|item| item["id"].as_i64().unwrap()).collect()
}

/// Creates an item with these values and returns the response.
pub async fn create(app: &TestApp, key: &Key, collection: impl std::fmt::Display, data: Value) -> Value {
    let body = serde_json::json!({ "data": data });
    app.post(&format!("/collections/{collection}/items"), key, body).await.expect(201)
}
