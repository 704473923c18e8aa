//! Recipients of broadcasts: changes by their messages, by retries and by merges of contacts.

pub(crate) mod delivery;
pub(crate) mod references;
pub(crate) mod retry;
pub(crate) mod withdraw;
