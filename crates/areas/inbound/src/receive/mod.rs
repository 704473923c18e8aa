//! Receiving of a request, and processing one again.

pub(crate) mod bucket;
pub(crate) mod evaluate;
pub(crate) mod flows;
pub(crate) mod hook;
pub(crate) mod received;
pub(crate) mod receiver;
pub(crate) mod reprocessed;
pub(crate) mod size;
