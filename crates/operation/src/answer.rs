//! What an operation gives: the envelope of specification 2.1, with `success` first.

use crate::Describe;
use model::{Error, Result};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

/// An answer, printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// The HTTP status.
    pub status: u16,
    /// The whole body.
    pub body: String,
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

fn envelope(status: u16, fields: &impl Serialize) -> Result<Reply> {
    #[derive(Serialize)]
    struct Envelope<'a, T> {
        success: bool,
        #[serde(flatten)]
        fields: &'a T,
    }
    Ok(Reply { status, body: serde_json::to_string(&Envelope { success: true, fields })? })
}

fn data(status: u16, data: &impl Serialize) -> Result<Reply> {
    // Written by hand, because this is every request's path and `flatten` prints through a buffer.
    let mut body = Vec::with_capacity(1024);
    body.extend_from_slice(b"{\"success\":true,\"data\":");
    serde_json::to_writer(&mut body, data)?;
    body.push(b'}');
    Ok(Reply { status, body: String::from_utf8(body).map_err(Error::internal)? })
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

/// 200 with `{"id","object","deleted":true}`.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Deleted<I> {
    /// What was deleted.
    pub id: I,
    /// Its kind.
    pub object: &'static str,
    /// Always `true`.
    pub deleted: bool,
}

impl<I> Deleted<I> {
    /// The answer for an object that is gone.
    pub fn of(object: &'static str, id: I) -> Self {
        Self { id, object, deleted: true }
    }
}

impl<I: Serialize + ToSchema> Answer for Deleted<I> {
    fn reply(self) -> Result<Reply> {
        data(200, &self)
    }

    fn describe(describe: &mut Describe) {
        let id = describe.schema_json::<I>();
        describe.success(
            200,
            json!({ "data": {
                "type": "object",
                "required": ["id", "object", "deleted"],
                "properties": { "id": id, "object": { "type": "string" }, "deleted": { "type": "boolean", "const": true } },
            }}),
        );
    }
}

/// A page of a cursor list.
#[derive(Debug, Clone, Serialize)]
pub struct CursorList<T> {
    /// The rows.
    pub data: Vec<T>,
    /// Whether there are more behind the last.
    pub has_more: bool,
}

impl<T: Serialize + ToSchema> Answer for CursorList<T> {
    fn reply(self) -> Result<Reply> {
        envelope(200, &self)
    }

    fn describe(describe: &mut Describe) {
        let row = describe.schema_json::<T>();
        let array = json!({ "type": "array", "items": row });
        describe.success(200, json!({ "data": array, "has_more": { "type": "boolean" } }));
    }
}

/// Where an offset or page list stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct Pagination {
    /// The page, from 1.
    pub page: i64,
    /// Rows per page.
    pub limit: i64,
    /// Rows in all.
    pub total: i64,
    /// Pages in all.
    pub pages: i64,
}

/// A page of an offset or page list.
#[derive(Debug, Clone, Serialize)]
pub struct OffsetList<T> {
    /// The rows.
    pub data: Vec<T>,
    /// Where it stands.
    pub pagination: Pagination,
}

impl<T: Serialize + ToSchema> Answer for OffsetList<T> {
    fn reply(self) -> Result<Reply> {
        envelope(200, &self)
    }

    fn describe(describe: &mut Describe) {
        let row = describe.schema_json::<T>();
        let pagination = describe.schema_json::<Pagination>();
        let array = json!({ "type": "array", "items": row });
        describe.success(200, json!({ "data": array, "pagination": pagination }));
    }
}

/// An opt-in list in either of its forms.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum OptInList<T> {
    /// Everything up to the ceiling.
    Array(Vec<T>),
    /// One page.
    Page {
        /// The rows.
        data: Vec<T>,
        /// Whether there are more behind the last.
        has_more: bool,
        /// What to send as `starting_after` for the next page; `null` at the end.
        next_cursor: Option<String>,
    },
}

impl<T: Serialize + ToSchema> Answer for OptInList<T> {
    fn reply(self) -> Result<Reply> {
        match &self {
            Self::Array(rows) => data(200, rows),
            page @ Self::Page { .. } => envelope(200, page),
        }
    }

    fn describe(describe: &mut Describe) {
        let row = describe.schema_json::<T>();
        let array = json!({ "type": "array", "items": row });
        let optional = json!({
            "has_more": { "type": "boolean", "description": "With `paginate=true` only." },
            "next_cursor": { "type": ["string", "null"], "description": "With `paginate=true` only." },
        });
        describe.success(200, json!({ "data": array, "$optional": optional }));
    }
}
