//! Statistics for PostgreSQL's planner of tables that have just grown.
//!
//! A statement that is kept prepared keeps the plan that was right while its table was small, such as reading all of it. PostgreSQL
//! plans it anew once the table has been analyzed. Autovacuum does that, but looks only once a minute, and an import has filled a
//! table by then.

use crate::{Backend, Db, Read, Tx};
use diesel::prelude::*;
use diesel::sql_types::Text;
use model::Result;

/// Tables of which more than 500 rows were changed, and more than there were when they were last analyzed. Changes after that are few
/// beside the table, and left to autovacuum.
const GROWN: &str = "SELECT format('%I.%I', s.schemaname, s.relname) AS name \
    FROM pg_stat_user_tables AS s JOIN pg_class AS c ON c.oid = s.relid \
    WHERE s.schemaname = current_schema() AND s.n_mod_since_analyze > greatest(c.reltuples, 500) ORDER BY name";

#[derive(QueryableByName)]
struct Table {
    #[diesel(sql_type = Text)]
    name: String,
}

impl Db {
    /// Analyzes the tables of PostgreSQL that have doubled since they were analyzed; gives how many. SQLite goes by its indexes
    /// ([`Db::tidy`]).
    ///
    /// # Errors
    /// When the database fails.
    pub async fn analyze_grown(&self) -> Result<usize> {
        if matches!(self.backend(), Backend::Sqlite(_)) {
            return Ok(0);
        }
        let grown = self.read(|read: &mut Read| {
            let grown: Vec<Table> = diesel::sql_query(GROWN).load(read.connection())?;
            Ok(grown)
        });
        let grown = grown.await?;
        for Table { name } in &grown {
            // Somebody else who has the table locked, such as autovacuum, need not be waited for.
            let analyze = format!("ANALYZE (SKIP_LOCKED) {name}");
            let analyze = move |tx: &mut Tx| {
                // It warns of a table that it skips, every time; the client library prints warnings to standard error.
                diesel::sql_query("SET LOCAL client_min_messages = error").execute(tx.connection())?;
                Ok(diesel::sql_query(&analyze).execute(tx.connection())?)
            };
            self.write(analyze).await?;
        }
        Ok(grown.len())
    }
}
