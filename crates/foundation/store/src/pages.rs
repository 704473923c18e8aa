//! Pages, as an operation asks the database for them. Their limits are checked before (operation::paging).

use model::{Error, Result};
use std::str::FromStr;

/// The row behind which a page begins, as the text that a caller sent.
///
/// The text is private: the only way to use it is [`Position::read`], which takes anything wrong with it for the
/// caller's mistake. With `text.parse()?` it would be an `internal_error`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position(String);

impl Position {
    /// A position that nobody has looked at.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The position as what the list is ordered by.
    ///
    /// # Errors
    /// `validation_error` with `param` = `starting_after` where the text is no `T`.
    pub fn read<T: FromStr>(&self) -> Result<T> {
        self.0.parse().map_err(|_| {
            Error::invalid("starting_after", "is not a row of this list; send the value of the previous page")
        })
    }
}

/// A page of a list that goes on after an id (cursor mode).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CursorPage {
    /// Rows wanted, 1 to 100.
    pub limit: i64,
    /// The last row that the caller has.
    pub starting_after: Option<Position>,
}

/// A page of a list counted from its beginning (offset mode).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffsetPage {
    /// Rows wanted, 1 to 100.
    pub limit: i64,
    /// The number of rows to skip.
    pub offset: i64,
}

/// A page of a list counted in pages (page mode).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageNumber {
    /// Rows wanted, 1 to 100.
    pub limit: i64,
    /// The number of the page, from 1.
    pub page: i64,
}

impl PageNumber {
    /// How many rows to skip. For a page that no list has it is a number that no list reaches.
    pub fn offset(&self) -> i64 {
        (self.page - 1).saturating_mul(self.limit)
    }
}

/// A list that is a plain array unless pages were asked for (opt-in mode).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptInPage {
    /// Everything up to the ceiling, as an array.
    Array {
        /// The most rows that the array form gives.
        ceiling: i64,
    },
    /// One page.
    Page {
        /// Rows wanted, 1 to 100.
        limit: i64,
        /// The position in the cursor that came with the page before.
        after: Option<Position>,
    },
}

impl OptInPage {
    /// How many rows to fetch: one more than shown in page form, which tells whether there are more.
    pub fn fetch(&self) -> i64 {
        match self {
            Self::Array { ceiling } => *ceiling,
            Self::Page { limit, .. } => limit + 1,
        }
    }

    /// The position to go on after.
    ///
    /// # Errors
    /// See [`Position::read`].
    pub fn after<T: FromStr>(&self) -> Result<Option<T>> {
        match self {
            Self::Array { .. } => Ok(None),
            Self::Page { after, .. } => after.as_ref().map(Position::read).transpose(),
        }
    }
}

impl CursorPage {
    /// How many rows to fetch: one more than shown tells whether there are more.
    pub fn fetch(&self) -> i64 {
        self.limit + 1
    }

    /// The position to go on after.
    ///
    /// # Errors
    /// See [`Position::read`].
    pub fn after<T: FromStr>(&self) -> Result<Option<T>> {
        self.starting_after.as_ref().map(Position::read).transpose()
    }
}
