//! Lists as answers, one type for each paging mode. The arguments that request pages are in `inputs/paging.rs`.

use crate::answers::answer::{Answer, Reply, data, envelope};
use crate::declaration::describe::{Describe, as_json};
use model::Result;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

/// A page of a cursor list.
#[derive(Debug, Clone, Serialize)]
pub struct CursorList<T> {
    /// The rows.
    pub data: Vec<T>,
    /// Whether more rows follow.
    pub has_more: bool,
    /// The value of `starting_after` for the next page. `None` on the last page.
    pub next_cursor: Option<String>,
}

impl<T: Serialize + ToSchema> Answer for CursorList<T> {
    fn reply(self) -> Result<Reply> {
        envelope(200, &self)
    }

    fn describe(describe: &mut Describe) {
        describe_cursor_page::<T, Nothing>(describe);
    }
}

pub(crate) fn describe_cursor_page<T: ToSchema, E: ToSchema>(describe: &mut Describe) {
    let row = describe.schema_json::<T>();
    let mut fields = fields_of::<E>(describe);
    fields.insert("data".to_owned(), json!({ "type": "array", "items": row }));
    fields.insert(
        "has_more".to_owned(),
        json!({ "type": "boolean", "description": "Whether more rows follow." }),
    );
    fields.insert(
        "next_cursor".to_owned(),
        json!({
            "type": ["string", "null"],
            "description": "Send it as `starting_after` to get the next page. `null` on the last page.",
        }),
    );
    describe.success(200, Value::Object(fields));
}

/// The position in an offset or page list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(example = json!({ "page": 1, "limit": 20, "total": 1, "pages": 1 }))]
pub struct Pagination {
    /// The number of the page, from 1.
    pub page: i64,
    /// The number of rows per page.
    pub limit: i64,
    /// The total number of rows.
    pub total: i64,
    /// The total number of pages.
    pub pages: i64,
}

/// A page of an offset list.
#[derive(Debug, Clone, Serialize)]
pub struct OffsetList<T> {
    /// The rows.
    pub data: Vec<T>,
    /// The page's number and the number of rows in the list.
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

/// A page of a page list, with optional fields of the envelope next to `data` and `pagination`.
#[derive(Debug, Clone, Serialize)]
pub struct PageList<T, E = Nothing> {
    /// The rows.
    pub data: Vec<T>,
    /// The page's number and the number of rows in the list.
    pub pagination: Pagination,
    /// Further fields of the envelope. They must serialize as an object.
    #[serde(flatten)]
    pub extra: E,
}

/// No fields beside `data`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Nothing {}

impl<T: Serialize + ToSchema, E: Serialize + ToSchema> Answer for PageList<T, E> {
    fn reply(self) -> Result<Reply> {
        envelope(200, &self)
    }

    fn describe(describe: &mut Describe) {
        let row = describe.schema_json::<T>();
        describe_pages::<E>(describe, &row);
    }
}

pub(crate) fn describe_pages<E: ToSchema>(describe: &mut Describe, row: &Value) {
    let pagination = describe.schema_json::<Pagination>();
    let mut fields = fields_of::<E>(describe);
    fields.insert("data".to_owned(), json!({ "type": "array", "items": row }));
    fields.insert("pagination".to_owned(), pagination);
    describe.success(200, Value::Object(fields));
}

/// Returns the fields of an object type as fields of the envelope. Those that are not required are in `$optional`.
fn fields_of<E: ToSchema>(describe: &mut Describe) -> Map<String, Value> {
    let schema = as_json(&E::schema());
    E::schemas(&mut describe.schemas);
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let all = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let (mut fields, optional): (Map<_, _>, Map<_, _>) =
        all.into_iter().partition(|(name, _)| required.iter().any(|one| one == name));
    fields.insert("$optional".to_owned(), Value::Object(optional));
    fields
}

/// An opt-in list in either form.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum OptInList<T> {
    /// All rows up to the ceiling.
    Array(Vec<T>),
    /// One page.
    Page {
        /// The rows.
        data: Vec<T>,
        /// Whether more rows follow.
        has_more: bool,
        /// The value of `starting_after` for the next page; `null` on the last page.
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
            "has_more": { "type": "boolean", "description": "Whether more rows follow. Only with `paginate=true` or `starting_after`." },
            "next_cursor": {
                "type": ["string", "null"],
                "description": "Send it as `starting_after` to get the next page. `null` on the last page. Only with \
                                `paginate=true` or `starting_after`.",
            },
        });
        describe.success(200, json!({ "data": array, "$optional": optional }));
    }
}
