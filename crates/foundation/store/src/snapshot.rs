//! Several queries that see one state of the database.

use crate::{AnyConnection, Read, each};
use diesel::connection::{AnsiTransactionManager as Manager, TransactionManager};
use model::Result;

impl Read {
    /// Runs `work` so that all its queries see one state of the database. On SQLite the write-ahead log cannot be folded back until
    /// it ends.
    ///
    /// # Errors
    /// Those of `work`, or the database's.
    pub fn in_snapshot<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        match self.connection() {
            AnyConnection::Sqlite(connection) => Manager::begin_transaction(connection)?,
            AnyConnection::Postgres(connection) => {
                let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
                Manager::begin_transaction_sql(connection, begin)?;
            }
        }
        let result = work(self);
        let ended = each!(self.connection(), |connection| Manager::rollback_transaction(connection));
        result.and_then(|value| Ok(ended.map(|()| value)?))
    }
}
