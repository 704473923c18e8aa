//! What callbacks of the network say, by recorded ones and by hostile ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod hostile;
mod recorded;
mod recorded_others;
mod support;
