//! Tools: which there are, and what a call does.

mod answer;

pub use answer::{Outcome, Running, ToolAnswer, ToolCall, ToolResult};

use model::{Caller, Result};
use operation::{Admitted, Pipeline};
use std::sync::Arc;

/// The tools of the service.
pub struct Tools {
    pipeline: Arc<Pipeline>,
}

impl Tools {
    /// Creates the tools of a pipeline's operations.
    pub fn new(pipeline: Arc<Pipeline>) -> Self {
        Self { pipeline }
    }

    /// Returns the JSON text of the array `tools` for a caller: one page, in a stable order.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn list(&self, caller: &Caller, selection: &Selection) -> Result<Arc<str>> {
        let _ = (&self.pipeline, caller, selection);
        todo!("h7")
    }

    /// Calls a tool. The admitted request (`POST /mcp`) becomes a request of the operation.
    pub async fn call(&self, admitted: Admitted, call: ToolCall) -> ToolAnswer {
        let _ = (admitted, call);
        todo!("h7")
    }
}

/// The tools that a client chose by query and headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {}

impl Selection {
    /// Reads `toolsets`, `tools`, `read_only` and `output_schemas` from the query, and the `X-Svc-*` headers. `header`
    /// returns a header by its name in lower case.
    ///
    /// # Errors
    /// `validation_error` for unknown names; the message has the known ones.
    pub fn parse(query: &str, header: &dyn Fn(&str) -> Option<String>, tools: &Tools) -> Result<Self> {
        let _ = (query, header, tools);
        todo!("h7")
    }
}
