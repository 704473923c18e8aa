//! Verification of a request: what of it is read, and how its sender is known.

pub(crate) mod answer;
pub(crate) mod body;
pub(crate) mod handshake;
pub(crate) mod request;
pub(crate) mod scheme;
#[cfg(test)]
mod scheme_tests;
pub(crate) mod signature;
pub(crate) mod source;
pub(crate) mod verification;
