//! Functions: JavaScript of tenants that agents call.

mod calls;
mod draft;
mod group;
mod history;
pub mod host;
pub mod network;
#[expect(missing_docs, reason = "columns are described where their rows are")]
pub mod schema;
mod variables;

pub use calls::service::FunctionCalls;
pub use group::GROUP;
pub use history::log::INVOCATION_LOG;
