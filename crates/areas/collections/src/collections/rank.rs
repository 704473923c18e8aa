//! The position of rows that people put in order.

use std::fmt;
use std::str::FromStr;

/// The sort key of a row: its position, and its id to break ties. Cursors contain it as `7:42`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank<I> {
    pub(super) position: i64,
    pub(super) id: I,
}

impl<I: fmt::Display> fmt::Display for Rank<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.position, self.id)
    }
}

impl<I: FromStr> FromStr for Rank<I> {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (position, id) = text.split_once(':').ok_or(())?;
        Ok(Self { position: position.parse().map_err(|_| ())?, id: id.parse().map_err(|_| ())? })
    }
}
