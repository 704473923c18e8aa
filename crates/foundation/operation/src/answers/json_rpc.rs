//! Answers that are JSON-RPC messages.

use crate::answers::answer::{Answer, Reply};
use crate::declaration::describe::Describe;
use model::{Error, Result};
use serde::Serialize;
use serde_json::Value;
use std::marker::PhantomData;
use utoipa::ToSchema;

/// A JSON-RPC response without the service's envelope, for operations declared with `json_rpc`.
#[derive(Debug)]
pub struct JsonRpc<T> {
    /// The status: 202 without a body for notifications.
    status: u16,
    body: String,
    shown: PhantomData<fn() -> T>,
}

impl<T: Serialize> JsonRpc<T> {
    /// Creates an answer with a message.
    ///
    /// # Errors
    /// `internal_error` when the message cannot be serialized.
    pub fn new(status: u16, message: &T) -> Result<Self> {
        let body = serde_json::to_string(message).map_err(Error::internal)?;
        Ok(Self { status, body, shown: PhantomData })
    }
}

impl<T: Serialize + ToSchema> Answer for JsonRpc<T> {
    fn reply(self) -> Result<Reply> {
        Ok(Reply::new(self.status, self.body))
    }

    fn describe(describe: &mut Describe) {
        let schema = describe.schema_json::<T>();
        describe.bare_success(200, schema);
        describe.bare_success(202, Value::Null);
        describe.events(
            "`notifications/progress` and then the response, as server-sent events. Only for a `tools/call` with a \
             `progressToken`.",
        );
    }
}
