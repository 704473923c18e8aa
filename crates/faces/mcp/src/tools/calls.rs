//! Calls of tools. Each is one request of the operation that it calls.

use super::answer::{Outcome, Running, ToolAnswer, ToolCall, ToolResult};
use super::catalog::{OperationTool, snake};
use super::discovery::{self, NamedCall};
use super::names;
use super::results::{Answer, failure, link};
use super::set::ToolSet;
use super::texts::Arguments;
use super::workspace;
use model::{Caller, Code, Error, Principal, Result};
use operation::{Admitted, CallInput, Paging, Pipeline, Reply, Response, ResponseBody};
use serde_json::{Map, Value, json};

/// What becomes of a call before an operation runs.
enum Target<'a> {
    /// An operation, with its arguments and the members of the result to keep.
    Operation(&'a OperationTool, Result<Arguments>, Vec<String>),
    /// An answer that the tools composed.
    Composed(Result<Answer>),
    Unknown,
}

impl ToolSet {
    /// Calls a tool. The admitted request (`POST /mcp`) becomes a request of the operation.
    pub(super) async fn call(&self, admitted: Admitted, call: ToolCall) -> ToolAnswer {
        let caller = admitted.caller().clone();
        let ToolCall { name, arguments, selection } = call;
        match self.target(&name, arguments, &caller, selection.read_only).await {
            Target::Operation(tool, arguments, fields) => {
                let arguments = match arguments {
                    Ok(_) if selection.read_only && !tool.is_read_only() => Err(read_only(tool.meta.id)),
                    arguments => arguments,
                };
                self.run(admitted, &caller, tool, arguments, fields).await
            }
            Target::Composed(answer) => {
                let (reply, answer) = match answer {
                    Ok(answer) => (Ok(Reply::new(200, String::new())), Some(answer)),
                    Err(error) => (Err(error), None),
                };
                let response = self.pipeline.answer(admitted, reply).await;
                finished(response, |_, meta| answer.map(|answer| answer.result(meta)))
            }
            Target::Unknown => {
                let response = self.pipeline.answer(admitted, Ok(Reply::new(200, String::new()))).await;
                let headers = response.headers;
                ToolAnswer { headers, outcome: Outcome::UnknownTool(name) }
            }
        }
    }

    async fn target(&self, name: &str, arguments: Arguments, caller: &Caller, read_only: bool) -> Target<'_> {
        match name {
            names::FIND => return Target::Composed(self.find(&arguments, &caller.key, read_only)),
            names::DESCRIBE => return Target::Composed(self.describe(&arguments)),
            names::READ | names::WRITE | names::DELETE => return self.named(name, arguments),
            _ => {}
        }
        if let Some(tool) = self.catalog.tool(name) {
            return Target::Operation(tool, Ok(arguments), Vec::new());
        }
        if !workspace::is_own(name) {
            return Target::Unknown;
        }
        let (own, Some(start)) = (self.own(caller).await, self.starter()) else { return Target::Unknown };
        match own.map(|own| own.into_iter().find(|tool| tool.name == name)) {
            Ok(Some(tool)) => Target::Operation(start, tool.start(&arguments), Vec::new()),
            Ok(None) => Target::Unknown,
            Err(error) => Target::Composed(Err(error)),
        }
    }

    /// The operation that `svc_read`, `svc_write` or `svc_delete` names.
    fn named(&self, name: &str, arguments: Arguments) -> Target<'_> {
        let call = match NamedCall::read(name, &arguments) {
            Ok(call) => call,
            Err(error) => return Target::Composed(Err(error)),
        };
        let tool = match self.known_operation(&call.operation) {
            Ok(tool) => tool,
            Err(error) => return Target::Composed(Err(error)),
        };
        let wanted = discovery::called_with(tool);
        if wanted != name {
            // A host may let `svc_read` run without asking, so it must not change anything.
            let rule = format!("`{}` is called with `{wanted}`", tool.meta.id);
            return Target::Composed(Err(Error::invalid("operation", rule)));
        }
        Target::Operation(tool, Ok(call.arguments), call.fields)
    }

    async fn run(
        &self,
        admitted: Admitted,
        caller: &Caller,
        tool: &OperationTool,
        arguments: Result<Arguments>,
        fields: Vec<String>,
    ) -> ToolAnswer {
        let input = arguments.and_then(|arguments| tool.input(arguments));
        let again = input.as_ref().ok().filter(|_| tool.meta.paging.is_some()).cloned();
        let mut response = self.pipeline.run_as(admitted, tool.meta, input).await;
        if response.status == 403
            && let (Principal::App(_), Some(scope)) = (&caller.principal, tool.meta.scope)
            && !caller.key.scopes.contains(scope)
        {
            let scopes = vec![model::Scope::McpUse, scope];
            return ToolAnswer { headers: response.headers, outcome: Outcome::MissingScopes(scopes) };
        }
        if let ResponseBody::Json(text) = &mut response.body
            && response.status < 400
            && let Some(shorter) = self.shorter(caller, tool, again, text, &fields).await
        {
            *text = shorter;
        }
        finished(response, move |text, meta| {
            let mut answer = Answer::of(text).ok()?;
            answer.keep(&fields);
            let mut result = answer.result(meta);
            result.more_content.extend(link(&result.text));
            Some(result)
        })
    }

    /// Reads a list again with pages that fit into a result, so that its cursor goes on behind the last row shown.
    async fn shorter(
        &self,
        caller: &Caller,
        tool: &OperationTool,
        input: Option<CallInput>,
        text: &str,
        fields: &[String],
    ) -> Option<String> {
        let mut input = input?;
        let mut answer = Answer::of(text).ok()?;
        answer.keep(fields);
        let rows = answer.rows_that_fit()?;
        let value = |query: &[(String, String)], name: &str| -> Option<usize> {
            query.iter().rev().find(|(other, _)| other == name)?.1.parse().ok()
        };
        let before = value(&input.query, "limit").unwrap_or(20).clamp(1, 100);
        let mut limit = rows.min(before);
        if tool.meta.paging == Some(Paging::Page) {
            // Pages are numbered, so the shorter ones must divide the longer ones.
            limit = (1..=limit).rev().find(|limit| before % limit == 0).unwrap_or(1);
            let page = value(&input.query, "page").unwrap_or(1).max(1);
            let first = (page - 1).saturating_mul(before / limit).saturating_add(1);
            set(&mut input.query, "page", first);
        }
        set(&mut input.query, "limit", limit);
        self.pipeline.peek(caller, tool.meta, input).await.ok()
    }
}

/// The answer to a call that fails before its tool is known.
pub(super) async fn refused(pipeline: &Pipeline, admitted: Admitted, error: Error) -> ToolAnswer {
    finished(pipeline.answer(admitted, Err(error)).await, |_, _| None)
}

fn set(query: &mut Vec<(String, String)>, name: &str, value: usize) {
    query.retain(|(other, _)| other != name);
    query.push((name.to_owned(), value.to_string()));
}

fn read_only(id: &str) -> Error {
    let message = format!("The client chose read-only tools, and `{}` changes something.", snake(id));
    Error::new(Code::ValidationError, message).param("read_only")
}

/// Makes the answer of a response.
fn finished(
    response: Response,
    succeed: impl FnOnce(&str, Map<String, Value>) -> Option<ToolResult> + Send + 'static,
) -> ToolAnswer {
    let Response { status, headers, body } = response;
    let mut meta = Map::new();
    if let Some((_, id)) = headers.iter().find(|(name, _)| *name == "x-request-id") {
        meta.insert("request_id".to_owned(), id.as_str().into());
    }
    let outcome = match body {
        ResponseBody::Json(text) => Outcome::Result(result(status, &text, meta, succeed)),
        ResponseBody::Events(events) => {
            let finish = move |last: Value| {
                // The stream itself is a 200. A failure has the status that its code has elsewhere.
                let code = last.pointer("/error/code").and_then(Value::as_str);
                let known = Code::ALL.iter().find(|known| code == Some(known.as_str()));
                let is_done = last.get("success") == Some(&json!(true));
                let status = if is_done { 200 } else { known.map_or(500, |code| code.status()) };
                result(status, &last.to_string(), meta, succeed)
            };
            Outcome::Running(Running { events, finish: Box::new(finish) })
        }
    };
    ToolAnswer { headers, outcome }
}

fn result(
    status: u16,
    text: &str,
    meta: Map<String, Value>,
    succeed: impl FnOnce(&str, Map<String, Value>) -> Option<ToolResult>,
) -> ToolResult {
    if status < 400
        && let Some(result) = succeed(text, meta.clone())
    {
        return result;
    }
    failure(&serde_json::from_str(text).unwrap_or_default(), status, meta)
}
