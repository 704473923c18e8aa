//! What an operation gives: the envelope of specification 2.1, with `success` first.

use crate::declaration::describe::as_json;
use crate::{Describe, EventStream};
use model::{Error, Result};
use serde::Serialize;
use serde_json::{Value, json};
use std::marker::PhantomData;
use std::{fmt, slice};
use utoipa::ToSchema;

/// An answer, printed.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// What follows the headers.
    pub body: ReplyBody,
    /// Headers of its own, beside those that every answer has. Of these an `Idempotency-Key` remembers `etag` and
    /// `location`.
    pub headers: Vec<(&'static str, String)>,
}

/// The body of a [`Reply`].
pub enum ReplyBody {
    /// The whole JSON.
    Whole(String),
    /// Events as they happen. An `Idempotency-Key` remembers none: the operation stores what a resend is answered, and
    /// says so with [`crate::Cx::mark_answered`].
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
    /// An answer without headers of its own.
    pub fn new(status: u16, body: String) -> Self {
        Self { status, body: ReplyBody::Whole(body), headers: Vec::new() }
    }

    /// 200 with events.
    pub fn events(events: EventStream) -> Self {
        Self { status: 200, body: ReplyBody::Events(events), headers: Vec::new() }
    }

    /// The whole body.
    ///
    /// # Errors
    /// `internal_error` for events, which nobody has as a whole.
    pub fn text(&self) -> Result<&str> {
        match &self.body {
            ReplyBody::Whole(text) => Ok(text),
            ReplyBody::Events(_) => Err(Error::internal("a stream of events is no text")),
        }
    }
}

/// Something that an operation can answer with.
pub trait Answer: Sized {
    /// Prints it.
    ///
    /// # Errors
    /// When a value cannot be printed as JSON.
    fn reply(self) -> Result<Reply>;

    /// Tells the contract of it.
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
    // Written by hand, because this is every request's path and `flatten` prints through a buffer.
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
    /// The headers. Their names are in lower case.
    pub headers: Vec<(&'static str, String)>,
}

impl<A> With<A> {
    /// An answer that shows a version of something, which [`crate::IfMatch`] takes back.
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

/// 200 with `data` as an array of everything there is: for lists that are short by nature.
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

/// 201 with the resource that was stored.
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
    /// The answer for an object that is gone.
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
        // The id and the word are those of the object itself.
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
