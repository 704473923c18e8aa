//! Parsing of the network's callbacks, both recorded and hostile.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

mod hostile;
mod recorded;
mod recorded_others;
mod support;
