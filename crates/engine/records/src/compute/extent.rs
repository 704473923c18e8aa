//! How much is computed while somebody waits.

/// How much may be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// As much as fits into a transaction that does something else; beyond that a job is asked for.
    Bounded,
    /// All.
    Full,
}
