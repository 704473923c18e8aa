//! Metrics of the logs that are bounded by age and size.

use super::{Counts, TableGauge};
use model::Result;
use store::Read;
use store::logs::{Size, totals};

/// The number of rows.
pub(crate) const ROWS: TableGauge =
    TableGauge::new("svc_log_rows", "Rows of logs that are bounded by age and size, by log.", |read| {
        figures(read, |size| size.rows)
    })
    .by("log");

/// The size in bytes.
pub(crate) const BYTES: TableGauge = TableGauge::new(
    "svc_log_size_bytes",
    "Bytes of logs that are bounded by age and size, by log: an estimate that includes their indexes.",
    |read| figures(read, |size| size.bytes),
)
.by("log");

fn figures(read: &mut Read, figure: impl Fn(Size) -> i64) -> Result<Counts> {
    Ok(totals(read)?.into_iter().map(|(log, size)| (log.into(), figure(size))).collect())
}
