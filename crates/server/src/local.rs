//! The embedded model as a provider.

use agents::providers::{
    BoxFuture, Completion, Finish, Message, Prompt, Provider, ProviderError, Role, ToolCall, Usage,
};
use local_model::{Engine, Event};

/// Answers with the model inside this process.
pub(crate) struct Local(pub(crate) Engine);

impl Provider for Local {
    fn complete<'a>(&'a self, prompt: &'a Prompt) -> BoxFuture<'a, Result<Completion, ProviderError>> {
        Box::pin(async move {
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
        content: message.content.clone(),
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
