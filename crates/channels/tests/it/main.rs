//! Channels, conversations and broadcasts through the front door.

mod conversations;
mod quick_replies;
mod support;
