//! Export of spans to a collector, by OTLP over HTTP with protobuf.
//!
//! Requests hand their spans over and go on: what the collector cannot take in time is dropped and counted.

use super::{Traces, counter};
use crate::Config;
use crate::tiers::operator_policy;
use crate::version::VERSION;
use anyhow::Context;
use egress::{Connector, HeaderName, HeaderValue, Limits, Request, frames_message};
use model::{Clock, Random};
use opentelemetry::trace::{SpanContext, SpanId, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use percent_encoding::percent_decode_str;
use prometheus::IntCounterVec;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use telemetry::{EndedSpan, Sampler, SpanKind, SpanSink, SpanValue, Tracer};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Spans that may wait, a batch, and how long a batch is waited for: about as the OpenTelemetry SDKs have it.
const WAITING: usize = 8192;
const BATCH: usize = 512;
const DELAY: Duration = Duration::from_secs(5);
/// For one batch, with its retries.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where spans are exported to, and which.
pub(crate) struct Collector {
    exporter: SpanExporter,
    sampler: Sampler,
}

impl Collector {
    /// The configured one.
    ///
    /// # Errors
    /// When a setting cannot be used.
    pub(crate) fn read(config: &Config) -> anyhow::Result<Option<Self>> {
        let Some(endpoint) = &config.otlp_endpoint else { return Ok(None) };
        let ratio = config.otlp_sampler_arg.parse().unwrap_or(f64::NAN);
        let sampler = Sampler::named(&config.otlp_sampler, ratio).with_context(|| {
            let names = Sampler::NAMES.join(", ");
            format!("OTEL_TRACES_SAMPLER: must be one of {names}, with a number from 0 to 1 as OTEL_TRACES_SAMPLER_ARG")
        })?;
        let headers = headers(config.otlp_headers.as_deref().unwrap_or_default())?;
        // A collector mostly runs on the same machine or in a private network. Its address is the operator's own setting, as
        // the database's is, and no caller can change it, so it is allowed; and only it.
        let policy = operator_policy("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)?;
        let client = Client { connector: Connector::new(policy)?, headers };
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(PATIENCE)
            .build()
            .context("OTEL_EXPORTER_OTLP_ENDPOINT")?;
        let service =
            [("service.name", config.otlp_service_name.clone()), ("service.version", VERSION.to_owned())];
        let service = service.map(|(name, value)| KeyValue::new(name, value));
        exporter.set_resource(&Resource::builder().with_attributes(service).build());
        Ok(Some(Self { exporter, sampler }))
    }

    /// Sends an empty batch.
    ///
    /// # Errors
    /// When the collector does not take it.
    pub(crate) async fn probe(&self) -> anyhow::Result<()> {
        Ok(self.exporter.export(Vec::new()).await?)
    }

    /// Begins to export.
    ///
    /// # Errors
    /// Never: names and help texts of metrics are constants.
    pub(crate) fn start(
        self,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        runtime: &Handle,
    ) -> model::Result<(Traces, Exporting)> {
        let (sink, queue) = mpsc::channel(WAITING);
        let (stop, stopping) = watch::channel(false);
        let spans = counter()?;
        let task = runtime.spawn(export(self.exporter, queue, stopping, spans.clone()));
        let tracer = Tracer::to(Queue { sink, spans: spans.clone() }, self.sampler, clock, random);
        Ok((Traces { tracer, spans }, Exporting { stop, task }))
    }
}

/// The export in the background.
pub(crate) struct Exporting {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Exporting {
    /// Exports what is waiting, as far as that takes no longer than `patience`.
    pub(crate) async fn stop(mut self, patience: Duration) {
        self.stop.send_replace(true);
        if timeout(patience, &mut self.task).await.is_err() {
            self.task.abort();
            tracing::warn!("the last spans were not exported in time");
        }
    }
}

struct Queue {
    sink: mpsc::Sender<EndedSpan>,
    spans: IntCounterVec,
}

impl SpanSink for Queue {
    fn take(&self, span: EndedSpan) {
        if self.sink.try_send(span).is_err() {
            self.spans.with_label_values(&["dropped"]).inc();
        }
    }
}

/// Exports spans in batches until it is to stop, and then what is waiting.
async fn export(
    exporter: SpanExporter,
    mut queue: mpsc::Receiver<EndedSpan>,
    mut stopping: watch::Receiver<bool>,
    spans: IntCounterVec,
) {
    let scope = InstrumentationScope::builder("svc").with_version(VERSION).build();
    let mut batch = Vec::with_capacity(BATCH);
    let mut failing = false;
    loop {
        let is_last = tokio::select! {
            biased;
            _ = stopping.wait_for(|stop| *stop) => true,
            () = fill(&mut queue, &mut batch) => false,
        };
        if is_last {
            queue.close();
            queue.recv_many(&mut batch, BATCH).await;
        }
        let count = batch.len() as u64;
        if count == 0 {
            return;
        }
        let data = batch.drain(..).map(|span| span_data(span, &scope)).collect();
        match exporter.export(data).await {
            Ok(()) => {
                failing = false;
                spans.with_label_values(&["exported"]).inc_by(count);
            }
            Err(error) => {
                spans.with_label_values(&["failed"]).inc_by(count);
                // Once, and not for each batch.
                if !failing {
                    tracing::warn!(%error, "spans cannot be exported");
                }
                failing = true;
            }
        }
    }
}

/// Waits for a span, and then for a batch to be full or long enough. What it took stays in `batch` if it is given up.
async fn fill(queue: &mut mpsc::Receiver<EndedSpan>, batch: &mut Vec<EndedSpan>) {
    if batch.is_empty() && queue.recv_many(batch, BATCH).await == 0 {
        return;
    }
    let full =
        async { while batch.len() < BATCH && queue.recv_many(batch, BATCH - batch.len()).await > 0 {} };
    // Full or not, it is sent.
    let _ = timeout(DELAY, full).await;
}

fn span_data(span: EndedSpan, scope: &InstrumentationScope) -> SpanData {
    let EndedSpan { trace, parent, kind, name, began_nanos, took, attributes, error } = span;
    let state = trace.state().and_then(|state| state.parse::<TraceState>().ok()).unwrap_or_default();
    let (id, flags) = (SpanId::from(trace.span_id()), TraceFlags::new(trace.flags()));
    let start_time = UNIX_EPOCH + Duration::from_nanos(u64::try_from(began_nanos).unwrap_or_default());
    let value = |value| match value {
        SpanValue::Text(text) => Value::from(text),
        SpanValue::Number(number) => Value::I64(number),
    };
    let attributes = attributes.into_iter().map(|(name, own)| KeyValue::new(name, value(own)));
    let class = error.clone().map(|class| KeyValue::new("error.type", Value::from(class)));
    SpanData {
        span_context: SpanContext::new(TraceId::from(trace.trace_id()), id, flags, false, state),
        parent_span_id: parent.map_or(SpanId::INVALID, SpanId::from),
        parent_span_is_remote: kind == SpanKind::Server && parent.is_some(),
        span_kind: match kind {
            SpanKind::Server => opentelemetry::trace::SpanKind::Server,
            SpanKind::Client => opentelemetry::trace::SpanKind::Client,
            SpanKind::Internal => opentelemetry::trace::SpanKind::Internal,
        },
        name,
        start_time,
        end_time: start_time + took,
        attributes: attributes.chain(class).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: if error.is_some() { Status::error("") } else { Status::Unset },
        instrumentation_scope: scope.clone(),
    }
}

/// Reads `name=value,…`, with values in percent-encoding.
fn headers(list: &str) -> anyhow::Result<Vec<(String, String)>> {
    let read = |entry: &str| {
        let (name, value) = entry.split_once('=')?;
        let name = HeaderName::try_from(name.trim()).ok().filter(|name| !frames_message(name))?;
        let value = percent_decode_str(value.trim()).decode_utf8().ok()?;
        HeaderValue::try_from(&*value).ok()?;
        Some((name.to_string(), value.into_owned()))
    };
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    // Without the value, which may be a secret.
    entries
        .map(|entry| {
            read(entry).context("OTEL_EXPORTER_OTLP_HEADERS: must be NAME=VALUE, several separated by commas")
        })
        .collect()
}

/// Sends the exporter's requests through the guarded connector, with the configured headers.
struct Client {
    connector: Connector,
    headers: Vec<(String, String)>,
}

/// Without the headers, which hold secrets.
impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl HttpClient for Client {
    async fn send_bytes(
        &self,
        request: opentelemetry_http::Request<Bytes>,
    ) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let limits = Limits { total: PATIENCE, ..Limits::default() };
        let mut sent = Request::post(head.uri.to_string(), body)
            .header("content-type", "application/x-protobuf")
            .header("user-agent", format!("svc/{VERSION}"))
            .limits(limits);
        sent.headers.extend(self.headers.iter().cloned());
        let answer = self.connector.send(sent).await?;
        let mut response = Response::builder().status(answer.status).body(answer.body)?;
        *response.headers_mut() = answer.headers;
        Ok(response)
    }
}
