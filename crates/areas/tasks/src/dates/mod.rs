//! Due dates and recurrence.

pub(crate) mod due;
pub(crate) mod recurrence;
pub(crate) mod series;
