//! Collections, their groups, fields, choices and views.

mod fields;
mod hidden;
mod lifecycle;
mod limits;
mod manage;
mod reindex;
mod resend;
mod types;
mod views;
mod whole;

use serde_json::Value;
use testkit::{Key, TestApp};

/// Creates a collection from `body` and returns its path.
pub async fn make(app: &TestApp, key: &Key, body: Value) -> String {
    let made = app.post("/collections", key, body).await.expect(201);
    format!("/collections/{}", made["id"])
}

/// Returns the field of a collection with this key.
pub async fn field(app: &TestApp, key: &Key, collection: &str, name: &str) -> Value {
    let fields = app.get(&format!("{collection}/fields"), key).await.expect(200);
    fields.as_array().unwrap().iter().find(|field| field["field_key"] == name).unwrap().clone()
}

/// Creates items with these values and returns their paths.
pub async fn items(app: &TestApp, key: &Key, collection: &str, rows: &[Value]) -> Vec<String> {
    let mut paths = Vec::new();
    for row in rows {
        let made = app
            .post(&format!("{collection}/items"), key, serde_json::json!({ "data": row }))
            .await
            .expect(201);
        paths.push(format!("{collection}/items/{}", made["id"]));
    }
    paths
}

/// The values of items.
pub async fn values(app: &TestApp, key: &Key, paths: &[String]) -> Vec<Value> {
    let mut values = Vec::new();
    for path in paths {
        values.push(app.get(path, key).await.expect(200)["data"].clone());
    }
    values
}
