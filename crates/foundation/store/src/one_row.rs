//! One row by its id, which may not be there.

use diesel::QueryResult;
use model::{Error, Result};

/// What a query for one row gave.
pub trait OneRow<T> {
    /// The row.
    ///
    /// # Errors
    /// `not_found` for this kind of object where there is none; what the database fails with.
    fn or_not_found(self, kind: &str) -> Result<T>;
}

impl<T> OneRow<T> for QueryResult<T> {
    fn or_not_found(self, kind: &str) -> Result<T> {
        self.map_err(|error| match error {
            diesel::result::Error::NotFound => Error::not_found(kind),
            failure => failure.into(),
        })
    }
}
