//! The service through its front door, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that goes wrong must fail"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod admin;
mod answers;
mod bad_input;
mod callback_retention;
mod channel_check;
mod channel_replicas;
mod channel_seeds;
mod chaos;
mod client_commands;
mod command_line;
mod contract;
mod demo_answers;
mod demo_chat;
mod demo_settings;
mod doctor;
mod document;
mod documents;
mod event_types;
mod examples;
mod gate;
mod idempotency;
mod installation;
mod kill;
mod kill_approval;
mod kill_broadcast;
mod kill_import;
mod kill_inbound;
mod kill_people;
mod kill_upload;
mod library;
mod limits;
mod log_reader;
mod monitoring;
mod object_store;
mod operation_features;
mod pages;
mod positions;
mod processes;
mod program;
mod published;
mod redis;
mod restore;
mod retention;
mod runs;
mod schema;
mod secrets;
mod shop;
mod storage_full;
mod surface;
mod sweep;
#[cfg(feature = "otlp")]
mod traces;
mod transport;
mod upgrade;
mod valid;
mod versions;
