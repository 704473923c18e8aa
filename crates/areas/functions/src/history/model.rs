//! Invocations as callers see them.

use crate::network::FetchRecord;
use model::{AutomationId, ContactId, FunctionId, InvocationId, JsonText, Timestamp, text_enum};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

text_enum! {
    /// Whether the effects of a call are real.
    #[schema(as = FunctionMode)]
    pub enum InvocationMode {
        /// The clock and the random numbers are fixed, and effects outside are simulated.
        Test = "test",
        /// Effects are real.
        Live = "live",
    }
}

text_enum! {
    /// The state of a call of a function.
    #[schema(as = FunctionInvocationStatus)]
    pub enum InvocationStatus {
        /// It has not ended.
        Running = "running",
        /// It has an output.
        Succeeded = "succeeded",
        /// It has an error.
        Failed = "failed",
        /// It took longer than it may.
        TimedOut = "timed_out",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

text_enum! {
    /// What called a function.
    #[schema(as = FunctionCallerType)]
    pub enum InvocationCallerType {
        /// A request.
        Request = "request",
        /// A step of a run.
        Run = "run",
        /// A guardrail of a run.
        Guardrail = "guardrail",
        /// A step of a flow's run.
        Flow = "flow",
        /// An automation.
        Automation = "automation",
    }
}

/// What called a function.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = FunctionInvocationCaller, example = json!({
    "type": "run", "key_id": "key_01m7w4n5e0k3p8r2v6x9b1d4f7", "request_id": "req_01m7w4n5e0k3p8r2v6x9b1d4f7",
    "contact_id": null,
}))]
pub struct InvocationCaller {
    /// The type.
    pub(crate) r#type: InvocationCallerType,
    /// The key on whose behalf it was called.
    pub(crate) key_id: String,
    /// The request that called it, or that led to the run.
    pub(crate) request_id: String,
    /// The run: that of an agent, or that of a flow.
    pub(crate) run_id: Option<String>,
    /// The step of the run.
    pub(crate) step_id: Option<String>,
    /// The automation.
    #[serde(default)]
    pub(crate) automation_id: Option<AutomationId>,
    /// The contact whom the call is about.
    pub(crate) contact_id: Option<ContactId>,
}

/// Why a call has no output.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = FunctionInvocationError, example = json!({
    "name": "RangeError", "message": "no price for 40 kg", "stack": "    at default (function:3:11)",
    "code": "function_error", "retry_after_ms": null,
}))]
pub struct InvocationError {
    /// The name of the error.
    pub(crate) name: String,
    /// The message.
    pub(crate) message: String,
    /// The lines of the code that were active, the innermost first.
    pub(crate) stack: String,
    /// `function_error`, `function_timeout`, `function_memory`, `function_output_invalid`, `function_network_denied` or
    /// `function_interrupted`.
    pub(crate) code: String,
    /// After how many milliseconds the function asks to be called again, with `RetryableError`.
    pub(crate) retry_after_ms: Option<u64>,
}

text_enum! {
    /// The level of a line of the log.
    #[schema(as = FunctionLogLevel)]
    pub enum LogLevel {
        /// `console.debug`
        Debug = "debug",
        /// `ctx.log`, `console.log`, `console.info`
        Info = "info",
        /// `console.warn`
        Warn = "warn",
        /// `console.error`
        Error = "error",
    }
}

/// A line that a function logged.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = FunctionLogLine, example = json!({ "level": "info", "message": "3 rates found" }))]
pub struct LogLine {
    /// The level.
    pub(crate) level: LogLevel,
    /// The text.
    pub(crate) message: String,
}

/// The lines that a function logged, as they are stored.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Logs {
    pub(crate) lines: Vec<LogLine>,
    pub(crate) truncated: bool,
}

/// A call of a function, in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = FunctionInvocationSummary, example = json!({
    "version": 2, "mode": "live", "status": "succeeded", "error": null, "duration_ms": 4, "memory_peak_bytes": 301_056,
}))]
pub struct InvocationSummary {
    /// The id of the invocation.
    pub(crate) id: InvocationId,
    /// Always `function_invocation`.
    pub(crate) object: &'static str,
    /// The id of the function.
    pub(crate) function_id: FunctionId,
    /// The version that was called. `null` for the draft.
    pub(crate) version: Option<i64>,
    /// Whether effects were real.
    pub(crate) mode: InvocationMode,
    /// The state.
    pub(crate) status: InvocationStatus,
    /// Why there is no output.
    pub(crate) error: Option<InvocationError>,
    /// The duration in milliseconds, without the wait for a free place.
    pub(crate) duration_ms: Option<i64>,
    /// The most memory that the call held, in bytes.
    pub(crate) memory_peak_bytes: Option<i64>,
    /// What called the function.
    pub(crate) caller: InvocationCaller,
    /// The first event of the chain of causes in which the call was made.
    pub(crate) root_event_id: Option<String>,
    /// The number of steps from that event.
    pub(crate) depth: Option<u32>,
    /// When the object was created.
    pub(crate) created_at: Timestamp,
    /// When the call ended.
    pub(crate) ended_at: Option<Timestamp>,
}

/// A call of a function. Values of secrets are replaced by `[secret]`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = FunctionInvocation, example = json!({
    "input": { "kg": 3 }, "output": { "cents": 990 }, "logs": [], "fetches": [], "warnings": [],
}))]
pub struct Invocation {
    /// The fields of the list.
    #[serde(flatten)]
    pub(crate) summary: InvocationSummary,
    /// The input.
    #[schema(value_type = Value)]
    pub(crate) input: JsonText,
    /// The output. `null` if there is none.
    #[schema(value_type = Value)]
    pub(crate) output: Option<JsonText>,
    /// The lines that the function logged.
    pub(crate) logs: Vec<LogLine>,
    /// Whether lines were left out.
    pub(crate) logs_truncated: bool,
    /// The calls of `ctx.fetch`.
    pub(crate) fetches: Vec<FetchRecord>,
    /// What is wrong with a call that succeeded: a live output that does not fit the output schema.
    pub(crate) warnings: Vec<String>,
}

/// Which invocations to list.
#[derive(Debug, Clone, Deserialize, IntoParams)]
pub struct InvocationQuery {
    /// Only invocations in this state.
    #[serde(default)]
    pub(super) status: Option<InvocationStatus>,
}
