//! The declaration of invocations as a log.

use store::logs::{Key, LogKind, PerRow};

/// Calls of functions.
pub const INVOCATION_LOG: LogKind = LogKind {
    days: 14,
    key: Key::Id("id"),
    texts: &["input", "output", "error", "logs", "fetches", "warnings", "caller", "chain"],
    row_bytes: ROW_BYTES,
    piece: 100,
    ..LogKind::of("function_invocations")
};

/// What a row takes besides its texts.
pub(super) const ROW_BYTES: PerRow = PerRow { sqlite: 460, postgres: 620 };
