//! Connections to both databases under one type, and the statements that they keep prepared.

pub(crate) mod cached;
pub(crate) mod connection;
pub(crate) mod erased;
pub(crate) mod locked;
pub(crate) mod repeated;
