//! The declaration of events as a log.

use super::rows::NewPosition;
use crate::schema::event_hours;
use diesel::prelude::*;
use model::Result;
use store::Tx;
use store::logs::{self, Key, LogKind, PerRow, Size};

/// The log of events. The newest of all stays, because the next position follows from it, and so do events that a durable reader
/// has not read yet.
pub const EVENT_LOG: LogKind = LogKind {
    key: Key::Number("position"),
    deletable: Some(
        "position < (SELECT max(position) FROM events) \
         AND position <= coalesce((SELECT min(position) FROM event_readers), 9223372036854775807)",
    ),
    texts: &[
        "data",
        "kind",
        "actor",
        "request_id",
        "key_id",
        "idempotency_key",
        "root_event_id",
        "traceparent",
        "automations",
    ],
    row_bytes: PerRow { sqlite: 220, postgres: 420 },
    piece: 200,
    is_read_on: true,
    ..LogKind::of("events")
};

/// Counts events that have got their places.
pub(super) fn count_in(tx: &mut Tx, places: &[NewPosition]) {
    let sizes = logs::sum(places.iter().map(|place| (place.workspace_id, Size::row(place.bytes))));
    logs::add(tx, EVENT_LOG.name, &sizes);
}

/// Deletes the counts of hours that are older than 30 days.
///
/// # Errors
/// When the database fails.
pub fn purge_counts(tx: &mut Tx) -> Result<()> {
    let horizon = tx.now().plus_seconds(-30 * 86_400);
    diesel::delete(event_hours::table.filter(event_hours::hour.lt(horizon))).execute(tx.connection())?;
    Ok(())
}
