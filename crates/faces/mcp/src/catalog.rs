//! What the protocol asks of the tools. The service has [`Tools`]; conformance tests have tools of their own.

use crate::tools::{Selection, ToolAnswer, ToolCall, Tools};
use futures::future::LocalBoxFuture;
use model::{Caller, Result};
use operation::Admitted;
use std::sync::Arc;

/// A set of tools.
pub trait Catalog: Send + Sync {
    /// Reads which tools a client chose. `header` returns a header by its name in lower case.
    ///
    /// # Errors
    /// `validation_error` for unknown names.
    fn select<'a>(
        &'a self,
        query: &'a str,
        header: &'a dyn Fn(&str) -> Option<String>,
    ) -> LocalBoxFuture<'a, Result<Selection>>;

    /// Returns the JSON text of the array `tools` for a caller.
    fn list<'a>(
        &'a self,
        caller: &'a Caller,
        selection: &'a Selection,
    ) -> LocalBoxFuture<'a, Result<Arc<str>>>;

    /// Calls a tool.
    fn call(&self, admitted: Admitted, call: ToolCall) -> LocalBoxFuture<'_, ToolAnswer>;
}

impl Catalog for Tools {
    fn select<'a>(
        &'a self,
        query: &'a str,
        header: &'a dyn Fn(&str) -> Option<String>,
    ) -> LocalBoxFuture<'a, Result<Selection>> {
        Box::pin(Tools::select(self, query, header))
    }

    fn list<'a>(
        &'a self,
        caller: &'a Caller,
        selection: &'a Selection,
    ) -> LocalBoxFuture<'a, Result<Arc<str>>> {
        Box::pin(Tools::list(self, caller, selection))
    }

    fn call(&self, admitted: Admitted, call: ToolCall) -> LocalBoxFuture<'_, ToolAnswer> {
        Box::pin(Tools::call(self, admitted, call))
    }
}
