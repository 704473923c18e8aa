//! What a program may ask of the outside, answered by the caller of the crate.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Answers what a program asks. Each method may refuse; the program sees an error that it can catch.
#[async_trait]
pub trait Host: Send + Sync {
    /// `ctx.fetch`. Placeholders of secrets in the request are for this method to fill in.
    async fn fetch(&self, _request: FetchRequest) -> Result<FetchResponse, HostError> {
        Err(HostError::absent("fetch"))
    }

    /// `ctx.items.find(collection, query)`.
    async fn find_items(&self, _collection: String, _query: Value) -> Result<Value, HostError> {
        Err(HostError::absent("items.find"))
    }

    /// `ctx.items.get(collection, id)`.
    async fn get_item(&self, _collection: String, _id: String) -> Result<Value, HostError> {
        Err(HostError::absent("items.get"))
    }

    /// `ctx.kv.get(key)`.
    async fn kv_get(&self, _key: String) -> Result<Value, HostError> {
        Err(HostError::absent("kv.get"))
    }

    /// `ctx.kv.set(key, value)`.
    async fn kv_set(&self, _key: String, _value: Value) -> Result<(), HostError> {
        Err(HostError::absent("kv.set"))
    }

    /// `ctx.kv.delete(key)`.
    async fn kv_delete(&self, _key: String) -> Result<(), HostError> {
        Err(HostError::absent("kv.delete"))
    }
}

/// A host that refuses everything: for checks, and for scripts without an outside.
#[derive(Debug, Clone, Copy)]
pub struct NoHost;

impl Host for NoHost {}

/// An error that the program gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostError {
    /// The name of the error in the program, such as `NetworkDenied`.
    pub name: String,
    /// Its message.
    pub message: String,
    /// Its code, such as `not_found`; the program finds it in `error.code`.
    pub code: Option<String>,
}

impl HostError {
    /// An error with this name and message.
    #[must_use]
    pub fn new(name: &str, message: &str) -> Self {
        Self { name: name.to_owned(), message: message.to_owned(), code: None }
    }

    /// The same error with a code.
    #[must_use]
    pub fn code(self, code: &str) -> Self {
        Self { code: Some(code.to_owned()), ..self }
    }

    fn absent(what: &str) -> Self {
        Self::new("NotAvailable", &format!("{what} is not available here"))
    }
}

/// A request of `ctx.fetch`, unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchRequest {
    /// The method in capital letters.
    pub method: String,
    /// The address.
    pub url: String,
    /// Names in small letters, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// A response of `ctx.fetch`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchResponse {
    /// The status.
    pub status: u16,
    /// The address after redirections.
    pub url: String,
    /// Names in small letters, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// What a worker asks, as JSON on the wire. The bytes of a body follow it.
#[derive(Debug, Deserialize)]
#[serde(tag = "call", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum HostCall {
    /// `ctx.fetch`
    Fetch {
        /// The method.
        method: String,
        /// The address.
        url: String,
        /// Headers.
        headers: Vec<(String, String)>,
    },
    /// `ctx.items.find`
    ItemsFind {
        /// The collection.
        collection: String,
        /// The query.
        query: Value,
    },
    /// `ctx.items.get`
    ItemsGet {
        /// The collection.
        collection: String,
        /// The item.
        id: String,
    },
    /// `ctx.kv.get`
    KvGet {
        /// The key.
        key: String,
    },
    /// `ctx.kv.set`
    KvSet {
        /// The key.
        key: String,
        /// The value.
        value: Value,
    },
    /// `ctx.kv.delete`
    KvDelete {
        /// The key.
        key: String,
    },
}

#[derive(Serialize)]
struct FetchHead<'a> {
    status: u16,
    url: &'a str,
    headers: &'a [(String, String)],
}

/// The answer to a host call: a JSON text and, for `fetch`, a body.
pub(crate) type HostAnswer = Result<(String, Vec<u8>), HostError>;

impl HostCall {
    /// Whether it is one of the few that leave the service.
    pub(crate) fn is_fetch(&self) -> bool {
        matches!(self, Self::Fetch { .. })
    }

    /// Asks `host`.
    pub(crate) async fn ask(self, body: Vec<u8>, host: &dyn Host) -> HostAnswer {
        let value = match self {
            Self::Fetch { method, url, headers } => {
                let response = host.fetch(FetchRequest { method, url, headers, body }).await?;
                let head =
                    FetchHead { status: response.status, url: &response.url, headers: &response.headers };
                return Ok((text(&head)?, response.body));
            }
            Self::ItemsFind { collection, query } => host.find_items(collection, query).await?,
            Self::ItemsGet { collection, id } => host.get_item(collection, id).await?,
            Self::KvGet { key } => host.kv_get(key).await?,
            Self::KvSet { key, value } => host.kv_set(key, value).await.map(|()| Value::Null)?,
            Self::KvDelete { key } => host.kv_delete(key).await.map(|()| Value::Null)?,
        };
        Ok((text(&value)?, Vec::new()))
    }
}

fn text(value: &impl Serialize) -> Result<String, HostError> {
    serde_json::to_string(value).map_err(|_| HostError::new("InternalError", "the answer cannot be sent"))
}
