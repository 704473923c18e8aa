//! What the protocol asks of the tools.

use super::answer::{ToolAnswer, ToolCall};
use super::calls;
use super::selection::Selection;
use super::set::ToolSet;
use model::{Caller, Error, Result};
use operation::{Admitted, Pipeline};
use std::sync::Arc;
use tokio::sync::OnceCell;
use tokio::task::spawn_blocking;

/// The tools of the service. They are made when the first client asks, so that a service without clients of MCP pays
/// nothing for them.
pub struct Tools {
    pipeline: Arc<Pipeline>,
    loaded: OnceCell<ToolSet>,
}

impl Tools {
    /// Creates the tools of a pipeline's operations.
    pub fn new(pipeline: Arc<Pipeline>) -> Self {
        Self { pipeline, loaded: OnceCell::new() }
    }

    /// Makes the tools on a thread that may block, because it takes longer than other requests of the worker may wait.
    async fn loaded(&self) -> Result<&ToolSet> {
        let make = || async {
            let pipeline = self.pipeline.clone();
            spawn_blocking(move || ToolSet::new(pipeline)).await.map_err(Error::internal)?
        };
        self.loaded.get_or_try_init(make).await
    }

    /// Reads which tools a client chose. `header` returns a header by its name in lower case.
    ///
    /// # Errors
    /// `validation_error` for unknown names.
    pub async fn select(&self, query: &str, header: &dyn Fn(&str) -> Option<String>) -> Result<Selection> {
        Selection::parse(query, header, self.loaded().await?)
    }

    /// Returns the JSON text of the array `tools` for a caller: one page, in a stable order.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub async fn list(&self, caller: &Caller, selection: &Selection) -> Result<Arc<str>> {
        self.loaded().await?.list(caller, selection).await
    }

    /// Calls a tool. The admitted request (`POST /mcp`) becomes a request of the operation.
    pub async fn call(&self, admitted: Admitted, call: ToolCall) -> ToolAnswer {
        match self.loaded().await {
            Ok(tools) => tools.call(admitted, call).await,
            Err(error) => calls::refused(&self.pipeline, admitted, error).await,
        }
    }
}
