//! Creating, reading, changing and deleting contacts.

pub(crate) mod model;
pub(crate) mod operations;
pub(crate) mod tags;
