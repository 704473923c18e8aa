//! Events and webhooks through the whole service, on both databases.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "clippy excuses the bodies of tests only, and here `on_both!` and helpers make them"
)]

mod inbound;
mod inbound_mapping;
mod inbound_receive;
mod inbound_vendors;
