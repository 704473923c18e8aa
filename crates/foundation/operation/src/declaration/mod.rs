//! Declarations of operations and events: what the contract says of them, and what inputs are checked against.

pub(crate) mod deprecation;
pub(crate) mod describe;
pub(crate) mod events;
pub(crate) mod examples;
pub(crate) mod generators;
pub(crate) mod meta;
pub(crate) mod validate;
