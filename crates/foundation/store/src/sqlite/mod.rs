//! What is particular to SQLite: the writer thread, checkpoints, and backups.

pub(crate) mod backup;
pub(crate) mod checkpoints;
pub(crate) mod writer;
