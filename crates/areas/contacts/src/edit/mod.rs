//! Operations that create, read, change and delete contacts.

pub(crate) mod model;
pub(crate) mod operations;
pub(crate) mod tags;
