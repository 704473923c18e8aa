//! The settings of a function: everything that a version freezes besides the code.

use crate::network::{Network, NetworkMode};
use fields::json_schema;
use model::{Code, Env, Error, Result, Scope, ScopeSet, WorkspaceId};
use ports::{FunctionEffect, WorkspaceVariables};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::Read;
use utoipa::ToSchema;

/// The settings of a function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = FunctionSettings, example = json!({
    "description": "The price of shipping a parcel.", "input_schema": { "type": "object" }, "output_schema": null,
    "timeout_ms": 10_000, "memory_mb": 32, "variables": [], "scopes": ["items:read"], "effect": "read",
}))]
pub struct Settings {
    /// What the function does. Agents read it.
    pub description: Option<String>,
    /// A JSON Schema of the input.
    #[schema(value_type = Object)]
    pub input_schema: Value,
    /// A JSON Schema of the output.
    #[schema(value_type = Option<Object>)]
    pub output_schema: Option<Value>,
    /// The longest duration of a call in milliseconds.
    pub timeout_ms: i64,
    /// The memory that a call may use, in MiB.
    pub memory_mb: i64,
    /// The hosts that a call may reach.
    pub network: Network,
    /// The keys of the variables that a call can read: in `ctx.vars`, and those of secrets in `ctx.secrets`.
    pub variables: Vec<String>,
    /// The scopes that a call has.
    pub scopes: Vec<String>,
    /// Whether a call may write.
    pub effect: FunctionEffect,
    /// Whether the same call may be made again: a call that may write and whose process is lost is then repeated, with the same
    /// `ctx.idempotencyKey`.
    pub idempotent: bool,
    /// Whether the function is offered as a tool of agents.
    pub agent_tool: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            description: None,
            input_schema: json!({}),
            output_schema: None,
            timeout_ms: 10_000,
            memory_mb: 32,
            network: Network::default(),
            variables: Vec::new(),
            scopes: Vec::new(),
            effect: FunctionEffect::Write,
            idempotent: false,
            agent_tool: false,
        }
    }
}

impl Settings {
    /// Checks what needs no database, and normalizes the hosts.
    ///
    /// # Errors
    /// `validation_error`.
    pub(crate) fn checked(mut self) -> Result<Self> {
        json_schema::check(&self.input_schema, "input_schema")?;
        if let Some(schema) = &self.output_schema {
            json_schema::check(schema, "output_schema")?;
        }
        self.network = self.network.checked("network")?;
        for (place, scope) in self.scopes.iter().enumerate() {
            let known = Scope::parse(scope).filter(|scope| !scope.is_retired() && !scope.is_partner_only());
            if known.is_none() {
                return Err(Error::invalid(format!("scopes[{place}]"), "must be a scope of the workspace"));
            }
            expect_new(&self.scopes, place, "scopes")?;
        }
        for place in 0..self.variables.len() {
            expect_new(&self.variables, place, "variables")?;
        }
        Ok(self)
    }

    /// Checks that the variables exist, and that only a function with a list of hosts has secrets.
    ///
    /// # Errors
    /// `unknown_variable`, `validation_error`.
    pub(crate) fn check_variables(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        variables: &WorkspaceVariables,
    ) -> Result<()> {
        if self.variables.is_empty() {
            return Ok(());
        }
        let keys: Vec<&str> = self.variables.iter().map(String::as_str).collect();
        let secrets = variables.secrets(read, workspace, &keys)?;
        let live = variables.values(read, workspace, Env::Live, &keys)?;
        let test = variables.values(read, workspace, Env::Test, &keys)?;
        for (place, key) in self.variables.iter().enumerate() {
            let param = format!("variables[{place}]");
            let is_secret = secrets.contains(key);
            if !is_secret && !live.contains_key(key) && !test.contains_key(key) {
                let message = format!("The workspace has no variable `{key}`.");
                return Err(Error::new(Code::UnknownVariable, message).param(param));
            }
            if is_secret && self.network.mode != NetworkMode::Allowlist {
                let rule = "must not name a secret unless `network.mode` is `allowlist`";
                return Err(Error::invalid(param, rule));
            }
        }
        Ok(())
    }

    /// The scopes of a call, as far as the service still has them.
    pub(crate) fn scope_set(&self) -> ScopeSet {
        self.scopes.iter().filter_map(|scope| Scope::parse(scope)).collect()
    }
}

fn expect_new(all: &[String], place: usize, param: &str) -> Result<()> {
    let value = all.get(place);
    if all.iter().take(place).any(|earlier| Some(earlier) == value) {
        return Err(Error::invalid(format!("{param}[{place}]"), "must not be named twice"));
    }
    Ok(())
}
