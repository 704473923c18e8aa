//! Answers whose `data` is JSON text that the operation rendered: stored JSON is sent without being parsed and
//! serialized again. The contract shows `T`, so a test of the area must check the text against it.

use crate::answers::answer::{Answer, Reply};
use crate::answers::lists::{Pagination, describe_cursor_page, describe_pages};
use crate::{Describe, Json};
use model::{Error, Result};
use serde::Serialize;
use std::marker::PhantomData;
use store::{CursorPage, PageNumber};
use utoipa::ToSchema;

const OPENING: &str = "{\"success\":true,\"data\":";

/// 200 with `data` as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawJson<T> {
    data: String,
    shown: PhantomData<fn() -> T>,
}

impl<T> RawJson<T> {
    /// Creates the answer from JSON text, which must be one valid value.
    pub fn new(data: String) -> Self {
        Self { data, shown: PhantomData }
    }

    fn print(&self, status: u16) -> Reply {
        let mut body = String::with_capacity(OPENING.len() + self.data.len() + 1);
        body.push_str(OPENING);
        body.push_str(&self.data);
        body.push('}');
        Reply::new(status, body)
    }
}

impl<T: Serialize + ToSchema> Answer for RawJson<T> {
    fn reply(self) -> Result<Reply> {
        Ok(self.print(200))
    }

    fn describe(describe: &mut Describe) {
        <Json<T> as Answer>::describe(describe);
    }
}

/// 201 with the created resource as JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawCreated<T>(RawJson<T>);

impl<T> RawCreated<T> {
    /// Creates the answer from JSON text, which must be one valid value.
    pub fn new(data: String) -> Self {
        Self(RawJson::new(data))
    }
}

impl<T: Serialize + ToSchema> Answer for RawCreated<T> {
    fn reply(self) -> Result<Reply> {
        Ok(self.0.print(201))
    }

    fn describe(describe: &mut Describe) {
        <crate::Created<T> as Answer>::describe(describe);
    }
}

/// The rows of a list as JSON text, separated by commas.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RawRows {
    text: String,
}

impl RawRows {
    /// Starts a row. The caller appends one valid JSON value to the returned text.
    pub fn row(&mut self) -> &mut String {
        if !self.text.is_empty() {
            self.text.push(',');
        }
        &mut self.text
    }

    fn open(&self) -> String {
        let mut body = String::with_capacity(self.text.len() + 256);
        body.push_str(OPENING);
        body.push('[');
        body.push_str(&self.text);
        body.push(']');
        body
    }
}

impl<R: AsRef<str>> FromIterator<R> for RawRows {
    fn from_iter<I: IntoIterator<Item = R>>(texts: I) -> Self {
        let mut rows = Self::default();
        for text in texts {
            rows.row().push_str(text.as_ref());
        }
        rows
    }
}

/// A page of a cursor list as JSON text. `extra` has further fields of the envelope, as in [`crate::PageList`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawCursorList<T, E = crate::Nothing> {
    rows: RawRows,
    has_more: bool,
    next_cursor: Option<String>,
    extra: E,
    shown: PhantomData<fn() -> T>,
}

impl<T> RawCursorList<T> {
    /// Creates the answer for `rows`, which were fetched with [`CursorPage::fetch`]. `print` writes one row, and
    /// `next_cursor` returns the value of `starting_after` that continues after a row.
    pub fn of<R>(
        page: &CursorPage,
        rows: &[R],
        print: impl Fn(&R, &mut String),
        next_cursor: impl FnOnce(&R) -> String,
    ) -> Self {
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let shown = rows.get(..limit).unwrap_or(rows);
        let has_more = rows.len() > shown.len();
        let mut printed = RawRows::default();
        for row in shown {
            print(row, printed.row());
        }
        let next_cursor = shown.last().filter(|_| has_more).map(next_cursor);
        Self { rows: printed, has_more, next_cursor, extra: crate::Nothing {}, shown: PhantomData }
    }

    /// Adds fields to the envelope.
    pub fn with<E>(self, extra: E) -> RawCursorList<T, E> {
        let Self { rows, has_more, next_cursor, .. } = self;
        RawCursorList { rows, has_more, next_cursor, extra, shown: PhantomData }
    }
}

impl<T: Serialize + ToSchema, E: Serialize + ToSchema> Answer for RawCursorList<T, E> {
    fn reply(self) -> Result<Reply> {
        #[derive(Serialize)]
        struct Rest<E> {
            has_more: bool,
            next_cursor: Option<String>,
            #[serde(flatten)]
            extra: E,
        }
        let Self { rows, has_more, next_cursor, extra, .. } = self;
        let rest = serde_json::to_string(&Rest { has_more, next_cursor, extra }).map_err(Error::internal)?;
        let mut body = rows.open();
        body.push(',');
        // The opening brace is dropped, as in `RawPageList`.
        body.push_str(rest.strip_prefix('{').unwrap_or_default());
        Ok(Reply::new(200, body))
    }

    fn describe(describe: &mut Describe) {
        describe_cursor_page::<T, E>(describe);
    }
}

/// A page of a page list as JSON text. `extra` has further fields of the envelope, as in [`crate::PageList`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawPageList<T, E = crate::Nothing> {
    rows: RawRows,
    pagination: Pagination,
    extra: E,
    shown: PhantomData<fn() -> T>,
}

impl<T, E> RawPageList<T, E> {
    /// Creates the answer from the rows of a page and the total number of rows.
    pub fn of(page: PageNumber, rows: RawRows, total: i64, extra: E) -> Self {
        Self { rows, pagination: Pagination::of_page(page, total), extra, shown: PhantomData }
    }
}

impl<T: Serialize + ToSchema, E: Serialize + ToSchema> Answer for RawPageList<T, E> {
    fn reply(self) -> Result<Reply> {
        #[derive(Serialize)]
        struct Rest<E> {
            pagination: Pagination,
            #[serde(flatten)]
            extra: E,
        }
        let rest = serde_json::to_string(&Rest { pagination: self.pagination, extra: self.extra })
            .map_err(Error::internal)?;
        let mut body = self.rows.open();
        body.push(',');
        // `rest` is an object with at least one field. Its opening brace is dropped, because `body` has one.
        body.push_str(rest.strip_prefix('{').unwrap_or_default());
        Ok(Reply::new(200, body))
    }

    fn describe(describe: &mut Describe) {
        let row = describe.schema_json::<T>();
        describe_pages::<E>(describe, &row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Created, CursorList, PageList, With};
    use serde_json::{Value, json};

    #[derive(Debug, Clone, Serialize, ToSchema)]
    struct Note {
        text: String,
    }

    #[derive(Debug, Clone, Serialize, ToSchema)]
    struct Ranked {
        total_is_exact: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        ranking: Option<&'static str>,
    }

    /// Status and body.
    fn sent(answer: impl Answer) -> (u16, String) {
        let reply = answer.reply().unwrap();
        (reply.status, reply.text().unwrap().to_owned())
    }

    fn notes() -> Vec<Note> {
        ["a", "b\"c"].map(|text| Note { text: text.to_owned() }).to_vec()
    }

    fn printed(notes: &[Note]) -> RawRows {
        notes.iter().map(|note| serde_json::to_string(note).unwrap()).collect()
    }

    #[test]
    fn raw_answers_read_like_typed_ones() {
        let [note, _] = notes().try_into().unwrap();
        let text = || serde_json::to_string(&note).unwrap();
        assert_eq!(sent(RawJson::<Note>::new(text())), sent(Json(note.clone())));
        assert_eq!(sent(RawCreated::<Note>::new(text())), sent(Created(note.clone())));
        let (page, extra) =
            (PageNumber { limit: 2, page: 3 }, Ranked { total_is_exact: true, ranking: None });
        let raw = sent(RawPageList::<Note, Ranked>::of(page, printed(&notes()), 5, extra.clone()));
        assert_eq!(raw, sent(PageList::of(page, notes(), 5, extra)));
        let body: Value = serde_json::from_str(&raw.1).unwrap();
        assert_eq!(body["pagination"], json!({ "page": 3, "limit": 2, "total": 5, "pages": 3 }));
        assert_eq!(body["total_is_exact"], true);
    }

    #[test]
    fn a_raw_page_says_how_to_go_on() {
        let print = |note: &Note, text: &mut String| text.push_str(&serde_json::to_string(note).unwrap());
        let of = |limit| {
            let page = CursorPage { limit, starting_after: None };
            let list = RawCursorList::<Note>::of(&page, &notes(), print, |note| note.text.clone());
            serde_json::from_str::<Value>(&sent(list).1).unwrap()
        };
        assert_eq!(
            of(1),
            json!({ "success": true, "data": [{ "text": "a" }], "has_more": true, "next_cursor": "a" })
        );
        let all = of(2);
        assert_eq!(all["next_cursor"], Value::Null);
        let typed = sent(CursorList { data: notes(), has_more: false, next_cursor: None });
        assert_eq!(all, serde_json::from_str::<Value>(&typed.1).unwrap());
    }

    #[test]
    fn headers_ride_along() {
        let answer = With { answer: Json(1), headers: vec![("etag", "\"7\"".to_owned())] };
        let reply = answer.reply().unwrap();
        assert_eq!((reply.status, reply.text().unwrap()), (200, "{\"success\":true,\"data\":1}"));
        assert_eq!(reply.headers, [("etag", "\"7\"".to_owned())]);
    }
}
