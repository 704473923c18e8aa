//! The files of skills.

pub(crate) mod contents;
pub(crate) mod operations;
pub(crate) mod scripts;
