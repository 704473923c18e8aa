//! Metrics of messages.

use diesel::prelude::*;
use model::Result;
use operation::TableGauge;
use store::{MOST_COUNTED, Read};

/// Messages that wait to be sent.
pub(crate) const QUEUED_MESSAGES: TableGauge = TableGauge::new(
    "svc_channel_messages_queued",
    "Messages to contacts that are waiting to be sent.",
    |read| Ok(vec![("".into(), rows(read, "message_outbox")?)]),
);

fn rows(read: &mut Read, from: &str) -> Result<i64> {
    #[derive(QueryableByName)]
    struct Counted {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        n: i64,
    }
    let sql = format!("SELECT COUNT(*) AS n FROM (SELECT 1 FROM {from} LIMIT {MOST_COUNTED}) AS counted");
    Ok(diesel::sql_query(sql).get_result::<Counted>(read.connection())?.n)
}
