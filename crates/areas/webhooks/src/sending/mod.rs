//! Sending one delivery: the request and its outcome, when it is tried again, and the health of an endpoint.

pub(crate) mod health;
pub(crate) mod schedule;
pub(crate) mod send;
