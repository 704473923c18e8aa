//! Reasons for which servers say that an answer ended. Each kind of server has its own names.

/// End of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The model was done.
    Done,
    /// At the limit of tokens.
    Cut,
    /// The server held the rest back.
    Withheld,
    /// The server or the model failed. What was said so far is no answer.
    Failed,
    /// For a reason that is none of the known ones.
    Unknown,
    /// The server did not say.
    Unsaid,
}

impl Ended {
    /// Reads a `finish_reason`.
    pub(super) fn of(reason: Option<&str>) -> Self {
        let reason = reason.unwrap_or_default().trim().to_ascii_lowercase().replace(['-', ' '], "_");
        match reason.as_str() {
            "" | "null" | "none" => Self::Unsaid,
            "stop" | "eos" | "eos_token" | "eot" | "end" | "end_turn" | "stop_sequence" | "tool_calls"
            | "tool_call" | "tool_use" | "function_call" | "complete" | "completed" | "done" | "finished"
            | "success" => Self::Done,
            "length"
            | "max_tokens"
            | "model_length"
            | "max_length"
            | "max_output_tokens"
            | "max_completion_tokens"
            | "max_new_tokens"
            | "token_limit"
            | "context_length"
            | "context_length_exceeded"
            | "model_context_window_exceeded"
            | "truncated"
            | "incomplete" => Self::Cut,
            "content_filter"
            | "content_filtered"
            | "safety"
            | "refusal"
            | "recitation"
            | "blocklist"
            | "prohibited_content"
            | "spii"
            | "image_safety"
            | "guardrail_intervened"
            | "sensitive" => Self::Withheld,
            "error"
            | "failed"
            | "failure"
            | "abort"
            | "aborted"
            | "cancelled"
            | "canceled"
            | "timeout"
            | "network_error"
            | "insufficient_system_resource"
            | "unexpected_tool_call" => Self::Failed,
            reason if reason.contains("malformed") || reason.contains("error") => Self::Failed,
            _ => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_many_names() {
        for (reason, ended) in [
            ("stop", Ended::Done),
            ("STOP", Ended::Done),
            ("length", Ended::Cut),
            ("MAX_TOKENS", Ended::Cut),
            ("max_tokens", Ended::Cut),
            ("model_length", Ended::Cut),
            ("content_filter", Ended::Withheld),
            ("SAFETY", Ended::Withheld),
            ("error", Ended::Failed),
            ("MALFORMED_FUNCTION_CALL", Ended::Failed),
            ("surprise", Ended::Unknown),
            ("", Ended::Unsaid),
        ] {
            assert_eq!(Ended::of(Some(reason)), ended, "{reason}");
        }
        assert_eq!(Ended::of(None), Ended::Unsaid);
    }
}
