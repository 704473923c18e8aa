//! The declaration of received requests as a log.

use store::logs::{Counted, Key, LogKind, PerRow};

/// Requests that inbound webhooks received. Their writers do not count, because all requests of a workspace would wait for
/// each other.
pub const INBOUND_LOG: LogKind = LogKind {
    days: 14,
    key: Key::IdInWorkspace("id"),
    time: "received_at",
    texts: &["peer", "query", "headers", "body"],
    row_bytes: PerRow { sqlite: 330, postgres: 450 },
    counted: Counted::Afterwards,
    piece: 200,
    ..LogKind::of("inbound_requests")
};
