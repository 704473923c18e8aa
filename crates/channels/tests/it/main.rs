//! Channels, conversations and broadcasts through the front door.

mod support;
