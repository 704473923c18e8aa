//! Spans of traces: which are recorded, and what is known of each. The server exports them.
//!
//! A place in a trace that requests, runs and events carry on is `model::Trace`; most crates need no more than that.

mod sampler;
mod span;

pub use sampler::Sampler;
pub use span::{EndedSpan, Span, SpanKind, SpanSink, SpanValue, Tracer};
