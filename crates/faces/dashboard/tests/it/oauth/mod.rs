//! The OAuth endpoints and the consent page.

mod assertions;
mod authorize;
pub(crate) mod bed;
mod clients;
mod consent;
mod discovery;
mod documents;
mod flow;
mod token;
