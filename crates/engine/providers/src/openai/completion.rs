//! Completions as servers send them, read leniently: what is neither text nor calls never makes an answer unreadable.

use super::calls;
use super::finish::Ended;
use super::{Fault, unreadable};
use crate::json::{self, Node};
use crate::{Completion, Finish, ProviderError, ToolCall, Usage};
use std::time::Duration;

/// The tokens that a server says an answer used. One that it leaves out is estimated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    input: Option<i64>,
    output: Option<i64>,
    cached: i64,
    reasoning: i64,
}

impl Counts {
    pub(super) fn of(usage: Node<'_>) -> Self {
        let count = |names: [&str; 2]| names.iter().find_map(|name| usage.get(name).count());
        let detail = |of: &str, name: &str| usage.get(of).get(name).count().unwrap_or_default();
        Self {
            input: count(["prompt_tokens", "input_tokens"]),
            output: count(["completion_tokens", "output_tokens"]),
            cached: detail("prompt_tokens_details", "cached_tokens"),
            reasoning: detail("completion_tokens_details", "reasoning_tokens"),
        }
    }

    /// The usage; `None` where the server says nothing. `estimated` takes the place of the part that it leaves out.
    fn usage(self, estimated: impl FnOnce() -> Usage) -> Option<Usage> {
        let said = (self.input.unwrap_or_default().max(0), self.output.unwrap_or_default().max(0));
        if said == (0, 0) {
            return None;
        }
        let (input_tokens, output_tokens) = match (self.input, self.output) {
            (Some(_), Some(_)) => said,
            (input, output) => {
                let estimated = estimated();
                (input.unwrap_or(estimated.input_tokens), output.unwrap_or(estimated.output_tokens))
            }
        };
        Some(Usage {
            input_tokens: input_tokens.max(0),
            cached_tokens: self.cached.max(0),
            output_tokens: output_tokens.max(0),
            reasoning_tokens: self.reasoning.max(0),
        })
    }
}

/// An answer as received from a server.
#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) text: String,
    /// The refusal that some servers send instead of a text.
    pub(super) refusal: String,
    pub(super) calls: Vec<ToolCall>,
    pub(super) finish_reason: Option<String>,
    pub(super) counts: Counts,
    /// The answer came in one piece, so that it ended even if it does not say so.
    pub(super) is_whole: bool,
}

impl Heard {
    /// The completion. `estimated` is what it is taken to have used, as far as the server does not say.
    pub(super) fn completion(
        self,
        estimated: impl FnOnce(&Completion) -> Usage,
    ) -> Result<Completion, Fault> {
        let ended = Ended::of(self.finish_reason.as_deref());
        let mut tool_calls = self.calls;
        let finish = match ended {
            Ended::Failed => {
                let reason = self.finish_reason.unwrap_or_default();
                return Err(Fault::Passing(None, format!("it failed: finish_reason {reason}")));
            }
            Ended::Cut => Finish::Length,
            Ended::Withheld => Finish::ContentFilter,
            Ended::Unknown => Finish::Unknown,
            Ended::Done | Ended::Unsaid if tool_calls.is_empty() => Finish::Stop,
            Ended::Done | Ended::Unsaid => Finish::ToolCalls,
        };
        // Of a call that was cut nobody knows what arguments it was to have.
        if ended == Ended::Done || ended == Ended::Unsaid && self.is_whole {
            tool_calls.iter_mut().for_each(calls::settle);
        }
        // What models print may hold NUL, which PostgreSQL cannot store.
        let text = if self.text.is_empty() { self.refusal } else { self.text }.replace('\0', "");
        let mut completion = Completion { text, tool_calls, finish, usage: None };
        completion.usage = self.counts.usage(|| estimated(&completion));
        Ok(completion)
    }
}

/// Reads the body of an answer that was sent at once.
pub(super) fn read(body: &[u8]) -> Result<Heard, Fault> {
    let body = json::tidy(&String::from_utf8_lossy(body));
    let answer = Node::root(&body).map_err(|error| Fault::Final(unreadable(error)))?;
    let choices = answer.get("choices").items();
    let is_first = |choice: &&Node<'_>| choice.get("index").count().unwrap_or_default() == 0;
    let choice = choices.iter().find(is_first).or(choices.first());
    if let Some(fault) = choice.map_or_else(|| failure(answer), |choice| failure(*choice)) {
        return Err(fault);
    }
    let choice = choice.ok_or_else(|| Fault::Final(unreadable("it has no choices")))?;
    let message = message(*choice);
    if !message.is_object() {
        return Err(failure(answer).unwrap_or_else(|| Fault::Final(unreadable("it has no message"))));
    }
    Ok(Heard {
        text: text(message.get("content")),
        refusal: text(message.get("refusal")),
        calls: calls::whole(message),
        finish_reason: choice.get("finish_reason").text(),
        counts: Counts::of(answer.get("usage")),
        is_whole: true,
    })
}

/// Returns the message of a choice. Some servers send `delta` in place of `message`, and the other way round.
pub(super) fn message(choice: Node<'_>) -> Node<'_> {
    let message = choice.get("message");
    if message.is_object() { message } else { choice.get("delta") }
}

/// Returns the text of a content, which is a string or a list of parts. Parts other than texts, such as thoughts, are left out.
pub(super) fn text(content: Node<'_>) -> String {
    if let Some(text) = content.text() {
        return text;
    }
    let part = |part: Node<'_>| {
        let kind = part.get("type").text();
        let is_text = kind.is_none_or(|kind| matches!(kind.as_str(), "text" | "output_text" | "refusal"));
        let names = ["text", "refusal", "content"].into_iter().filter(|_| is_text);
        let inner = names.map(|name| part.get(name)).find(|inner| inner.is_some())?;
        inner.text().or_else(|| inner.get("value").text())
    };
    content.items().into_iter().filter_map(|item| item.text().or_else(|| part(item))).collect()
}

/// Returns the error of a server that fails after it sent the status 200. It counts as the status that it contains.
pub(super) fn failure(answer: Node<'_>) -> Option<Fault> {
    let error = answer.get("error");
    let is_error = answer.get("object").text().is_some_and(|object| object == "error");
    let (error, why) = match error.is_some() {
        true => (error, error.json()),
        false if is_error => (answer, answer.json()),
        false => return None,
    };
    let why: String = format!("it failed: {why}").chars().take(300).collect();
    let status = ["code", "status", "status_code"].iter().find_map(|name| error.get(name).count());
    let status = status.and_then(|status| u16::try_from(status).ok());
    Some(of_status(status.filter(|status| (400..=599).contains(status)).unwrap_or(500), None, why))
}

/// The fault that an HTTP status stands for.
pub(super) fn of_status(status: u16, wait: Option<Duration>, why: String) -> Fault {
    match status {
        401 | 403 | 404 => Fault::Final(ProviderError::Unavailable(why)),
        408 | 409 | 425 | 429 | 500..=599 => Fault::Passing(wait, why),
        _ => Fault::Final(ProviderError::Refused(why)),
    }
}

#[cfg(test)]
mod tests;
