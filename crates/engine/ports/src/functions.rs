//! Functions, for whoever calls them.

use model::{
    AutomationId, Caller, ContactId, FlowRunId, FunctionId, InvocationId, JsonText, Result, RunId, StepId,
    WorkspaceId, text_enum,
};
use operation::BoxFuture;
use serde_json::Value;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use store::Read;

text_enum! {
    /// Whether a function changes something outside.
    pub enum FunctionEffect {
        /// It only reads. A call that was interrupted is made once more.
        Read = "read",
        /// It may write. A call that was interrupted fails with `function_interrupted`.
        Write = "write",
    }
}

/// A function that can be called: one of its versions.
#[derive(Debug, Clone)]
pub struct CallableFunction {
    /// The id.
    pub id: FunctionId,
    /// The version that a call would run.
    pub version: i64,
    /// The name.
    pub name: String,
    /// The description.
    pub description: String,
    /// A JSON Schema of the input. An empty object where the function states none.
    pub input_schema: Value,
    /// A JSON Schema of the output, if the function states one.
    pub output_schema: Option<Value>,
    /// What a call may do.
    pub effect: FunctionEffect,
    /// Whether it runs for test keys only, because a test key published it.
    pub is_test_only: bool,
}

/// Why a function cannot be called now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Uncallable {
    /// The workspace has no function with this id.
    Missing,
    /// It has no such version, or was never published.
    NotPublished,
    /// It was switched off.
    Inactive,
}

/// What calls a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionCaller {
    /// A step of a run.
    Run {
        /// The run.
        run: RunId,
        /// The step.
        step: StepId,
    },
    /// A guardrail of a run.
    Guardrail {
        /// The run.
        run: RunId,
    },
    /// A step of a flow's run.
    Flow {
        /// The run.
        run: FlowRunId,
        /// The step.
        step: StepId,
    },
    /// An automation.
    Automation(AutomationId),
}

/// A call of a published version.
#[derive(Debug, Clone)]
pub struct FunctionCall {
    /// On whose behalf it is made. The call has the scopes of the function's publisher, not those of the caller; the caller's
    /// key says whether the call is live, and its chain of causes goes on.
    pub caller: Caller,
    /// The function.
    pub function: FunctionId,
    /// The version; `None` for the published one.
    pub version: Option<i64>,
    /// The input.
    pub input: JsonText,
    /// Values of secrets in the input, which the history of calls does not show.
    pub hidden: Vec<String>,
    /// What calls.
    pub by: FunctionCaller,
    /// The contact whom the run answers, if there is one.
    pub contact: Option<ContactId>,
    /// `ctx.idempotencyKey`. A second call with the same key within a day gets the outcome of the first.
    pub once: String,
    /// The longest time that the caller waits.
    pub patience: Duration,
}

/// How a call ended.
#[derive(Debug, Clone)]
pub struct FunctionEnd {
    /// Its entry in the history.
    pub invocation: InvocationId,
    /// The output, or what failed.
    pub result: Result<JsonText, FunctionFailure>,
}

/// Why a call has no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionFailure {
    /// `function_error`, `function_timeout`, `function_memory`, `function_output_invalid`, `function_network_denied`,
    /// `function_interrupted` or `function_unavailable`.
    pub code: &'static str,
    /// What happened, of at most 500 characters.
    pub message: String,
    /// After how many milliseconds the function asks to be called again.
    pub retry_after_ms: Option<u64>,
}

/// A call of code that belongs to no function. It has no outside: neither `ctx.fetch` nor `ctx.items` nor `ctx.kv`.
#[derive(Debug, Clone)]
pub struct InlineCall {
    /// The workspace, whose places the call uses.
    pub workspace: WorkspaceId,
    /// An ECMAScript module with a function as its default export.
    pub code: String,
    /// The input.
    pub input: JsonText,
    /// `ctx.run.id`.
    pub run: String,
    /// `ctx.contact.id`.
    pub contact: Option<ContactId>,
    /// `ctx.idempotencyKey`.
    pub once: String,
    /// `ctx.livemode`.
    pub livemode: bool,
    /// The longest time that the caller waits.
    pub patience: Duration,
}

/// The functions of all workspaces. The group that keeps them implements it.
pub trait Functions: Send + Sync {
    /// Finds the version of a function that a call would run; of `None` the published one.
    ///
    /// # Errors
    /// When the database fails.
    fn callable(
        &self,
        read: &mut Read,
        workspace: WorkspaceId,
        id: FunctionId,
        version: Option<i64>,
    ) -> Result<std::result::Result<CallableFunction, Uncallable>>;

    /// Calls a function and waits for its end. Whatever the program does is an end; only what prevents a call is an error.
    ///
    /// # Errors
    /// `not_found`, `invalid_state` (not published, inactive, its publisher's key revoked), `validation_error` for the input,
    /// `service_unavailable` when no place came free in time.
    fn call(&self, call: FunctionCall) -> BoxFuture<Result<FunctionEnd>>;

    /// Runs code that belongs to no function, and waits for its output. It is not in the history of calls.
    ///
    /// # Errors
    /// `validation_error` for the code or the input, `service_unavailable` when no place came free in time.
    fn run_inline(
        &self,
        call: InlineCall,
    ) -> BoxFuture<Result<std::result::Result<JsonText, FunctionFailure>>>;
}

/// The functions of all workspaces. A service that operations and groups ask for.
#[derive(Clone)]
pub struct WorkspaceFunctions(Arc<dyn Functions>);

impl WorkspaceFunctions {
    /// These functions.
    pub fn new(functions: impl Functions + 'static) -> Self {
        Self(Arc::new(functions))
    }
}

impl fmt::Debug for WorkspaceFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkspaceFunctions")
    }
}

impl Deref for WorkspaceFunctions {
    type Target = dyn Functions;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
