//! Endpoints: their settings, which URLs and headers they may have, what they subscribe to, and how bodies are signed.

pub(crate) mod check;
pub(crate) mod filter;
pub(crate) mod model;
pub(crate) mod sealed;
pub mod signing;
