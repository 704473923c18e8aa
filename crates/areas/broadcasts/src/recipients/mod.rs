//! The recipients of broadcasts: what follows their messages, and messages that are taken back.

pub(crate) mod again;
pub(crate) mod delivery;
pub(crate) mod references;
pub(crate) mod withdraw;
