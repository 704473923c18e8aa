//! Code fences around structured answers.

use super::json;

/// The JSON of an answer that holds it in a code block, as models like to write it; any other answer as it is.
pub fn strip(text: &str) -> &str {
    if json::text_of(text).is_some() {
        return text;
    }
    let Some((_, block)) = text.split_once("```") else { return text };
    // The name of the language, which may stand on the same line as the JSON.
    let block = block.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
    // A text of the JSON may contain a fence, and prose behind the block another one.
    let ends = [block.find("```"), block.rfind("```"), Some(block.len())];
    let inside = ends.into_iter().flatten().filter_map(|end| block.get(..end));
    inside.map(str::trim).find(|inside| json::text_of(inside).is_some()).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_taken_out_of_its_fence() {
        for (text, json) in [
            ("```json\n{\"a\":1}\n```", "{\"a\":1}"),
            ("```\n[1]\n```\n", "[1]"),
            ("```json {\"a\":1}```", "{\"a\":1}"),
            ("Here it is:\n```JSON\n{\"a\":1}\n```\nAnything else?", "{\"a\":1}"),
            ("```json\n{\"a\":\"```sh```\"}\n```", "{\"a\":\"```sh```\"}"),
            ("```json\n{\"a\":1}", "{\"a\":1}"),
            ("{\"a\":\"```{}```\"}", "{\"a\":\"```{}```\"}"),
            ("```json\n{\"a\":\n```", "```json\n{\"a\":\n```"),
            ("no JSON", "no JSON"),
            ("``````", "``````"),
        ] {
            assert_eq!(strip(text), json, "{text}");
        }
    }
}
