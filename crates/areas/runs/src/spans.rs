//! Spans of runs and tool calls, by OpenTelemetry's conventions for agents. They never contain inputs, arguments or results.

use crate::execution::{Execution, PlannedTool};
use crate::run::{Ended, RunStatus};
use model::Result;
use telemetry::{Span, SpanKind, Tracer};

/// Begins the span of what one worker does of a run: all of it, unless the run waits for people or its worker dies.
pub(crate) fn run(tracer: &Tracer, execution: &Execution) -> Span {
    let mut span = tracer.start(SpanKind::Internal, &execution.plan.caller.trace(), "invoke_agent");
    if span.is_recorded() {
        span.set("gen_ai.operation.name", "invoke_agent");
        span.set("gen_ai.agent.id", execution.row.agent_id.to_string());
        span.set("svc.run_id", execution.row.id.to_string());
        span.set("svc.workspace_id", execution.row.workspace_id.0);
    }
    span
}

/// Notes how it ended.
pub(crate) fn note_run(span: &mut Span, result: &Result<Ended>) {
    match result {
        Ok(Ended { row, .. }) => {
            span.set("svc.run_status", row.status.as_str());
            span.set("gen_ai.usage.input_tokens", row.input_tokens);
            span.set("gen_ai.usage.output_tokens", row.output_tokens);
            if row.status == RunStatus::Failed {
                span.fail("failed");
            }
        }
        Err(error) => span.fail(error.code().as_str()),
    }
}

/// Begins the span of a call of a tool.
pub(crate) fn tool(tracer: &Tracer, execution: &Execution, tool: &PlannedTool) -> Span {
    let mut span = tracer.start(SpanKind::Internal, &execution.trace, "execute_tool");
    if span.is_recorded() {
        span.rename(format!("execute_tool {}", tool.name()));
        span.set("gen_ai.operation.name", "execute_tool");
        span.set("gen_ai.tool.name", tool.name().to_owned());
    }
    span
}
