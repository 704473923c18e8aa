//! Answers of operations: JSON in the response envelope, with `success` first.

use crate::declaration::describe::as_json;
use crate::{Describe, EventStream};
use model::{Error, Result};
use serde::Serialize;
use serde_json::{Value, json};
use std::marker::PhantomData;
use std::{fmt, slice};
use utoipa::ToSchema;

/// A rendered answer.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: ReplyBody,
    /// The answer's own headers, in addition to those that every answer has. Of these, only `etag` and `location` are
    /// stored for an `Idempotency-Key`.
    pub headers: Vec<(&'static str, String)>,
}

/// The body of a [`Reply`].
pub enum ReplyBody {
    /// The complete JSON text.
    Whole(String),
    /// A stream of events. It is not stored for an `Idempotency-Key`: the operation itself stores the answer to a
    /// resend, and declares that with [`crate::Cx::mark_answered`].
    Events(EventStream),
}

impl fmt::Debug for ReplyBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(text) => f.debug_tuple("Whole").field(text).finish(),
            Self::Events(_) => f.write_str("Events"),
        }
    }
}

impl Reply {
    /// Creates an answer without headers of its own.
    pub fn new(status: u16, body: String) -> Self {
        Self { status, body: ReplyBody::Whole(body), headers: Vec::new() }
    }

    /// Creates a 200 answer with a stream of events.
    pub fn events(events: EventStream) -> Self {
        Self { status: 200, body: ReplyBody::Events(events), headers: Vec::new() }
    }

    /// Returns the complete body.
    ///
    /// # Errors
    /// `internal_error` for a stream of events.
    pub fn text(&self) -> Result<&str> {
        match &self.body {
            ReplyBody::Whole(text) => Ok(text),
            ReplyBody::Events(_) => Err(Error::internal("a stream of events is no text")),
        }
    }
}

/// A type that an operation can return as its answer.
pub trait Answer: Sized {
    /// Renders the answer.
    ///
    /// # Errors
    /// `internal_error` when a value cannot be serialized as JSON.
    fn reply(self) -> Result<Reply>;

    /// Adds the answer to the description of an operation.
    fn describe(describe: &mut Describe);
}

pub(crate) fn envelope(status: u16, fields: &impl Serialize) -> Result<Reply> {
    #[derive(Serialize)]
    struct Envelope<'a, T> {
        success: bool,
        #[serde(flatten)]
        fields: &'a T,
    }
    Ok(Reply::new(
        status,
        serde_json::to_string(&Envelope { success: true, fields }).map_err(Error::internal)?,
    ))
}

pub(crate) fn data(status: u16, data: &impl Serialize) -> Result<Reply> {
    // Written by hand: every request takes this path, and serde's `flatten` serializes through a buffer.
    let mut body = Vec::with_capacity(1024);
    body.extend_from_slice(b"{\"success\":true,\"data\":");
    serde_json::to_writer(&mut body, data).map_err(Error::internal)?;
    body.push(b'}');
    Ok(Reply::new(status, String::from_utf8(body).map_err(Error::internal)?))
}

/// An answer with headers of its own, such as an `ETag`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct With<A> {
    /// The answer.
    pub answer: A,
    /// The headers, with names in lower case.
    pub headers: Vec<(&'static str, String)>,
}

impl<A> With<A> {
    /// Creates an answer with an object's version as its `ETag`, which [`crate::IfMatch`] accepts.
    pub fn etag(version: i64, answer: A) -> Self {
        Self { answer, headers: vec![("etag", format!("\"{version}\""))] }
    }
}

impl<A: Answer> Answer for With<A> {
    fn reply(self) -> Result<Reply> {
        let mut reply = self.answer.reply()?;
        reply.headers.extend(self.headers);
        Ok(reply)
    }

    fn describe(describe: &mut Describe) {
        A::describe(describe);
    }
}

/// 200 with `data`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json<T>(pub T);

impl<T: Serialize + ToSchema> Answer for Json<T> {
    fn reply(self) -> Result<Reply> {
        data(200, &self.0)
    }

    fn describe(describe: &mut Describe) {
        let schema = describe.schema_json::<T>();
        describe.success(200, json!({ "data": schema }));
    }
}

/// 200 with `data` as an array of all rows, for lists that are short by nature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows<T>(pub Vec<T>);

impl<T: Serialize + ToSchema> Answer for Rows<T> {
    fn reply(self) -> Result<Reply> {
        data(200, &self.0)
    }

    fn describe(describe: &mut Describe) {
        let row = describe.schema_json::<T>();
        describe.success(200, json!({ "data": { "type": "array", "items": row } }));
    }
}

/// 201 with the created resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created<T>(pub T);

impl<T: Serialize + ToSchema> Answer for Created<T> {
    fn reply(self) -> Result<Reply> {
        data(201, &self.0)
    }

    fn describe(describe: &mut Describe) {
        let schema = describe.schema_json::<T>();
        describe.success(201, json!({ "data": schema }));
    }
}

/// 200 with `{"id","object","deleted":true}`, for an object of type `T`.
#[derive(Debug, Clone)]
pub struct Deleted<T> {
    id: Value,
    object: &'static str,
    shown: PhantomData<fn() -> T>,
}

impl<T> Deleted<T> {
    /// Creates the answer for a deleted object.
    pub fn of(object: &'static str, id: impl Serialize) -> Self {
        Self { id: as_json(&id), object, shown: PhantomData }
    }
}

impl<T: ToSchema> Answer for Deleted<T> {
    fn reply(self) -> Result<Reply> {
        data(200, &json!({ "id": self.id, "object": self.object, "deleted": true }))
    }

    fn describe(describe: &mut Describe) {
        describe.schema::<T>();
        let whole = as_json(&T::schema());
        let parts =
            whole.get("allOf").and_then(Value::as_array).map_or(slice::from_ref(&whole), Vec::as_slice);
        // The schemas of `id` and `object` are those of the deleted object's type.
        let field = |name: &str| parts.iter().find_map(|part| part.get("properties")?.get(name)).cloned();
        describe.success(
            200,
            json!({ "data": {
                "type": "object",
                "required": ["id", "object", "deleted"],
                "properties": {
                    "id": field("id"), "object": field("object"), "deleted": { "type": "boolean", "const": true },
                },
            }}),
        );
    }
}
