//! The pages and endpoints of sessions through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod app;
mod apps;
mod browser;
mod guessing;
mod hostile;
mod links;
mod oauth;
mod people;
mod sessions;
mod transport;
