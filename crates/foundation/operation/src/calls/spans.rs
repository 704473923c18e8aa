//! What the spans of requests say, by OpenTelemetry's semantic conventions. Attributes that those do not have begin with
//! `svc.`.

use crate::BASE;
use crate::calls::progress::Progress;
use model::{RequestId, Trace};
use telemetry::{Span, SpanKind, Tracer};
use url::Url;

/// Describes the span of a request to an operation.
pub(crate) fn describe(span: &mut Span, progress: &Progress, status: u16) {
    if !span.is_recorded() {
        return;
    }
    if let Some(meta) = progress.operation {
        span.rename(format!("{} {}", meta.method.as_str(), meta.path));
        span.set("http.route", format!("{BASE}{}", meta.path));
        span.set("svc.operation", meta.id);
    }
    span.set("http.response.status_code", status);
    span.set("svc.request_id", progress.request.as_str().to_owned());
    if let Some(workspace) = progress.workspace {
        span.set("svc.workspace_id", workspace.0);
    }
    if let Some(gate) = progress.rejected_by() {
        span.set("svc.gate", gate.as_str());
    }
    if let Some(code) = progress.code {
        span.set("svc.error_code", code.as_str());
        // To a server, an error is what the service did wrong.
        if status >= 500 {
            span.fail(code.as_str());
        }
    }
}

/// Describes the span of a request to a [`RawRoute`](crate::RawRoute): its method, its route, its id, and the status of its
/// answer.
pub fn describe_raw(
    span: &mut Span,
    method: &'static str,
    route: &'static str,
    request: &RequestId,
    status: u16,
) {
    if !span.is_recorded() {
        return;
    }
    span.rename(format!("{method} {route}"));
    span.set("http.request.method", method);
    span.set("http.route", route);
    span.set("http.response.status_code", status);
    span.set("svc.request_id", request.as_str().to_owned());
    if status >= 500 {
        span.fail(status.to_string());
    }
}

/// Begins the span of an outbound HTTP request below `parent`. Its own place in the trace is what the request sends.
pub fn http_span(tracer: &Tracer, parent: &Trace, method: &str, url: &str) -> Span {
    described(tracer.start(SpanKind::Client, parent, "HTTP"), method, url)
}

/// Begins the span of an outbound HTTP request that no request caused: the first of `trace`.
pub fn root_http_span(tracer: &Tracer, trace: &Trace, method: &str, url: &str) -> Span {
    described(tracer.start_root(SpanKind::Client, trace, "HTTP"), method, url)
}

/// The span has host and port of the URL: paths and queries of tenants' URLs may be secrets.
fn described(mut span: Span, method: &str, url: &str) -> Span {
    if span.is_recorded() {
        span.rename(method.to_owned());
        span.set("http.request.method", method.to_owned());
        let url = Url::parse(url).ok();
        if let Some(host) = url.as_ref().and_then(Url::host_str) {
            span.set("server.address", host.to_owned());
        }
        if let Some(port) = url.as_ref().and_then(Url::port_or_known_default) {
            span.set("server.port", port);
        }
    }
    span
}

/// Notes how an outbound HTTP request ended: its status, or why it got none.
pub fn note_http(span: &mut Span, outcome: Result<u16, &'static str>) {
    match outcome {
        Ok(status) => {
            span.set("http.response.status_code", status);
            if status >= 400 && span.is_recorded() {
                span.fail(status.to_string());
            }
        }
        Err(kind) => span.fail(kind),
    }
}
