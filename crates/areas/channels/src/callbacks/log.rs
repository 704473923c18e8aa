//! The declaration of callbacks as a log, and the conditions by which SQLite finds them.

use crate::schema::channel_callbacks as table;
use diesel::dsl::sql;
use diesel::expression::SqlLiteral;
use diesel::prelude::*;
use diesel::sql_types::Bool;
use model::Timestamp;
use store::logs::{Counted, LogKind, Owner, PerRow};

/// Callbacks of chat networks. Those that are still to be applied stay. Their writers do not count, because all callbacks of
/// a workspace would wait for each other.
pub const CALLBACK_LOG: LogKind = LogKind {
    days: 14,
    time: "received_at",
    owner: Owner::Through { column: "channel_id", owners: "channels" },
    deletable: Some("status <> 'pending'"),
    texts: &["body", "last_error"],
    row_bytes: PerRow { sqlite: 110, postgres: 170 },
    counted: Counted::Afterwards,
    ..LogKind::of("channel_callbacks")
};

/// Returns the condition for callbacks that are not done. It is SQL without parameters: SQLite cannot infer from
/// `status = ?` the condition `status <> 'done'` of their partial index, and would scan all callbacks.
pub(crate) fn not_done() -> SqlLiteral<Bool> {
    sql("channel_callbacks.status <> 'done'")
}

/// Returns the query for pending callbacks that are due.
#[diesel::dsl::auto_type(no_type_alias)]
pub(crate) fn pending(now: Timestamp) -> _ {
    let not_done: SqlLiteral<Bool> = not_done();
    table::table.filter(table::status.eq("pending")).filter(not_done).filter(table::due_at.le(now))
}

#[cfg(test)]
mod tests {
    use super::*;
    use diesel::debug_query;
    use diesel::sqlite::Sqlite;
    use model::ChannelId;
    use testkit::{Kind, TestDb, expect_indexes};

    #[tokio::test]
    async fn sqlite_finds_callbacks_by_their_indexes() {
        let data = TestDb::new(Kind::Sqlite);
        let now = data.db.now();
        let of_channel = pending(now).filter(table::channel_id.eq(ChannelId(1))).order(table::id);
        let of_all = pending(now).select(table::channel_id).distinct();
        let queries = [
            (debug_query::<Sqlite, _>(&of_channel).to_string(), "channel_callbacks_waiting"),
            (debug_query::<Sqlite, _>(&of_all).to_string(), "channel_callbacks_waiting"),
        ];
        expect_indexes(&data, queries).await;
    }
}
