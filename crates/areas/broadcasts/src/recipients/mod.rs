//! The recipients of broadcasts: what follows their messages, and messages that are taken back.

pub(crate) mod delivery;
pub(crate) mod references;
pub(crate) mod retry;
pub(crate) mod withdraw;
