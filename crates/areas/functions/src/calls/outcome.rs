//! The end of a call: what the sandbox says, as a row of the history.

use super::content::Content;
use crate::history::model::{InvocationError, InvocationMode, InvocationStatus, LogLevel, LogLine, Logs};
use crate::history::rows::InvocationRow;
use crate::host::CallHost;
use model::{JsonText, Timestamp};
use sandbox::{Failure, Level, Outcome};

/// The longest message and stack of an error, in characters.
const LONGEST_MESSAGE: usize = 500;
const LONGEST_STACK: usize = 4000;
/// The most lines of the log.
const MOST_LINES: usize = 200;

/// How a call ended.
pub(super) struct Ending {
    result: std::result::Result<String, InvocationError>,
    status: InvocationStatus,
    logs: Logs,
    duration_ms: Option<i64>,
    peak_memory: Option<i64>,
}

impl Ending {
    /// A call whose process was ended from outside.
    pub(super) fn interrupted() -> Self {
        let message = "The process of the function was ended from outside, so nobody knows what it has done.";
        Self {
            result: Err(error("Interrupted", message, "function_interrupted")),
            status: InvocationStatus::Failed,
            logs: Logs::default(),
            duration_ms: None,
            peak_memory: None,
        }
    }

    /// The end of a call that was made.
    pub(super) fn of(outcome: Outcome) -> Self {
        let mut lines: Vec<LogLine> = outcome.logs.into_iter().map(line).collect();
        let truncated = outcome.logs_truncated || lines.len() > MOST_LINES;
        lines.truncate(MOST_LINES);
        let (status, result) = match outcome.result {
            Ok(output) => (InvocationStatus::Succeeded, Ok(output)),
            Err(Failure::Timeout) => (InvocationStatus::TimedOut, Err(describe(Failure::Timeout))),
            Err(failure) => (InvocationStatus::Failed, Err(describe(failure))),
        };
        Self {
            result,
            status,
            logs: Logs { lines, truncated },
            duration_ms: i64::try_from(outcome.duration.as_millis()).ok(),
            peak_memory: i64::try_from(outcome.peak_memory).ok().filter(|bytes| *bytes > 0),
        }
    }
}

/// Returns the result of a call, without the lines that it logged.
pub(super) fn result_of(outcome: Outcome) -> std::result::Result<JsonText, InvocationError> {
    Ending::of(outcome).result.map(JsonText::printed)
}

/// The row of a call that ended, without the values of secrets.
pub(super) fn ending(
    begun: &InvocationRow,
    end: Ending,
    content: &Content,
    host: &CallHost,
    now: Timestamp,
) -> InvocationRow {
    let Ending { mut result, mut status, mut logs, duration_ms, peak_memory } = end;
    let mut warnings = Vec::new();
    if let Ok(output) = &result
        && let Some(mismatch) = content.output_mismatch(output)
    {
        let message = format!("The output does not fit the output schema: {mismatch}");
        // A live call may have had its effect, so its output is not withheld.
        if begun.mode == InvocationMode::Live {
            warnings.push(cut(&message, LONGEST_MESSAGE));
        } else {
            status = InvocationStatus::Failed;
            result = Err(error("OutputInvalid", &message, "function_output_invalid"));
        }
    }
    for line in &mut logs.lines {
        line.message = host.mask(&line.message);
    }
    let (output, failure) = match result {
        Ok(output) => (Some(JsonText::printed(host.mask_json(&output))), None),
        Err(error) => (None, Some(masked(error, host))),
    };
    let fetches = host.fetches();
    InvocationRow {
        status,
        output,
        error: failure.as_ref().map(JsonText::of),
        logs: (!logs.lines.is_empty() || logs.truncated).then(|| JsonText::of(&logs)),
        fetches: (!fetches.is_empty()).then(|| JsonText::of(&fetches)),
        warnings: (!warnings.is_empty()).then(|| JsonText::of(&warnings)),
        duration_ms,
        memory_peak_bytes: peak_memory,
        lease_until: None,
        ended_at: Some(now),
        ..begun.clone()
    }
}

fn masked(error: InvocationError, host: &CallHost) -> InvocationError {
    InvocationError {
        name: host.mask(&error.name),
        message: host.mask(&error.message),
        stack: host.mask(&error.stack),
        ..error
    }
}

fn line(line: sandbox::LogLine) -> LogLine {
    let level = match line.level {
        Level::Debug => LogLevel::Debug,
        Level::Info => LogLevel::Info,
        Level::Warn => LogLevel::Warn,
        Level::Error => LogLevel::Error,
    };
    LogLine { level, message: line.text }
}

fn error(name: &str, message: &str, code: &str) -> InvocationError {
    InvocationError {
        name: cut(name, 100),
        message: cut(message, LONGEST_MESSAGE),
        stack: String::new(),
        code: code.to_owned(),
        retry_after_ms: None,
    }
}

fn describe(failure: Failure) -> InvocationError {
    let text = failure.to_string();
    match failure {
        Failure::Thrown { name, message, stack, retry_after } => {
            let is_network = name == "NetworkDenied";
            let code = if is_network { "function_network_denied" } else { "function_error" };
            InvocationError {
                stack: cut(&stack, LONGEST_STACK),
                retry_after_ms: retry_after,
                ..error(&name, &message, code)
            }
        }
        Failure::Timeout => error("Timeout", &text, "function_timeout"),
        Failure::Memory => error("MemoryExceeded", &text, "function_memory"),
        Failure::Stack => error("StackExceeded", &text, "function_error"),
        Failure::NeverSettles => error("NeverSettles", &text, "function_error"),
        Failure::Output(_) => error("OutputInvalid", &text, "function_output_invalid"),
        Failure::Crashed => error("Crashed", &text, "function_error"),
        Failure::Protocol => error("ProtocolViolated", &text, "function_error"),
        Failure::Compile { .. } | Failure::NoDefaultExport | Failure::DefaultIsNoFunction => {
            error("SyntaxError", &text, "function_error")
        }
    }
}

/// The first `most` characters.
fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}
