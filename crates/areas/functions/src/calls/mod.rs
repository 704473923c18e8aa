//! Calls of functions: what a call may do, how it is made, and what it ends with.

pub(crate) mod content;
mod inline;
pub(crate) mod invoke;
mod outcome;
mod port;
mod prepare;
pub(crate) mod service;
