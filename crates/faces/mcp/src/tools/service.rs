//! What the protocol asks of the tools.

use super::answer::{ToolAnswer, ToolCall};
use super::calls;
use super::selection::Selection;
use super::set::ToolSet;
use model::{Caller, Result};
use operation::{Admitted, Pipeline};
use std::sync::{Arc, OnceLock};

/// The tools of the service. They are made when the first client asks, so that a service without clients of MCP pays
/// nothing for them.
pub struct Tools {
    pipeline: Arc<Pipeline>,
    loaded: OnceLock<ToolSet>,
}

impl Tools {
    /// Creates the tools of a pipeline's operations.
    pub fn new(pipeline: Arc<Pipeline>) -> Self {
        Self { pipeline, loaded: OnceLock::new() }
    }

    pub(super) fn loaded(&self) -> Result<&ToolSet> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = ToolSet::new(self.pipeline.clone())?;
        Ok(self.loaded.get_or_init(|| loaded))
    }

    /// Returns the JSON text of the array `tools` for a caller: one page, in a stable order.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn list(&self, caller: &Caller, selection: &Selection) -> Result<Arc<str>> {
        self.loaded()?.list(caller, selection).await
    }

    /// Calls a tool. The admitted request (`POST /mcp`) becomes a request of the operation.
    pub async fn call(&self, admitted: Admitted, call: ToolCall) -> ToolAnswer {
        match self.loaded() {
            Ok(tools) => tools.call(admitted, call).await,
            Err(error) => calls::refused(&self.pipeline, admitted, error).await,
        }
    }
}
