//! The call of an operation that a function of a tool makes.

use crate::engine::{RunEngine, agent_caller};
use crate::execution::{Execution, PlannedTool};
use crate::run::StepRow;
use agents::{Function, Takes, scopes};
use model::{Result, Trace};
use operation::LocalCall;
use serde_json::{Map, Value};

/// Context of a call: its run, its step and its tool.
pub(crate) struct CallContext<'a> {
    pub(crate) execution: &'a Execution,
    pub(crate) step: &'a StepRow,
    pub(crate) tool: &'a PlannedTool,
    pub(crate) trace: &'a Trace,
}

/// A call within its limits.
#[derive(Debug, Default)]
pub(crate) struct LimitedCall {
    pub(crate) arguments: Map<String, Value>,
    /// Conditions of a list besides the arguments.
    pub(crate) conditions: Vec<(String, String)>,
    /// The version of the record that is read or changed.
    pub(crate) version: Option<i64>,
}

impl RunEngine {
    /// The call of a function's operation.
    ///
    /// # Errors
    /// When no pipeline is connected.
    pub(crate) fn local_call(
        &self,
        context: &CallContext<'_>,
        function: &'static Function,
        limited: LimitedCall,
    ) -> Result<LocalCall> {
        let CallContext { execution, step, tool, trace } = context;
        let LimitedCall { mut arguments, conditions, version } = limited;
        let scopes = scopes(self.operations(), std::iter::once(function.operation))?;
        let caller = agent_caller(execution, trace, scopes)?;
        let mut path = vec![("workspaceId", execution.row.workspace_id.to_string())];
        let grant = tool.settings().grant.as_ref();
        path.extend(grant.and_then(|grant| grant.collection).map(|id| ("collectionId", id.to_string())));
        for (argument, parameter) in function.path {
            path.push((*parameter, plain(&arguments.remove(*argument).unwrap_or_default())));
        }
        let (mut query, mut body) = (conditions, None);
        match function.takes {
            Takes::Query(always) => {
                query.extend(always.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
                query.extend(arguments.iter().map(|(name, value)| (name.clone(), plain(value))));
            }
            Takes::Body(always) => {
                arguments.extend(always.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
                body = Some(Value::Object(arguments));
            }
            Takes::Nothing => {}
        }
        let idempotency_key = function.writes.then(|| format!("agent:{}", step.id));
        let if_match = version.filter(|_| function.writes);
        Ok(LocalCall { caller, operation: function.operation, path, query, body, if_match, idempotency_key })
    }
}

/// A value as a path or a query has it.
pub(crate) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
