//! What is particular to SQLite: the writer thread, checkpoints, backups, and lists of rows.

pub(crate) mod backup;
pub(crate) mod checkpoints;
pub(crate) mod writer;
