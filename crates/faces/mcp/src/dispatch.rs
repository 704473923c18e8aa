//! The methods of both eras.

use crate::era::{Era, TASKS, negotiated, supported};
use crate::long::{Call, Work};
use crate::message::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MISSING_CAPABILITY, Params, Request,
    RpcError, result,
};
use crate::server::{McpServer, to_raw};
use crate::tasks::Task;
use crate::tools::{Arguments, Outcome, Running, Selection, ToolAnswer, ToolCall, ToolResult};
use model::{Result, Scope};
use operation::{Admitted, RawAnswer, RawBody};
use serde_json::{Value, json};

/// How long clients may keep a list, in milliseconds.
const LIST_TTL_MS: u64 = 60_000;
/// What the model is told about the server.
const INSTRUCTIONS: &str = "Operations of an agent automation service: contacts, conversations, tasks, collections of items, agents, flows and \
     more. If no listed tool fits, describe what you want to svc_find_operations, read the details with \
     svc_describe_operation, and call the operation with svc_read, svc_write or svc_delete.";

/// A request that is being answered.
pub(crate) struct Dispatch<'a> {
    pub(crate) server: &'a McpServer,
    pub(crate) era: Era,
    pub(crate) id: Value,
    pub(crate) selection: Result<Selection>,
}

impl Dispatch<'_> {
    pub(crate) async fn run(self, admitted: Admitted, request: Request) -> RawAnswer {
        let Request { method, params, arguments, .. } = request;
        match (method.as_str(), self.era.is_modern()) {
            ("initialize", false) => {
                let text = self.initialized(&params);
                self.reply(admitted, &text).await
            }
            ("ping", false) => self.reply(admitted, "{}").await,
            ("server/discover", true) => {
                let text = self.discovered();
                self.reply(admitted, &text).await
            }
            ("tools/list", _) => self.list(admitted, &params).await,
            ("tools/call", _) => self.call(admitted, &params, arguments).await,
            ("tasks/get" | "tasks/update" | "tasks/cancel", true) if !self.era.has_tasks() => {
                let refused = needs_tasks();
                self.server.refuse(admitted, &refused, Some(&self.id)).await
            }
            ("tasks/get", true) => self.task(admitted, &params).await,
            ("tasks/update" | "tasks/cancel", true) => self.change_task(admitted, &method, &params).await,
            (_, is_modern) => {
                // To clients of the older era a 404 says that their session has ended.
                let status = if is_modern { 404 } else { 200 };
                self.refuse(admitted, status, METHOD_NOT_FOUND, "The method does not exist.").await
            }
        }
    }

    fn server_info(&self) -> Value {
        json!({ "name": "svc", "title": "Agent automation service", "version": self.server.version })
    }

    fn initialized(&self, params: &Params) -> String {
        json!({
            "protocolVersion": negotiated(params),
            "capabilities": { "tools": {} },
            "serverInfo": self.server_info(),
            "instructions": INSTRUCTIONS,
        })
        .to_string()
    }

    fn discovered(&self) -> String {
        json!({
            "resultType": "complete",
            "supportedVersions": supported(),
            "capabilities": { "tools": {}, "extensions": { TASKS: {} } },
            "instructions": INSTRUCTIONS,
            "ttlMs": LIST_TTL_MS,
            "cacheScope": "private",
            "_meta": { "io.modelcontextprotocol/serverInfo": self.server_info() },
        })
        .to_string()
    }

    async fn list(self, admitted: Admitted, params: &Params) -> RawAnswer {
        if params.contains_key("cursor") {
            return self
                .refuse(admitted, 200, INVALID_PARAMS, "The list has one page; send no `cursor`.")
                .await;
        }
        let tools = match &self.selection {
            Ok(selection) => self.server.tools.list(admitted.caller(), selection).await,
            Err(_) => return self.refuse_selection(admitted).await,
        };
        let tools = match tools {
            Ok(tools) => tools,
            Err(error) => return to_raw(self.server.pipeline.answer(admitted, Err(error)).await),
        };
        let text = if self.era.is_modern() {
            format!(
                "{{\"resultType\":\"complete\",\"tools\":{tools},\"ttlMs\":{LIST_TTL_MS},\"cacheScope\":\"private\"}}"
            )
        } else {
            format!("{{\"tools\":{tools}}}")
        };
        self.reply(admitted, &text).await
    }

    async fn call(self, admitted: Admitted, params: &Params, arguments: Option<String>) -> RawAnswer {
        let arguments = match arguments.as_deref() {
            None | Some("null") => Some(Arguments::default()),
            Some(text) => Arguments::parse(text),
        };
        let Some(arguments) = arguments else {
            return self.refuse(admitted, 200, INVALID_PARAMS, "`arguments` must be an object.").await;
        };
        let Some(name) = params.get("name").and_then(Value::as_str).map(str::to_owned) else {
            return self.refuse(admitted, 200, INVALID_PARAMS, "`name` must be a string.").await;
        };
        let Some(selection) = self.selection.as_ref().ok().cloned() else {
            return self.refuse_selection(admitted).await;
        };
        let caller = admitted.caller().clone();
        let answer = self.server.tools.call(admitted, ToolCall { name, arguments, selection }).await;
        let ToolAnswer { headers, outcome } = answer;
        match outcome {
            Outcome::Result(result) => self.result(headers, &result),
            Outcome::UnknownTool(name) => {
                let message = format!("There is no tool `{name}`.");
                self.error(headers, &RpcError::new(200, INVALID_PARAMS, message))
            }
            Outcome::MissingScopes(scopes) => self.insufficient(headers, &scopes),
            Outcome::Running(running) => {
                let token = params.get("_meta").and_then(|meta| meta.get("progressToken"));
                let token =
                    token.filter(|token| token.is_string() || token.is_i64() || token.is_u64()).cloned();
                self.running(headers, running, token, &caller).await
            }
        }
    }

    /// Answers a call whose work takes long: with a task, with progress, or after waiting.
    async fn running(
        self,
        headers: Headers,
        running: Running,
        token: Option<Value>,
        caller: &model::Caller,
    ) -> RawAnswer {
        let call = Call::new(running);
        if let Era::Modern { tasks: true } = self.era {
            return match call.begun().await {
                Ok(work) => {
                    let pipeline = &self.server.pipeline;
                    let now = pipeline.db.now();
                    let mut task = Task::of(&work, caller, &pipeline.seal, now).members("working", now);
                    task.insert("resultType".to_owned(), "task".into());
                    self.text(headers, 200, &result(&self.id, &Value::Object(task).to_string()))
                }
                Err(ended) => self.result(headers, &ended),
            };
        }
        if let Some(token) = token {
            let (id, era) = (self.id.clone(), self.era);
            let events = call.progress(token, move |ended| result(&id, &tool_result(&ended, era)));
            let answer =
                RawAnswer { status: 200, headers: Vec::new(), body: RawBody::Whole(bytes::Bytes::new()) };
            return with_headers(answer, headers).chunks("text/event-stream", events);
        }
        let ended = call.wait(self.server.patience).await;
        self.result(headers, &ended)
    }

    /// Returns the state of a task: its work is read through the same gates as by the operation that reads it.
    async fn task(self, admitted: Admitted, params: &Params) -> RawAnswer {
        let caller = admitted.caller().clone();
        let Some((task, operation, parameter)) = self.known_task(&caller, params) else {
            return self.refuse(admitted, 200, INVALID_PARAMS, "There is no such task.").await;
        };
        let arguments = json!({ "operation": operation, "arguments": { parameter: task.work.clone() } });
        let Some(arguments) = Arguments::parse(&arguments.to_string()) else {
            return self.internal(Vec::new());
        };
        let call = ToolCall { name: "svc_read".to_owned(), arguments, selection: Selection::default() };
        let ToolAnswer { headers, outcome } = self.server.tools.call(admitted, call).await;
        let read = match outcome {
            Outcome::Result(read) => read,
            Outcome::MissingScopes(scopes) => return self.insufficient(headers, &scopes),
            Outcome::UnknownTool(_) | Outcome::Running(_) => return self.internal(headers),
        };
        if read.is_error {
            return self.error(headers, &RpcError::new(200, INVALID_PARAMS, read.text));
        }
        let object: Value =
            read.structured.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let goes_on = object.get("status").and_then(Value::as_str).is_some_and(Work::goes_on);
        let status = if goes_on { "working" } else { "completed" };
        let mut members = task.members(status, self.server.pipeline.db.now());
        members.insert("resultType".to_owned(), "complete".into());
        if !goes_on {
            let ended = serde_json::from_str(&tool_result(&read, self.era)).unwrap_or_default();
            members.insert("result".to_owned(), ended);
        }
        self.text(headers, 200, &result(&self.id, &Value::Object(members).to_string()))
    }

    /// Acknowledges. Cancelling a task ends the waiting and not the work, and no task asks its client for input.
    async fn change_task(self, admitted: Admitted, method: &str, params: &Params) -> RawAnswer {
        if self.known_task(&admitted.caller().clone(), params).is_none() {
            return self.refuse(admitted, 200, INVALID_PARAMS, "There is no such task.").await;
        }
        if method == "tasks/update" {
            return self.refuse(admitted, 200, INVALID_PARAMS, "The task asks for no input.").await;
        }
        self.reply(admitted, "{\"resultType\":\"complete\"}").await
    }

    fn known_task(
        &self,
        caller: &model::Caller,
        params: &Params,
    ) -> Option<(Task, &'static str, &'static str)> {
        let task = Task::read(params.get("taskId")?.as_str()?, caller, &self.server.pipeline.seal)?;
        let (operation, parameter) = Work::reader(&task.kind)?;
        Some((task, operation, parameter))
    }

    async fn reply(self, admitted: Admitted, text: &str) -> RawAnswer {
        let text = result(&self.id, text);
        self.server.reply(admitted, 200, text).await
    }

    async fn refuse(self, admitted: Admitted, status: u16, code: i32, message: &str) -> RawAnswer {
        let error = RpcError::new(status, code, message);
        self.server.refuse(admitted, &error, Some(&self.id)).await
    }

    /// Refuses a request whose query or headers choose tools that do not exist.
    async fn refuse_selection(self, admitted: Admitted) -> RawAnswer {
        match self.selection {
            Err(error) => to_raw(self.server.pipeline.answer(admitted, Err(error)).await),
            Ok(_) => self.internal(Vec::new()),
        }
    }

    fn internal(&self, headers: Headers) -> RawAnswer {
        self.error(headers, &RpcError::new(500, INTERNAL_ERROR, "Something went wrong."))
    }

    fn insufficient(&self, headers: Headers, scopes: &[Scope]) -> RawAnswer {
        let mut error = RpcError::new(403, INVALID_REQUEST, "The token lacks a scope of this tool.");
        let names: Vec<_> = scopes.iter().map(|scope| scope.as_str()).collect();
        error.data = Some(json!({ "code": "missing_scope", "scopes": names }));
        self.error(headers, &error).header("www-authenticate", self.server.challenges.insufficient(scopes))
    }

    fn error(&self, headers: Headers, error: &RpcError) -> RawAnswer {
        self.text(headers, error.status, &error.text(Some(&self.id)))
    }

    fn result(&self, headers: Headers, ended: &ToolResult) -> RawAnswer {
        self.text(headers, 200, &result(&self.id, &tool_result(ended, self.era)))
    }

    fn text(&self, headers: Headers, status: u16, text: &str) -> RawAnswer {
        with_headers(RawAnswer::status(status), headers).body("application/json", text.to_owned())
    }
}

/// The error for a client that asks for tasks and does not declare that it understands them.
fn needs_tasks() -> RpcError {
    let mut error = RpcError::new(400, MISSING_CAPABILITY, format!("The client must declare `{TASKS}`."));
    error.data = Some(json!({ "requiredCapabilities": { "extensions": { TASKS: {} } } }));
    error
}

type Headers = Vec<(&'static str, String)>;

fn with_headers(answer: RawAnswer, headers: Headers) -> RawAnswer {
    headers.into_iter().fold(answer, |answer, (name, value)| answer.header(name, value))
}

/// Returns the text of a `CallToolResult`.
fn tool_result(ended: &ToolResult, era: Era) -> String {
    let ToolResult { text, structured, more_content, is_error, meta } = ended;
    let has_text = !text.is_empty() || more_content.is_empty();
    let first = has_text.then(|| json!({ "type": "text", "text": text }).to_string());
    let content: Vec<String> = first.into_iter().chain(more_content.iter().map(Value::to_string)).collect();
    let mut whole = format!("{{\"content\":[{}]", content.join(","));
    if let Some(structured) = structured {
        whole.push_str(",\"structuredContent\":");
        whole.push_str(structured);
    }
    if *is_error {
        whole.push_str(",\"isError\":true");
    }
    if !meta.is_empty() {
        whole.push_str(",\"_meta\":");
        whole.push_str(&json!(meta).to_string());
    }
    if era.is_modern() {
        whole.push_str(",\"resultType\":\"complete\"");
    }
    whole.push('}');
    whole
}
