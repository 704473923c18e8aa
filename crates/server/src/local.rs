//! The embedded model as a provider.

use local_model::{Engine, Event};
use providers::{
    BoxFuture, Completion, Finish, Message, Prompt, Provider, ProviderError, Role, ToolCall, Usage,
};
use serde_json::Value;

/// Answers with the model inside this process.
pub(crate) struct Local(pub(crate) Engine);

impl Provider for Local {
    fn complete<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Completion, ProviderError>> {
        Box::pin(async move {
            if self.0.is_small()
                && let Some(text) = quotation(prompt)
            {
                return Ok(quoted(text, prompt));
            }
            let mut generation = self.0.generate(request(prompt)).map_err(failed)?;
            loop {
                // Dropping the generation, here or with this future, stops the model.
                let event = tokio::select! {
                    event = generation.next() => event,
                    () = prompt.cancel.cancelled() => return Err(ProviderError::Cancelled),
                };
                match event {
                    Some(Event::Token(piece)) => {
                        if let Some(sink) = &prompt.sink {
                            sink.say(&piece);
                        }
                    }
                    Some(Event::Done(completion)) => return Ok(answer(completion)),
                    Some(Event::Failed(error)) => return Err(failed(error)),
                    None => return Err(ProviderError::Unavailable("the embedded model stopped".to_owned())),
                }
            }
        })
    }
}

/// What the last result says, where it is an answer already: a small model would repeat it with mistakes.
fn quotation(prompt: &Prompt) -> Option<String> {
    let last = prompt.messages.last().filter(|message| message.role == Role::Tool)?;
    let rows = rows(&last.content).filter(|_| prompt.output_schema.is_none())?;
    Some(told(&rows, false))
}

/// A completion that the model had no part in.
fn quoted(text: String, prompt: &Prompt) -> Completion {
    if let Some(sink) = &prompt.sink {
        sink.say(&text);
    }
    let output_tokens = i64::try_from(text.len() / BYTES_PER_TOKEN).unwrap_or(i64::MAX);
    Completion {
        text,
        tool_calls: Vec::new(),
        finish: Finish::Stop,
        usage: Some(Usage { output_tokens, ..Usage::default() }),
    }
}

fn request(prompt: &Prompt) -> local_model::Request {
    local_model::Request {
        messages: prompt.messages.iter().map(message).collect(),
        tools: prompt
            .tools
            .iter()
            .map(|tool| local_model::Tool {
                name: tool.name.clone(),
                description: tool.description.clone(),
                parameters: tool.parameters.clone(),
            })
            .collect(),
        output_schema: prompt.output_schema.clone(),
        max_output_tokens: u32::try_from(prompt.max_output_tokens).unwrap_or(u32::MAX),
        #[expect(clippy::cast_possible_truncation, reason = "a temperature is between 0 and 2")]
        temperature: prompt.temperature.map(|temperature| temperature as f32),
        seed: 0,
    }
}

fn message(message: &Message) -> local_model::Message {
    let role = match message.role {
        Role::System => local_model::Role::System,
        Role::User => local_model::Role::User,
        Role::Assistant => local_model::Role::Assistant,
        Role::Tool => local_model::Role::Tool,
    };
    local_model::Message {
        role,
        content: match message.role {
            Role::Tool => brief(&message.content).unwrap_or_else(|| message.content.clone()),
            _ => message.content.clone(),
        },
        tool_calls: message
            .tool_calls
            .iter()
            .map(|call| local_model::ToolCall {
                id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
            })
            .collect(),
        tool_call_id: message.tool_call_id.clone(),
    }
}

/// The most rows of a tool's result that the model reads: each token costs it time.
const ROWS: usize = 5;
/// How many bytes of a text a token has, on average.
const BYTES_PER_TOKEN: usize = 4;
/// What it reads where there are none.
const NOTHING: &str = "I found nothing like that.";
/// Stands before a result, because it forgets what to do while it reads.
const REMINDER: &str = "Tell me in one or two short sentences:";

/// A result of one of the service's operations in words that are an answer already, because a small model likes to repeat
/// what it read. `None` for any other result.
fn brief(content: &str) -> Option<String> {
    Some(format!("{REMINDER}\n{}", told(&rows(content)?, true)))
}

/// The rows that an operation found. `None` for any other result.
fn rows(content: &str) -> Option<Vec<Value>> {
    let start = content.find('{')?;
    let end = content.rfind('}')?;
    let mut output: Value = serde_json::from_str(content.get(start..=end)?).ok()?;
    match output.pointer_mut("/result/data")?.take() {
        Value::Array(rows) => Some(rows),
        _ => None,
    }
}

/// A line for each row, such as `- Tea Pot (price: 27.85)`. By its id another function finds the record.
fn told(rows: &[Value], with_ids: bool) -> String {
    if rows.is_empty() {
        return NOTHING.to_owned();
    }
    let lines = rows.iter().take(ROWS).map(|row| {
        let values = row.get("data").unwrap_or(row).as_object().into_iter().flatten();
        let mut told = values.filter_map(|(name, value)| Some((name.as_str(), plain(value)?)));
        let title = told.next().map(|(_, title)| title).unwrap_or_default();
        let id = row.get("data").and(row.get("id")).filter(|_| with_ids).and_then(plain).map(|id| ("id", id));
        let others: Vec<String> = told.chain(id).map(|(name, value)| format!("{name}: {value}")).collect();
        if others.is_empty() { format!("- {title}") } else { format!("- {title} ({})", others.join(", ")) }
    });
    let mut lines: Vec<String> = lines.collect();
    if let more @ 1.. = rows.len() - lines.len() {
        lines.push(format!("and {more} more"));
    }
    format!("I found:\n{}", lines.join("\n"))
}

/// A value as text, where it has one.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Array(values) => {
            let texts: Vec<String> = values.iter().filter_map(plain).collect();
            (!texts.is_empty()).then(|| texts.join(", "))
        }
        Value::String(_) | Value::Null | Value::Object(_) => None,
    }
}

fn answer(completion: local_model::Completion) -> Completion {
    Completion {
        text: completion.text.replace('\0', ""),
        tool_calls: completion
            .tool_calls
            .into_iter()
            .map(|call| ToolCall { id: call.id, name: call.name, arguments: call.arguments })
            .collect(),
        finish: match completion.finish {
            local_model::Finish::Stop => Finish::Stop,
            local_model::Finish::Length => Finish::Length,
            local_model::Finish::ToolCalls => Finish::ToolCalls,
        },
        usage: Some(Usage {
            input_tokens: i64::from(completion.prompt_tokens),
            output_tokens: i64::from(completion.output_tokens),
            ..Usage::default()
        }),
    }
}

fn failed(error: local_model::Error) -> ProviderError {
    match error {
        local_model::Error::Cancelled => ProviderError::Cancelled,
        error => ProviderError::Unavailable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_has_no_ids() {
        let result = r#"{"ok":true,"result":{"data":[{"id":7,"data":{"name":"Tea Pot","price":27.85}}]}}"#;
        assert_eq!(told(&rows(result).unwrap(), false), "I found:\n- Tea Pot (price: 27.85)");
    }

    #[test]
    fn results_of_operations_are_lines() {
        let result = r#"<tool_result tool="products_search">
{"ok":true,"result":{"data":[{"id":1,"data":{"name":"Tea Pot","price":27.85,"tags":["new","gift"],"note":null}}]}}
</tool_result>"#;
        let row = "I found:\n- Tea Pot (price: 27.85, tags: new, gift, id: 1)";
        assert!(brief(result).unwrap().ends_with(row));
        let none = r#"<tool_result tool="x">\n{"ok":true,"result":{"data":[]}}\n</tool_result>"#;
        assert!(brief(none).unwrap().ends_with(NOTHING));
        let rows = vec![serde_json::json!({ "id": 1 }); 7];
        let many = serde_json::json!({ "ok": true, "result": { "data": rows } }).to_string();
        assert!(brief(&many).unwrap().ends_with("- 1\nand 2 more"));
        for other in ["", "rain", r#"{"ok":false,"error":"no"}"#, r#"{"ok":true,"result":{"data":{"id":1}}}"#]
        {
            assert_eq!(brief(other), None, "{other}");
        }
    }
}
