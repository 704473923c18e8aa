//! Tools of tests and of the conformance suite, behind the real endpoint.

use futures::future::LocalBoxFuture;
use futures::stream;
use mcp::{Catalog, Endpoint, Outcome, Running, Selection, Settings, ToolAnswer, ToolCall, ToolResult};
use model::{Caller, Result, Scope};
use operation::{Admitted, Chunks, Mount, Reply};
use serde_json::{Map, Value, json};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use testkit::TestApp;

/// One red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
/// A WAV file without samples.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// The tools.
pub struct Fixtures {
    pub pipeline: Arc<operation::Pipeline>,
}

impl Catalog for Fixtures {
    fn select<'a>(
        &'a self,
        _: &'a str,
        _: &'a dyn Fn(&str) -> Option<String>,
    ) -> LocalBoxFuture<'a, Result<Selection>> {
        Box::pin(async { Ok(Selection::default()) })
    }

    fn list<'a>(&'a self, _: &'a Caller, _: &'a Selection) -> LocalBoxFuture<'a, Result<Arc<str>>> {
        Box::pin(async { Ok(listed().to_string().into()) })
    }

    fn call(&self, admitted: Admitted, call: ToolCall) -> LocalBoxFuture<'_, ToolAnswer> {
        Box::pin(async move {
            let answer = self.pipeline.answer(admitted, Ok(Reply::new(200, String::new()))).await;
            ToolAnswer { headers: answer.headers, outcome: outcome(call) }
        })
    }
}

fn listed() -> Value {
    let names = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
        "test_tool_with_progress",
        "test_long",
    ];
    let empty = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    let mut tools: Vec<Value> = names
        .iter()
        .map(|name| json!({ "name": name, "description": "A tool of tests.", "inputSchema": empty }))
        .collect();
    tools.push(json!({
        "name": "json_schema_2020_12_tool",
        "description": "A tool whose schema has words of JSON Schema 2020-12.",
        "inputSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": { "address": { "$anchor": "addressDef", "type": "object", "properties": { "street": { "type": "string" }, "city": { "type": "string" } } } },
            "properties": {
                "name": { "type": "string" },
                "address": { "$ref": "#/$defs/address" },
                "contactMethod": { "type": "string", "enum": ["phone", "email"] },
                "phone": { "type": "string" },
                "email": { "type": "string" },
            },
            "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
            "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
            "then": { "required": ["phone"] },
            "else": { "required": ["email"] },
            "additionalProperties": false,
        },
    }));
    Value::Array(tools)
}

fn outcome(call: ToolCall) -> Outcome {
    let resource = json!({ "type": "resource", "resource": { "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content." } });
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    let audio = json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" });
    let blocks = |text: &str, more_content: Vec<Value>| {
        Outcome::Result(ToolResult { text: text.to_owned(), more_content, ..ToolResult::default() })
    };
    match call.name.as_str() {
        "test_simple_text" => blocks("This is a simple text response for testing.", Vec::new()),
        "test_image_content" => blocks("", vec![image]),
        "test_audio_content" => blocks("", vec![audio]),
        "test_embedded_resource" => blocks("", vec![resource]),
        "test_multiple_content_types" => blocks("Multiple content types test:", vec![image, resource]),
        "test_error_handling" => Outcome::Result(ToolResult {
            text: "This tool intentionally returns an error for testing".to_owned(),
            is_error: true,
            ..ToolResult::default()
        }),
        "test_tool_with_progress" => Outcome::Running(running(4, true)),
        "test_long" => Outcome::Running(running(2, false)),
        "test_scopes" => Outcome::MissingScopes(vec![Scope::ContactsWrite, Scope::TasksRead]),
        name => Outcome::UnknownTool(name.to_owned()),
    }
}

/// Events of a run that takes a while, or does not end.
fn running(events: usize, ends: bool) -> Running {
    let run = |status: &str| json!({ "success": true, "data": { "object": "run", "id": "run_1", "status": status } });
    let events = (1..=events).map(move |number| {
        let (name, status) = match number {
            1 => ("run.created", "queued"),
            _ if number == events && ends => ("run.completed", "completed"),
            _ => ("run.queued", "in_progress"),
        };
        Ok(bytes::Bytes::from(format!("id: {number}\nevent: {name}\ndata: {}\n\n", run(status))))
    });
    let slowly = futures::StreamExt::then(stream::iter(events), |event| async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        event
    });
    let events: Chunks =
        if ends { Box::pin(slowly) } else { Box::pin(futures::StreamExt::chain(slowly, stream::pending())) };
    let finish = |body: Value| ToolResult {
        text: body["data"].to_string(),
        structured: Some(body["data"].to_string()),
        meta: Map::new(),
        ..ToolResult::default()
    };
    Running { events, finish: Box::new(finish) }
}

/// Serves a mount in place of the app's own, and returns its origin.
pub fn serve(app: &TestApp, mount: Arc<dyn Mount>, listener: TcpListener) -> String {
    let mut api = app.service.api();
    api.mounts = Arc::new([mount]);
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let options =
        rest::ServerOptions { keep_alive: Duration::from_secs(600), workers: Some(1), shutdown_seconds: 30 };
    tokio::spawn(rest::server(&api, vec![listener], &options).unwrap());
    origin
}

/// Makes an endpoint with the tools of this module.
pub fn endpoint(app: &TestApp, settings: Settings) -> Arc<dyn Mount> {
    let pipeline = app.service.pipeline.clone();
    let tools = Arc::new(Fixtures { pipeline: pipeline.clone() });
    Arc::new(Endpoint::new(pipeline, tools, &settings))
}
