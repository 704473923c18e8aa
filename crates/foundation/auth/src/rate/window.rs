//! A window of a minute, and where it stands.

pub(super) const WINDOW_MS: i64 = 60_000;

/// Where a caller's window stands after its request was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// The ceiling.
    pub limit: i64,
    /// Requests left.
    pub remaining: i64,
    /// Seconds until the window ends, 1 to 60.
    pub reset_seconds: i64,
    /// Whether this request is over the ceiling.
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
