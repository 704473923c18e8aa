//! The declaration of firings as a log.

use store::logs::{Key, LogKind, PerRow};

/// Firings of automations. Those that wait stay.
pub const FIRING_LOG: LogKind = LogKind {
    key: Key::Number("number"),
    deletable: Some("status NOT IN ('pending', 'held')"),
    texts: &["details", "evaluation", "payload", "chain", "error"],
    row_bytes: ROW_BYTES,
    piece: 100,
    ..LogKind::of("automation_firings")
};

/// What a row takes besides its texts.
pub(super) const ROW_BYTES: PerRow = PerRow { sqlite: 435, postgres: 760 };
