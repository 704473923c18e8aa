//! The files of skills.

pub(crate) mod contents;
pub(crate) mod scripts;
