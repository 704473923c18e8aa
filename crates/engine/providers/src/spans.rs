//! Spans of model calls, by OpenTelemetry's conventions for generative AI. They never contain prompts or answers.

use super::{Completion, ProviderError, Route};
use model::Trace;
use telemetry::{Span, SpanKind, Tracer};

/// Begins the span of a call of a model.
pub(super) fn call(tracer: &Tracer, parent: &Trace, route: &Route) -> Span {
    let mut span = tracer.start(SpanKind::Client, parent, "chat");
    if span.is_recorded() {
        span.rename(format!("chat {}", route.model));
        span.set("gen_ai.operation.name", "chat");
        span.set("gen_ai.request.model", route.model.clone());
        if let Some((provider, _)) = route.label.split_once(':') {
            span.set("gen_ai.provider.name", provider.to_owned());
        }
    }
    span
}

/// Notes what came of it.
pub(super) fn note_call(span: &mut Span, answered: &Result<Completion, ProviderError>) {
    match answered {
        Ok(completion) => {
            if let Some(usage) = completion.usage {
                span.set("gen_ai.usage.input_tokens", usage.input_tokens);
                span.set("gen_ai.usage.output_tokens", usage.output_tokens);
            }
        }
        Err(error) => span.fail(error.kind()),
    }
}
