//! What is particular to PostgreSQL: the flusher of commits, and arrays of rows.

pub(crate) mod flusher;
