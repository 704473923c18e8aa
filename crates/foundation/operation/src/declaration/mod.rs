//! Declarations of operations and events, from which the contract and the validation of input are made.

pub(crate) mod deprecation;
pub(crate) mod describe;
pub(crate) mod events;
pub(crate) mod examples;
pub(crate) mod generators;
pub(crate) mod meta;
pub(crate) mod validate;
