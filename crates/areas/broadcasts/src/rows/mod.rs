//! Broadcasts and their recipients as they are stored, and as callers see them.

pub(crate) mod counts;
pub(crate) mod events;
pub(crate) mod output;
pub(crate) mod pace;
pub(crate) mod row;
pub(crate) mod template;
