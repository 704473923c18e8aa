//! What a tool keeps of its code function.

use model::FunctionId;
use ports::{CallableFunction, FunctionEffect};
use serde::{Deserialize, Serialize};

/// The code function of a `function` tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CodeFunction {
    /// The function.
    pub id: FunctionId,
    /// The version that is called. `None` for the published one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// The name that the function had when the tool was attached.
    pub name: String,
    /// The description that it had.
    pub description: String,
    /// Whether it had side effects.
    pub writes: bool,
}

impl CodeFunction {
    pub(crate) fn of(function: CallableFunction, version: Option<i64>) -> Self {
        Self {
            id: function.id,
            version,
            name: function.name,
            description: function.description,
            writes: function.effect == FunctionEffect::Write,
        }
    }

    /// Returns the description for the model: that of the tool, else that of the function.
    pub(crate) fn description(&self, of_tool: &str) -> String {
        description_of(of_tool, &self.description, || format!("Calls the function {}.", self.name))
    }
}

/// Returns the description of the tool, else that of what it calls, else a sentence.
pub(super) fn description_of(of_tool: &str, of_called: &str, otherwise: impl FnOnce() -> String) -> String {
    let text = [of_tool.trim(), of_called.trim()].into_iter().find(|text| !text.is_empty());
    text.map_or_else(otherwise, str::to_owned)
}
