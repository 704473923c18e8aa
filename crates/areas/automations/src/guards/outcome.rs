//! How a run has ended.

use model::text_enum;

text_enum! {
    /// How a run has ended, as guards count it.
    pub enum Outcome {
        /// It did what it was to do, at least in part.
        Completed = "completed",
        /// It failed.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}
