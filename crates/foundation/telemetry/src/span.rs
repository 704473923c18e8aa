//! Spans: the parts of a trace that this service records, for whoever exports them.
//!
//! Nothing is recorded, and nothing allocated beyond the header of an outbound request, unless an exporter is configured
//! and the trace is sampled.

use crate::Sampler;
use model::{Clock, Random, Trace};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Begins spans. A clone is cheap.
#[derive(Clone)]
pub struct Tracer {
    random: Arc<dyn Random>,
    export: Option<Arc<Export>>,
}

struct Export {
    clock: Arc<dyn Clock>,
    sampler: Sampler,
    sink: Box<dyn SpanSink>,
}

/// Takes spans that have ended. It must not block.
pub trait SpanSink: Send + Sync {
    /// Takes one.
    fn take(&self, span: EndedSpan);
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("exports", &self.export.is_some()).finish()
    }
}

impl Tracer {
    /// A tracer that records nothing. Outbound requests carry their traces on all the same.
    pub fn off(random: Arc<dyn Random>) -> Self {
        Self { random, export: None }
    }

    /// A tracer that hands spans of sampled traces to `sink`.
    pub fn to(
        sink: impl SpanSink + 'static,
        sampler: Sampler,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
    ) -> Self {
        Self { random, export: Some(Arc::new(Export { clock, sampler, sink: Box::new(sink) })) }
    }

    /// Begins the span of an incoming request, below the span that it came with. `own` is the trace of a request that came
    /// without one. `None` where nothing is exported.
    pub fn serve(
        &self,
        received: Option<&Trace>,
        name: &'static str,
        own: impl FnOnce() -> Trace,
    ) -> Option<Span> {
        let export = self.export.as_ref()?;
        let trace = received.map_or_else(own, |received| received.child(&*self.random));
        let sampled = export.sampler.samples(received, &trace);
        let parent = received.map(Trace::span_id);
        Some(self.begin(SpanKind::Server, trace.sampled(sampled), parent, name.into()))
    }

    /// Begins a span below `parent`.
    pub fn start(&self, kind: SpanKind, parent: &Trace, name: impl Into<Cow<'static, str>>) -> Span {
        self.begin(kind, parent.child(&*self.random), Some(parent.span_id()), name.into())
    }

    /// Begins a span of work that no request caused. It is the first of `trace`, and the sampler decides on it.
    pub fn start_root(&self, kind: SpanKind, trace: &Trace, name: impl Into<Cow<'static, str>>) -> Span {
        let trace = trace.child(&*self.random);
        let sampled = self.export.as_ref().is_some_and(|export| export.sampler.samples(None, &trace));
        self.begin(kind, trace.sampled(sampled), None, name.into())
    }

    fn begin(&self, kind: SpanKind, trace: Trace, parent: Option<u64>, name: Cow<'static, str>) -> Span {
        let export = self.export.as_ref().filter(|_| trace.is_sampled());
        let open = export.map(|export| {
            let span = EndedSpan {
                trace: trace.clone(),
                parent,
                kind,
                name,
                began_nanos: export.clock.nanos(),
                took: Duration::ZERO,
                attributes: Vec::new(),
                error: None,
            };
            Box::new(Open { export: export.clone(), began: Instant::now(), span })
        });
        Span { trace, open }
    }
}

/// A span that has begun. It ends when it is dropped.
#[must_use = "a span ends when it is dropped"]
pub struct Span {
    trace: Trace,
    open: Option<Box<Open>>,
}

struct Open {
    export: Arc<Export>,
    began: Instant,
    span: EndedSpan,
}

impl Span {
    /// Its place in the trace: what goes on below it, here or in another service, belongs to this.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Whether it is recorded. Attributes that cost something to make are made only then.
    pub fn is_recorded(&self) -> bool {
        self.open.is_some()
    }

    /// Names it, where the name becomes known later.
    pub fn rename(&mut self, name: impl Into<Cow<'static, str>>) {
        if let Some(open) = &mut self.open {
            open.span.name = name.into();
        }
    }

    /// Sets an attribute. Never a secret, and nothing of a body.
    pub fn set(&mut self, name: &'static str, value: impl Into<SpanValue>) {
        if let Some(open) = &mut self.open {
            open.span.attributes.push((name, value.into()));
        }
    }

    /// Marks it as failed, with a class of errors from a short list.
    pub fn fail(&mut self, error: impl Into<Cow<'static, str>>) {
        if let Some(open) = &mut self.open {
            open.span.error = Some(error.into());
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(open) = self.open.take() {
            let Open { export, began, mut span } = *open;
            span.took = began.elapsed();
            export.sink.take(span);
        }
    }
}

/// What a span is about, as OpenTelemetry defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// An incoming request.
    Server,
    /// A request to another service.
    Client,
    /// Work within this service.
    Internal,
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpanValue {
    /// Text.
    Text(Cow<'static, str>),
    /// A number.
    Number(i64),
}

impl From<&'static str> for SpanValue {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for SpanValue {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<i64> for SpanValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<u16> for SpanValue {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

/// A span that has ended, as it is exported.
#[derive(Debug, Clone)]
pub struct EndedSpan {
    /// Its place in the trace.
    pub trace: Trace,
    /// The span above it; `None` where it begins the trace.
    pub parent: Option<u64>,
    /// What it is about.
    pub kind: SpanKind,
    /// The name.
    pub name: Cow<'static, str>,
    /// When it began, in nanoseconds since 1970.
    pub began_nanos: i64,
    /// How long it took.
    pub took: Duration,
    /// The attributes.
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// The class of the error that it ended with.
    pub error: Option<Cow<'static, str>>,
}
