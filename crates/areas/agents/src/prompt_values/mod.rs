//! Values of the placeholders in instructions and in fixed arguments of tools: read when a run is accepted, and kept with it.

mod placeholders;
mod reader;
mod variables;

pub use placeholders::PlaceholderValues;
pub use reader::PlaceholderReader;
pub use variables::{PromptVariables, value_text};
