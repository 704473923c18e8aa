//! Outbound webhooks through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod batches;
mod causes;
mod delivery;
mod endpoints;
mod fairness;
mod hostile;
mod interop;
mod order;
mod replay;
mod standing;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use model::Env;
use serde_json::Value;
use testkit::{Delivered, Key, MessageSent, TestApp};

/// A live key with all scopes of a workspace without agents.
pub async fn key(app: &TestApp) -> Key {
    let workspace = app.bare_workspace("scale", 0).await;
    app.key(workspace, Env::Live, &["*"]).await
}

/// An event about a contact.
pub fn contact(id: i64, text: &str) -> MessageSent {
    MessageSent::new(id, text)
}

/// The deliveries of an endpoint, newest first.
pub async fn deliveries(app: &TestApp, key: &Key, endpoint: &Value) -> Vec<Value> {
    let path = format!("/webhook-endpoints/{}/deliveries?limit=100", endpoint["id"].as_str().unwrap());
    app.get(&path, key).await.expect(200).as_array().unwrap().clone()
}

/// Whether one of the signatures is that of this secret.
pub fn is_signed(delivered: &Delivered, secret: &str) -> bool {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
    let header = |name: &str| delivered.headers[name].clone();
    let mut signed = format!("{}.{}.", header("webhook-id"), header("webhook-timestamp")).into_bytes();
    signed.extend_from_slice(&delivered.body);
    assert_eq!(header("webhook-signature"), header("x-svc-signature"));
    header("webhook-signature").split(' ').any(|signature| {
        let signature = STANDARD.decode(signature.strip_prefix("v1,").unwrap()).unwrap();
        ring::hmac::verify(&key, &signed, &signature).is_ok()
    })
}
