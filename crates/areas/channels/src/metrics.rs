//! Metrics of callbacks.

use diesel::prelude::*;
use model::Result;
use operation::TableGauge;
use store::{MOST_COUNTED, Read};

/// The gauge of callbacks that are pending or failed.
pub(crate) const OPEN_CALLBACKS: TableGauge = TableGauge::new(
    "svc_channel_callbacks_open",
    "Callbacks of chat networks that were not processed, by status: `pending`, or `failed` after the last attempt.",
    |read| {
        let count = |read: &mut Read, status: &str| {
            let of_status = format!("channel_callbacks WHERE status <> 'done' AND status = '{status}'");
            rows(read, &of_status)
        };
        Ok(vec![("pending".into(), count(read, "pending")?), ("failed".into(), count(read, "failed")?)])
    },
)
.by("status");

fn rows(read: &mut Read, from: &str) -> Result<i64> {
    #[derive(QueryableByName)]
    struct Counted {
        #[diesel(sql_type = diesel::sql_types::BigInt)]
        n: i64,
    }
    let sql = format!("SELECT COUNT(*) AS n FROM (SELECT 1 FROM {from} LIMIT {MOST_COUNTED}) AS counted");
    Ok(diesel::sql_query(sql).get_result::<Counted>(read.connection())?.n)
}
