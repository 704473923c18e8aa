//! Tools: which there are, and what a call does.

mod answer;
mod arguments;
mod calls;
mod catalog;
mod choosing;
mod discovery;
mod listing;
mod names;
mod parts;
mod results;
mod schema;
mod search;
mod selection;
mod service;
mod set;
mod texts;
mod workspace;

pub use answer::{Outcome, Running, ToolAnswer, ToolCall, ToolResult};
pub use listing::{MOST_CHARACTERS_LISTED, MOST_LISTED};
pub use selection::Selection;
pub use service::Tools;
pub use texts::Arguments;
