//! What a model can call: an HTTP request, or a function of a grant.

use super::functions::{Function, functions};
use super::tool::{Grant, HttpMethod, ToolApproval, ToolKind, ToolSettings};
use crate::providers::ToolSpec;
use std::sync::Arc;

/// Something that the model can call.
#[derive(Debug, Clone)]
pub(crate) struct Callable {
    /// The name of the tool that it belongs to.
    pub(crate) tool: String,
    pub(crate) settings: Arc<ToolSettings>,
    /// `None` for an HTTP request.
    pub(crate) function: Option<&'static Function>,
    /// What the model is told of it.
    pub(crate) spec: ToolSpec,
}

impl Callable {
    /// Whether calling it changes anything.
    pub(crate) fn writes(&self) -> bool {
        match (self.function, &self.settings.http) {
            (Some(function), _) => function.writes,
            (None, http) => http.as_ref().is_none_or(|http| http.method != HttpMethod::Get),
        }
    }

    /// Whether a person must allow calls of it.
    pub(crate) fn needs_approval(&self) -> bool {
        match self.settings.approval {
            ToolApproval::Never => false,
            ToolApproval::Always => true,
            ToolApproval::OnWrite => self.writes(),
        }
    }
}

/// What the model can call of a tool.
pub(super) fn callables(name: &str, kind: ToolKind, settings: ToolSettings) -> Vec<Callable> {
    let settings = Arc::new(settings);
    let callable = |function, called: String, description, parameters| Callable {
        tool: name.to_owned(),
        settings: settings.clone(),
        function,
        spec: ToolSpec { name: called, description, parameters: settings.open(parameters) },
    };
    if kind == ToolKind::Http {
        let (description, parameters) = (settings.description.clone(), settings.parameters.clone());
        return vec![callable(None, name.to_owned(), description, parameters)];
    }
    let Grant { access, collection_name, .. } = settings.grant.clone().unwrap_or_default();
    let function = |function: &'static Function| {
        let description = function.description(&settings.description, collection_name.as_deref());
        callable(Some(function), format!("{name}_{}", function.suffix), description, function.parameters())
    };
    functions(kind, access).map(function).collect()
}
