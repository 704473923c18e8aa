//! What is particular to PostgreSQL: the flusher of commits.

pub(crate) mod flusher;
