//! Results of tools in a prompt: the tags around them, and how they are cut to make room.

use model::JsonText;
use providers::{Message, beginning, estimated_tokens};

const FENCE_END: &str = "\n</tool_result>";

/// The end of the text of a file of a skill.
pub const FILE_END: &str = "\n</skill_file>";

/// The minimum number of tokens of a useful part of a result.
const WORTH_KEEPING: i64 = 32;

/// Encloses the result of a tool in tags that the result cannot close.
pub fn fenced(tool: &str, output: &JsonText) -> String {
    // In JSON `<` occurs only in strings, where it can be escaped.
    let inside = output.as_str().replace('<', "\\u003c");
    format!("<tool_result tool=\"{tool}\">\n{inside}{FENCE_END}")
}

/// Cuts `excess` tokens from the end of a tool result, as far as possible, and notes in it how much is missing. Returns the
/// number of saved tokens.
pub fn shorten(result: &mut Message, excess: i64) -> i64 {
    // The instructions of a skill have another end, and are never cut.
    let ends = [FENCE_END, FILE_END];
    let content =
        ends.into_iter().find_map(|end| Some((result.content.strip_suffix(end)?.split_once('\n')?, end)));
    let Some(((opening, inside), end)) = content else { return 0 };
    let before = estimated_tokens([&*result]);
    let frame = |kept: &str| {
        let missing = inside.len() - kept.len();
        format!("{opening}\n{kept}[left out to make room: {missing} of {} bytes]{end}", inside.len())
    };
    let with = |content: String| Message { content, ..result.clone() };
    let stub = with(frame(""));
    let left = before.saturating_sub(excess).saturating_sub(estimated_tokens([&stub]));
    let shorter = if left < WORTH_KEEPING { stub } else { with(frame(beginning(inside, left))) };
    let saved = before - estimated_tokens([&shorter]);
    if saved <= 0 {
        return 0;
    }
    *result = shorter;
    saved
}
