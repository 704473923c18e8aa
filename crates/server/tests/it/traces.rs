//! Traces that an operator's collector receives.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Attribute;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use prost::Message;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use testkit::{Kind, Program, Receiver, tool_call, until};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "b7ad6b7169203331";

/// All spans that the collector has, and whose they are.
fn exported(collector: &Receiver) -> Vec<ResourceSpans> {
    let requests = collector.delivered().into_iter().flat_map(|request| {
        assert_eq!(
            (request.path.as_str(), request.headers["content-type"].as_str()),
            ("/v1/traces", "application/x-protobuf")
        );
        assert_eq!(request.headers["authorization"], "Basic hidden-in-the-header=");
        ExportTraceServiceRequest::decode(request.body.as_slice()).unwrap().resource_spans
    });
    requests.collect()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(span: &Span) -> BTreeMap<String, String> {
    let text = |value: Attribute| match value {
        Attribute::StringValue(text) => text,
        Attribute::IntValue(number) => number.to_string(),
        other => panic!("{other:?}"),
    };
    let attributes = span.attributes.iter().cloned();
    attributes.map(|one| (one.key, text(one.value.unwrap().value.unwrap()))).collect()
}

/// The span id of a header `traceparent` of the trace.
fn sent(header: &str) -> &str {
    let fields: Vec<&str> = header.trim().split('-').collect();
    assert_eq!((fields[0], fields[1], fields[3]), ("00", TRACE, "01"), "{header}");
    fields[2]
}

#[testkit::both]
async fn a_collector_receives_a_request_with_all_that_it_causes(kind: Kind) {
    let (collector, receiver, tool) =
        (Receiver::start().await, Receiver::start().await, Receiver::start().await);
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc"))
        .await
        .with("SVC_ALLOW_OUTBOUND", "127.0.0.0/8")
        .with("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url(""))
        .with("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20hidden-in-the-header%3D")
        .with("OTEL_SERVICE_NAME", "svc-test");
    let key = program.key("agents:write,runs:execute,webhooks:manage,runs:read");
    program.run(&["energy", "grant", "--workspace", &key.workspace.to_string(), "--amount", "1000000"]);
    let serving = program.serve().await;
    let client = program.client();
    let post = async |path: &str, flags: &str, body: serde_json::Value| {
        let ask =
            client.ask("POST", path).key(&key).header("traceparent", &format!("00-{TRACE}-{PARENT}-{flags}"));
        ask.json(&body).send().await
    };
    let agent = json!({ "name": "Assistant", "status": "active" });
    let agent = post("/agents", "00", agent).await.expect(201)["id"].to_string();
    let look = json!({ "type": "http", "description": "Looks.", "http": { "method": "GET", "url": tool.url("/hidden-in-the-tool") } });
    let put = client.ask("PUT", &format!("/agents/{agent}/tools/look")).key(&key);
    put.json(&look).send().await.expect(200);
    let endpoint = json!({ "url": receiver.url("/hidden-in-the-path"), "enabled_events": ["run.completed"] });
    post("/webhook-endpoints", "00", endpoint).await.expect(201);
    program.model.then(200, None, tool_call("look", &json!({ "about": "hidden-in-the-call" })));
    let run = post("/runs", "01", json!({ "input": "My hidden-in-the-question" })).await;
    let request = run.headers["x-request-id"].clone();
    let run = run.expect(200)["id"].as_str().unwrap().to_owned();
    until("the delivery", async || (receiver.count() == 1).then_some(())).await;
    program.model.then(401, None, json!({}));
    post("/runs", "01", json!({ "input": "Hello" })).await.expect_error(502, "model_unavailable");
    let streamed = post("/runs", "01", json!({ "input": "Hello", "stream": true })).await;
    assert!(streamed.text.contains("run.completed"), "{}", streamed.text);
    client.ask("GET", "/runs").key(&key).send().await.expect(200);
    serving.stop().await;

    let all = exported(&collector);
    let mut spans = Vec::new();
    for one in all {
        let resource = one.resource.unwrap().attributes;
        let named = resource.iter().find(|attribute| attribute.key == "service.name").unwrap();
        assert_eq!(named.value.as_ref().unwrap().value, Some(Attribute::StringValue("svc-test".to_owned())));
        spans.extend(one.scope_spans.into_iter().flat_map(|scope| scope.spans));
    }
    let find = |name: &str, parent: &str| {
        let found =
            spans.iter().find(|span| span.name == name && hexadecimal(&span.parent_span_id) == parent);
        let span = found.unwrap_or_else(|| panic!("{name} below {parent} in {spans:#?}"));
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano, "{span:?}");
        (hexadecimal(&span.span_id), span)
    };
    let (server, span) = find("POST /runs", PARENT);
    assert_eq!((hexadecimal(&span.trace_id).as_str(), span.kind()), (TRACE, SpanKind::Server));
    let said = attributes(span);
    assert_eq!(said["svc.workspace_id"], key.workspace.to_string());
    assert_eq!(said["svc.request_id"], request);
    for (name, value) in [
        ("http.request.method", "POST"),
        ("http.route", "/api/v1/runs"),
        ("http.response.status_code", "200"),
        ("svc.operation", "createRun"),
    ] {
        assert_eq!(said[name], value, "{said:?}");
    }
    let (agent, span) = find("invoke_agent", &server);
    assert_eq!(span.kind(), SpanKind::Internal);
    let said = attributes(span);
    assert_eq!((said["svc.run_id"].as_str(), said["svc.run_status"].as_str()), (run.as_str(), "completed"));
    let (chat, span) = find("chat x", &agent);
    assert_eq!(
        (span.kind(), attributes(span)["gen_ai.provider.name"].as_str()),
        (SpanKind::Client, "openai")
    );
    let (call, span) = find("POST", &chat);
    assert_eq!(
        (span.kind(), attributes(span)["http.response.status_code"].as_str()),
        (SpanKind::Client, "200")
    );
    let head = &program.model.heads()[0];
    let header = head.lines().find_map(|line| line.strip_prefix("traceparent:")).unwrap();
    assert_eq!(sent(header), call);
    let (looked, span) = find("execute_tool look", &agent);
    assert_eq!(span.kind(), SpanKind::Internal);
    assert_eq!(sent(&tool.delivered()[0].headers["traceparent"]), find("GET", &looked).0);
    let (delivery, span) = find("POST", &server);
    assert_eq!(attributes(span)["server.port"], receiver.address.port().to_string());
    assert_eq!(sent(&receiver.delivered()[0].headers["traceparent"]), delivery);

    let requests = spans.iter().filter(|span| span.name == "POST /runs");
    assert_eq!(requests.count(), 3, "one of them is a stream");

    // A failure of the service is one in the trace too, wherever it comes from.
    let failed: BTreeSet<&str> = spans
        .iter()
        .filter(|span| span.status.as_ref().is_some_and(|status| status.code() == StatusCode::Error))
        .map(|span| span.name.as_str())
        .collect();
    assert_eq!(failed, BTreeSet::from(["POST /runs", "invoke_agent", "chat x", "POST"]));
    // What came without a trace begins one, and what its caller does not record is not recorded here.
    find("GET /runs", "");
    assert!(
        !spans.iter().any(|span| matches!(span.name.as_str(), "POST /agents" | "POST /webhook-endpoints"))
    );
    let text = format!("{spans:?}");
    for hidden in ["hidden-in-the-", &key.secret] {
        testkit::assert_absent(&text, hidden);
    }
}

#[testkit::both]
async fn a_collector_receives_inbound_webhooks_and_deliveries_that_no_request_caused(kind: Kind) {
    let (collector, receiver) = (Receiver::start().await, Receiver::start().await);
    let program = Program::new(kind, env!("CARGO_BIN_EXE_svc"))
        .await
        .with("SVC_ALLOW_OUTBOUND", "127.0.0.0/8")
        .with("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url(""))
        .with("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20hidden-in-the-header%3D");
    let key = program.key("webhooks:manage");
    let serving = program.serve().await;
    let client = program.client();
    let endpoint = json!({ "url": receiver.url("/"), "enabled_events": ["webhook.received", "inbound_webhook.failing"] });
    client.ask("POST", "/webhook-endpoints").key(&key).json(&endpoint).send().await.expect(201);
    let create = async |body: serde_json::Value| {
        let webhook = client.ask("POST", "/inbound-webhooks").key(&key).json(&body).send().await.expect(201);
        let path =
            webhook["url"].as_str().unwrap().strip_prefix(&format!("http://{}", program.listen)).unwrap();
        (webhook["id"].as_str().unwrap().to_owned(), path.to_owned())
    };
    let (open, path) = create(json!({ "name": "Open" })).await;
    let post = async |path: &str| {
        let ask = client.ask_beside("POST", path).header("traceparent", &format!("00-{TRACE}-{PARENT}-00"));
        ask.bytes("application/json", b"{}").send().await.status
    };
    assert_eq!(post(&path).await, 202);
    let (_, guarded) = create(
        json!({ "name": "Guarded", "verification": { "type": "bearer", "secrets": ["a secret of ours"] } }),
    )
    .await;
    // So many refusals that the service publishes an event of its own.
    for _ in 0..20 {
        assert_eq!(post(&guarded).await, 400);
    }
    until("both deliveries", async || (receiver.count() == 2).then_some(())).await;
    serving.stop().await;

    let scopes = exported(&collector).into_iter().flat_map(|one| one.scope_spans);
    let spans: Vec<Span> = scopes.flat_map(|scope| scope.spans).collect();
    let received: Vec<&Span> = spans.iter().filter(|span| span.name == "POST /hooks/{token}").collect();
    assert_eq!(received.len(), 21);
    let accepted =
        received.iter().find(|span| attributes(span)["http.response.status_code"] == "202").unwrap();
    let said = attributes(accepted);
    assert_eq!(
        (said["svc.inbound_webhook_id"].as_str(), said["http.route"].as_str()),
        (open.as_str(), "/hooks/{token}")
    );
    assert_eq!(said["svc.workspace_id"], key.workspace.to_string());
    // Anybody can send, so the trace of a sender is ignored.
    assert!(accepted.parent_span_id.is_empty() && accepted.kind() == SpanKind::Server, "{accepted:?}");
    assert!(spans.iter().all(|span| hexadecimal(&span.trace_id) != TRACE), "{spans:#?}");
    let refused =
        received.iter().find(|span| attributes(span)["http.response.status_code"] == "400").unwrap();
    assert_eq!(attributes(refused)["svc.error_code"], "invalid_signature");

    let deliveries: Vec<&Span> = spans.iter().filter(|span| span.kind() == SpanKind::Client).collect();
    assert_eq!(deliveries.len(), 2, "{deliveries:#?}");
    let (caused, root): (Vec<&Span>, Vec<&Span>) =
        deliveries.into_iter().partition(|span| span.trace_id == accepted.trace_id);
    assert_eq!(caused[0].parent_span_id, accepted.span_id);
    assert!(root[0].parent_span_id.is_empty(), "{root:?}");
    for delivery in receiver.delivered() {
        let header = &delivery.headers["traceparent"];
        // Sampled, and the trace id is random.
        assert!(header.ends_with("-03"), "{header}");
        assert!(
            [&caused[0], &root[0]].iter().any(|span| header.contains(&hexadecimal(&span.span_id))),
            "{header}"
        );
    }
    assert!(!format!("{spans:?}").contains(path.rsplit('/').next().unwrap()), "a token is a secret");
}

#[tokio::test]
async fn a_collector_that_is_not_there_disturbs_nobody() {
    let admin = Program::address();
    let program = Program::new(Kind::Sqlite, env!("CARGO_BIN_EXE_svc"))
        .await
        .with("SVC_ADMIN_LISTEN", &admin)
        .with("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", Program::address()));
    let key = program.key("agents:read");
    let serving = program.serve().await;
    for _ in 0..600 {
        program.client().ask("GET", "/agents").key(&key).send().await.expect(200);
    }
    let admin = testkit::Client::new(&format!("http://{admin}"));
    until("a batch has failed", async || {
        let text = admin.ask_beside("GET", "/metrics").send().await.text;
        text.contains("\nsvc_spans_total{outcome=\"failed\"} 512\n").then_some(())
    })
    .await;
    serving.stop().await;
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_refused() {
    let program = Program::new(Kind::Sqlite, env!("CARGO_BIN_EXE_svc"))
        .await
        .with("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318");
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4318"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "hidden-header"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "host=hidden-header"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "a=hidden-header%0A"),
        ("OTEL_TRACES_SAMPLER", "sometimes"),
        ("OTEL_TRACES_SAMPLER_ARG", "1.5"),
    ] {
        let message = program.fails_with(name, value, &["serve"]);
        let names = message.contains(name) || message.contains("--otlp-endpoint");
        assert!(names, "{message}");
        testkit::assert_absent(&message, "hidden-header");
    }
}
