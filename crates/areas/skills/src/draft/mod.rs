//! The draft of a skill and its versions, as they are stored.

pub(crate) mod facts;
pub(crate) mod row;
pub(crate) mod write;
