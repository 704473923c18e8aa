//! The functions that a tool offers to the model: an HTTP request, another agent, a code function, a flow, or operations of
//! a grant.

use super::code_functions::presented;
use super::functions::{Function, Reach, Records, functions};
use super::tool::{
    AgentTool, Grant, HttpMethod, ToolApproval, ToolFunction, ToolKind, ToolRow, ToolSettings,
};
use model::Result;
use providers::{ToolSpec, estimated_tool_tokens};
use serde_json::Value;
use std::sync::Arc;

/// A function that the model can call.
#[derive(Debug, Clone)]
pub struct Callable {
    /// The name of its tool.
    pub tool: String,
    /// The settings of its tool.
    pub settings: Arc<ToolSettings>,
    /// The operation, or `None` for an HTTP request, another agent, a code function and a flow.
    pub function: Option<&'static Function>,
    /// Whether it reaches only the contact that the run answers.
    pub of_contact: bool,
    /// The name, description and schema that the model sees.
    pub spec: ToolSpec,
}

impl Callable {
    /// Returns whether a call has side effects.
    pub fn writes(&self) -> bool {
        if let Some(code) = &self.settings.code {
            return code.writes;
        }
        match (self.function, &self.settings.http) {
            (Some(function), _) => function.writes,
            (None, http) => http.as_ref().is_none_or(|http| http.method != HttpMethod::Get),
        }
    }

    /// Returns whether calls need approval.
    pub fn needs_approval(&self) -> bool {
        match self.settings.approval {
            ToolApproval::Never => false,
            ToolApproval::Always => true,
            ToolApproval::OnWrite => self.writes(),
        }
    }
}

/// Returns whether a tool offers a function. A tool for one contact offers no list of contacts, and a tool for one
/// record does not create records.
fn offers(settings: &ToolSettings, of_contact: bool, function: &Function) -> bool {
    match function.reach {
        Reach::Listed(Records::Contacts) => !of_contact,
        Reach::New(records) => !settings.fixed_arguments.contains_key(records.argument()),
        Reach::Definitions | Reach::Listed(_) | Reach::One(_) => true,
    }
}

/// Returns the functions of a tool. `answers` says whether the run answers a contact.
fn callables(name: &str, kind: ToolKind, settings: ToolSettings, answers: bool) -> Vec<Callable> {
    let settings = Arc::new(settings);
    let of_contact = settings.grant.as_ref().is_some_and(|grant| grant.is_of_contact(answers));
    let callable = |function, called: String, description, parameters| Callable {
        tool: name.to_owned(),
        settings: settings.clone(),
        function,
        of_contact,
        spec: ToolSpec { name: called, description, parameters: settings.open(parameters, of_contact) },
    };
    if kind.is_called_by_name() {
        let (description, parameters) = (settings.shown_description(), settings.parameters.clone());
        let mut called = callable(None, name.to_owned(), description, parameters);
        if settings.is_program() {
            called.spec.parameters = presented(called.spec.parameters);
        }
        return vec![called];
    }
    let Grant { access, collection_name, contact_field, .. } = settings.grant.clone().unwrap_or_default();
    // Items of a collection without a contact field are visible to every contact, so the limit is not mentioned.
    let is_told = of_contact && (!kind.covers_collection() || contact_field.is_some());
    let function = |function: &'static Function| {
        let description = function.description(&settings.description, collection_name.as_deref(), is_told);
        callable(Some(function), format!("{name}_{}", function.suffix), description, function.parameters())
    };
    functions(kind, access).filter(|function| offers(&settings, of_contact, function)).map(function).collect()
}

impl ToolRow {
    /// Returns the functions of the tool. `answers` says whether the run answers a contact.
    ///
    /// # Errors
    /// `internal_error` if the row is damaged.
    pub fn callables(&self, answers: bool) -> Result<Vec<Callable>> {
        Ok(callables(&self.name, self.kind, self.settings()?, answers))
    }

    pub(crate) fn tool(self) -> Result<AgentTool> {
        let settings = self.settings()?;
        let callables = self.callables(false)?;
        let specs: Vec<ToolSpec> = callables.iter().map(|callable| callable.spec.clone()).collect();
        let token_estimate = estimated_tool_tokens(&specs);
        let is_http = self.kind == ToolKind::Http;
        let description = settings.shown_description();
        let grant = settings.grant;
        Ok(AgentTool {
            id: self.name.clone(),
            object: "agent_tool",
            agent_id: self.agent_id,
            name: self.name,
            kind: self.kind,
            description,
            version: settings.code.as_ref().and_then(|code| code.version),
            parameters: is_http.then_some(settings.parameters),
            fixed_arguments: Value::Object(settings.fixed_arguments),
            http: settings.http,
            reference: settings
                .agent
                .map(|id| id.0)
                .or_else(|| settings.code.as_ref().map(|code| code.id.0))
                .or_else(|| settings.flow.as_ref().map(|flow| flow.id.0))
                .or_else(|| grant.as_ref().and_then(|grant| grant.collection).map(|id| id.0)),
            access: grant.as_ref().map(|grant| grant.access),
            scope: grant.as_ref().and_then(|grant| grant.scope),
            contact_field: grant.and_then(|grant| grant.contact_field),
            functions: callables.iter().map(ToolFunction::from).collect(),
            approval: settings.approval,
            max_calls_per_run: settings.max_calls_per_run,
            timeout_seconds: settings.timeout_seconds,
            repeatable: settings.repeatable,
            deferred: settings.deferred,
            verify_with: settings.verify_with,
            token_estimate,
            created_at: self.created_at,
            updated_at: self.updated_at,
        })
    }
}

impl From<&Callable> for ToolFunction {
    fn from(callable: &Callable) -> Self {
        Self {
            name: callable.spec.name.clone(),
            description: callable.spec.description.clone(),
            parameters: callable.spec.parameters.clone(),
            operation_id: callable.function.map(|function| function.operation),
            writes: callable.writes(),
        }
    }
}
