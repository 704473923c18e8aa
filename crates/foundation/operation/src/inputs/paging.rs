//! Pages as arguments. The rules of the four paging modes are in this file only.

use crate::answers::lists::{CursorList, OffsetList, OptInList, PageList, Pagination};
use crate::declaration::meta::Paging;
use crate::inputs::cursor::Cursors;
use crate::{Describe, FromInput, Input};
use model::{Error, Result, whole_number};
use serde::Deserialize;
use store::{CursorPage, OffsetPage, OptInPage, PageNumber, Position};
use utoipa::IntoParams;

const DEFAULT_LIMIT: i64 = 20;
const MOST: i64 = 100;

#[derive(Deserialize, IntoParams)]
#[expect(dead_code, reason = "read by name below; the type tells the contract")]
struct CursorQuery {
    /// Rows per page. Values above 100 count as 100.
    #[param(minimum = 1, default = 20)]
    limit: Option<i64>,
    /// Where to continue: the `next_cursor` of the previous page, or the id of its last row.
    #[param(min_length = 1)]
    starting_after: Option<String>,
}

#[derive(Deserialize, IntoParams)]
#[expect(dead_code, reason = "read by name below; the type tells the contract")]
struct OffsetQuery {
    /// Rows per page. Values above 100 count as 100.
    #[param(minimum = 1, default = 20)]
    limit: Option<i64>,
    /// How many rows to skip.
    #[param(minimum = 0, default = 0)]
    offset: Option<i64>,
}

#[derive(Deserialize, IntoParams)]
#[expect(dead_code, reason = "read by name below; the type tells the contract")]
struct PageQuery {
    /// Rows per page. Values above 100 count as 100.
    #[param(minimum = 1, default = 20)]
    limit: Option<i64>,
    /// The number of the page, from 1. Pages after the last one are empty.
    #[param(minimum = 1, default = 1)]
    page: Option<i64>,
}

#[derive(Deserialize, IntoParams)]
#[expect(dead_code, reason = "read by name below; the type tells the contract")]
struct OptInQuery {
    /// `true` returns pages with `has_more` and `next_cursor`. Without it, all rows up to the list's ceiling are returned.
    paginate: Option<bool>,
    /// Rows per page; 20 if not given. Without `paginate=true`, the maximum number of rows; the list's ceiling if not given.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<i64>,
    /// Where to continue: the `next_cursor` of the previous page, unchanged.
    #[param(min_length = 1)]
    starting_after: Option<String>,
}

fn number(input: &Input<'_>, name: &str, least: i64) -> Result<Option<i64>> {
    let Some(text) = input.query_value(name) else { return Ok(None) };
    whole_number(text)
        .filter(|number| *number >= least)
        .map(Some)
        .ok_or_else(|| Error::invalid(name, format_args!("must be a whole number of at least {least}")))
}

fn lowered_limit(input: &Input<'_>) -> Result<i64> {
    Ok(number(input, "limit", 1)?.unwrap_or(DEFAULT_LIMIT).min(MOST))
}

impl FromInput for CursorPage {
    const PAGING: Option<Paging> = Some(Paging::Cursor);

    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        let starting_after = input.query_value("starting_after").map(Position::new);
        Ok(Self { limit: lowered_limit(input)?, starting_after })
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.query_parameters::<CursorQuery>();
    }
}

impl FromInput for OffsetPage {
    const PAGING: Option<Paging> = Some(Paging::Offset);

    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        Ok(Self { limit: lowered_limit(input)?, offset: number(input, "offset", 0)?.unwrap_or(0) })
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.query_parameters::<OffsetQuery>();
    }
}

impl FromInput for PageNumber {
    const PAGING: Option<Paging> = Some(Paging::Page);

    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        Ok(Self { limit: lowered_limit(input)?, page: number(input, "page", 1)?.unwrap_or(1) })
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.query_parameters::<PageQuery>();
    }
}

/// An opt-in page with its cursors.
#[derive(Debug, Clone)]
pub struct OptIn {
    page: OptInPage,
    cursors: Cursors,
}

impl OptIn {
    /// Returns the page to fetch.
    pub fn page(&self) -> &OptInPage {
        &self.page
    }

    /// Returns the answer for `rows`, which were fetched with [`OptInPage::fetch`]. `position` returns the position
    /// of a row.
    pub fn answer<T>(&self, mut rows: Vec<T>, position: impl Fn(&T) -> String) -> OptInList<T> {
        let OptInPage::Page { limit, .. } = &self.page else { return OptInList::Array(rows) };
        let limit = usize::try_from(*limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let last = rows.last().filter(|_| has_more);
        let next_cursor = last.map(|row| self.cursors.encode(&position(row)));
        OptInList::Page { data: rows, has_more, next_cursor }
    }

    /// Returns the maximum number of rows in the answer.
    pub fn most(&self) -> i64 {
        match &self.page {
            OptInPage::Array { ceiling: most } | OptInPage::Page { limit: most, .. } => *most,
        }
    }

    /// Returns the answer for the rows of a page that may be short because the work for one page is bounded. `next`
    /// is the position to continue after. Without one, no rows follow.
    pub fn answer_part<T>(&self, rows: Vec<T>, next: Option<&str>) -> OptInList<T> {
        let OptInPage::Page { .. } = &self.page else { return OptInList::Array(rows) };
        let next_cursor = next.map(|position| self.cursors.encode(position));
        OptInList::Page { data: rows, has_more: next_cursor.is_some(), next_cursor }
    }

    /// Reads an opt-in page by the general rule, where `starting_after` alone also requests a page.
    ///
    /// # Errors
    /// `validation_error` for `paginate`, `limit` or `starting_after`.
    pub fn read(input: &Input<'_>) -> Result<Self> {
        let starting_after = input.query_value("starting_after");
        Self::read_with(input, asks_for_pages(input)? || starting_after.is_some(), starting_after)
    }

    /// Reads an opt-in page whose form is already determined.
    ///
    /// # Errors
    /// `validation_error` for `limit`, or for a cursor of another list.
    pub fn read_with(input: &Input<'_>, paged: bool, cursor: Option<&str>) -> Result<Self> {
        let seal = input.services.get()?;
        let cursors = Cursors::new(seal, input.meta.id, input.caller.workspace_id(), filters(input));
        // The contract has one maximum for both forms: it cannot express that one parameter depends on another.
        let limit = number(input, "limit", 1)?;
        if limit.is_some_and(|limit| limit > MOST) {
            return Err(Error::invalid("limit", format_args!("must be at most {MOST}")));
        }
        let page = if paged {
            let limit = limit.unwrap_or(DEFAULT_LIMIT);
            let after = cursor.map(|text| cursors.decode(text)).transpose()?;
            OptInPage::Page { limit, after }
        } else {
            let ceiling = input.meta.ceiling;
            OptInPage::Array { ceiling: limit.unwrap_or(ceiling).min(ceiling) }
        };
        Ok(Self { page, cursors })
    }
}

/// Returns whether `paginate=true` was sent.
///
/// # Errors
/// `validation_error` for any value other than `true` and `false`.
pub(crate) fn asks_for_pages(input: &Input<'_>) -> Result<bool> {
    match input.query_value("paginate") {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Error::invalid("paginate", "must be true or false")),
    }
}

impl FromInput for OptIn {
    const PAGING: Option<Paging> = Some(Paging::OptIn);

    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        Self::read(input)
    }

    fn describe(describe: &mut Describe, _: &'static str) {
        describe.query_parameters::<OptInQuery>();
    }
}

/// Returns all filters of the list in a canonical form: a cursor must not be continued under other filters.
fn filters(input: &Input<'_>) -> String {
    let mut filters: Vec<_> = input
        .query
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), "paginate" | "limit" | "starting_after"))
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .chain(input.path.iter().map(|(name, value)| (*name, value.as_str())))
        .collect();
    filters.sort_unstable();
    serde_json::to_string(&filters).unwrap_or_default()
}

impl<T> CursorList<T> {
    /// Creates the answer for `rows`, which were fetched with [`CursorPage::fetch`]. `cursor` returns the value of
    /// `starting_after` that continues after a row.
    pub fn of(page: &CursorPage, mut rows: Vec<T>, cursor: impl FnOnce(&T) -> String) -> Self {
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next_cursor = rows.last().filter(|_| has_more).map(cursor);
        Self { data: rows, has_more, next_cursor }
    }
}

impl<T> OffsetList<T> {
    /// Creates the answer from the rows of a page and the total number of rows.
    pub fn of(page: OffsetPage, rows: Vec<T>, total: i64) -> Self {
        let number = page.offset / page.limit + 1;
        Self { data: rows, pagination: Pagination::new(number, page.limit, total) }
    }
}

impl<T, E> PageList<T, E> {
    /// Creates the answer from the rows of a page and the total number of rows.
    pub fn of(page: PageNumber, rows: Vec<T>, total: i64, extra: E) -> Self {
        Self { data: rows, pagination: Pagination::of_page(page, total), extra }
    }
}

impl Pagination {
    pub(crate) fn of_page(page: PageNumber, total: i64) -> Self {
        Self::new(page.page, page.limit, total)
    }

    fn new(page: i64, limit: i64, total: i64) -> Self {
        Self { page, limit, total, pages: (total + limit - 1) / limit }
    }
}
