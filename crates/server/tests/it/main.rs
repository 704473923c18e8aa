//! The service through its front door, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that goes wrong must fail"
)]

mod admin;
mod answers;
mod bad_input;
mod chaos;
mod command_line;
mod contract;
mod document;
mod documents;
mod event_types;
mod examples;
mod gate;
mod idempotency;
mod kill;
mod kill_approval;
mod kill_import;
mod kill_inbound;
mod limits;
mod log_reader;
mod operation_features;
mod positions;
mod processes;
mod program;
mod published;
mod redis;
mod runs;
mod schema;
mod surface;
mod transport;
mod upgrade;
mod valid;
mod versions;
mod walk;
