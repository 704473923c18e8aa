//! The state of a rate window.

pub(super) const WINDOW_MS: i64 = 60_000;

/// The state of a caller's window after its request was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The limit.
    pub limit: i64,
    /// Remaining requests.
    pub remaining: i64,
    /// Seconds until the window ends, 1 to 60.
    pub reset_seconds: i64,
    /// Whether this request exceeds the limit.
    pub exceeded: bool,
}

impl Window {
    pub(super) fn new(limit: i64, used: i64, left_ms: i64) -> Self {
        Self {
            limit,
            remaining: (limit - used).max(0),
            reset_seconds: ((left_ms + 999) / 1000).clamp(1, 60),
            exceeded: used > limit,
        }
    }
}
