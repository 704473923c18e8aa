//! Estimates of tokens, for providers that do not report their usage and for holds of Energy.

use crate::answer::{Completion, Usage};
use crate::message::{Message, ToolCall, ToolSpec};
use crate::prompt::Prompt;

/// Estimates the usage of a call whose provider does not report it: a token for four characters.
pub(crate) fn estimated_usage(prompt: &Prompt, completion: &Completion) -> Usage {
    let tokens = |characters: usize| i64::try_from(characters.div_ceil(4)).unwrap_or(i64::MAX);
    let call = |call: &ToolCall| call.name.chars().count() + call.arguments.chars().count();
    let message = |message: &Message| {
        message.content.chars().count() + message.tool_calls.iter().map(call).sum::<usize>()
    };
    let tool = |tool: &ToolSpec| {
        let parameters = tool.parameters.to_string();
        tool.name.chars().count() + tool.description.chars().count() + parameters.chars().count()
    };
    let input =
        prompt.messages.iter().map(message).sum::<usize>() + prompt.tools.iter().map(tool).sum::<usize>();
    let output = completion.text.chars().count() + completion.tool_calls.iter().map(call).sum::<usize>();
    Usage { input_tokens: tokens(input), output_tokens: tokens(output), ..Usage::default() }
}

/// Estimates the tokens of a text, rather too high than too low: holds must be sufficient.
///
/// Letters of ASCII come three to a token and more, its punctuation in pairs, its digits alone at worst. Beyond ASCII
/// tokenizers know common characters and spell rare ones byte by byte: one token for a character of two bytes
/// (Greek, Cyrillic, Hebrew, Arabic), two for one of three (Chinese, Japanese, Korean, Indic), and four for the rest.
pub(crate) fn text_tokens(text: &str) -> i64 {
    text.bytes().map(sixths).sum::<i64>() / 6 + 1
}

/// The sixths of a token that a byte counts for.
pub(crate) fn sixths(byte: u8) -> i64 {
    match byte {
        b' ' => 1,
        byte if byte.is_ascii_alphabetic() => 2,
        b'0'..=b'9' => 6,
        0x00..=0x7f => 4,
        0xc0..=0xdf => 6,
        0xe0..=0xef => 12,
        0xf0..=0xff => 24,
        // The rest of a character that was counted with its first byte.
        _ => 0,
    }
}

/// Returns the longest beginning of a text with at most `tokens` estimated tokens.
pub fn beginning(text: &str, tokens: i64) -> &str {
    let mut left = tokens.max(0).saturating_mul(6);
    let end = text.bytes().position(|byte| {
        left -= sixths(byte);
        left < 0
    });
    // The bytes behind a character's first count for nothing, so it ends before a character.
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// Estimates the tokens of messages, rather too high than too low.
pub fn estimated_tokens<'a>(messages: impl IntoIterator<Item = &'a Message>) -> i64 {
    let call = |call: &ToolCall| 8 + text_tokens(&call.name) + text_tokens(&call.arguments);
    messages
        .into_iter()
        .map(|message| 8 + text_tokens(&message.content) + message.tool_calls.iter().map(call).sum::<i64>())
        .sum()
}

/// Estimates the tokens that tools add to a prompt, rather too high than too low.
pub fn estimated_tool_tokens(tools: &[ToolSpec]) -> i64 {
    let tool = |tool: &ToolSpec| {
        16 + text_tokens(&tool.name)
            + text_tokens(&tool.description)
            + text_tokens(&tool.parameters.to_string())
    };
    tools.iter().map(tool).sum()
}
