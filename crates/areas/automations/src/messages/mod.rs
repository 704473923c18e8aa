//! What contacts write: automations by keyword, and for any message.

mod takers;

pub(crate) use takers::takers;
