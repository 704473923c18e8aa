//! Channels, conversations and broadcasts through the front door.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy excuses the bodies of tests only, and here helpers are most of them"
)]
#![allow(clippy::too_many_lines, reason = "tests go through tables of cases")]

mod agent_tools;
mod assignment;
mod callbacks;
mod contact_scope;
mod context;
mod conversations;
mod enclosed;
mod erasure;
mod files;
mod merges;
mod numbers;
mod order_of_updates;
mod outbox;
mod placeholders;
mod quick_replies;
mod reminders;
mod retention;
mod retries;
mod sends;
mod storm;
mod support;
mod takeover;
mod talk;
mod templates;
mod together;
mod voice_notes;
