//! Due dates and recurrence.

mod dated;
pub(crate) mod due;
pub(crate) mod recurrence;
pub(crate) mod series;

pub(crate) use dated::DatedTasks;
