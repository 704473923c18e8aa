//! Conversion of a conversation to the format that the model was trained on: ChatML turns, with the descriptions of
//! tools in a system turn, and calls written as `<tool_call>{"name":…,"arguments":…}</tool_call>`.

use serde_json::{Value, json};

use crate::types::{Message, Role, Tool, ToolCall};

/// The text before a call. The grammar of tool calls begins with it too.
pub(crate) const CALL_START: &str = "<tool_call>";
const CALL_END: &str = "</tool_call>";
/// The system turn of conversations without one.
const DEFAULT_SYSTEM: &str = "You are a helpful assistant.";
/// Maximum length of a description. Longer ones are truncated, because each token of the prompt costs time on a CPU.
const DESCRIPTION_CHARS: usize = 200;

/// A rendered turn, before tokenization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The role of the message. [`Turn::name`] returns the name in the prompt.
    pub(crate) role: Role,
    /// The text between the header and the end of the turn.
    pub(crate) text: String,
}

impl Turn {
    /// Returns the role's name in the prompt. The model knows no tool role: results are written as a user's turn.
    pub(crate) fn name(&self) -> &'static str {
        match self.role {
            Role::System => "system",
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
        }
    }
}

/// Renders the turns of a conversation. The first is always the system's. Tools are described at the end, after the
/// question, so that the text before them is the same, and cached, whether or not tools can be called.
pub(crate) fn render<'a>(messages: &[Message], tools: impl IntoIterator<Item = &'a Tool>) -> Vec<Turn> {
    let mut turns: Vec<Turn> =
        messages.iter().map(|message| Turn { role: message.role, text: text(message) }).collect();
    if turns.first().is_none_or(|turn| turn.role != Role::System) {
        turns.insert(0, Turn { role: Role::System, text: DEFAULT_SYSTEM.to_owned() });
    }
    let described: String = tools.into_iter().map(describe).collect();
    if !described.is_empty() {
        let text = format!(
            "You can call these tools:\n{described}To call a tool, answer only with \
             {CALL_START}{{\"name\":\"...\",\"arguments\":{{...}}}}{CALL_END}. Without need of a tool, answer in plain text."
        );
        turns.push(Turn { role: Role::System, text });
    }
    turns
}

fn text(message: &Message) -> String {
    if message.role == Role::Tool {
        return format!("<tool_response>\n{}\n</tool_response>", message.content);
    }
    let mut text = message.content.clone();
    for call in &message.tool_calls {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&write_call(call));
    }
    text
}

fn write_call(call: &ToolCall) -> String {
    // Arguments of earlier calls come from outside. If they are not JSON, write them as a string.
    let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
    format!("{CALL_START}{}{CALL_END}", json!({"name": call.name, "arguments": arguments}))
}

/// Describes a tool in one line: `- name(city: string, unit: "c"|"f"): description`.
fn describe(tool: &Tool) -> String {
    let arguments: Vec<String> = tool
        .parameters
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| {
            properties.iter().map(|(name, schema)| format!("{name}: {}", kind(schema))).collect()
        })
        .unwrap_or_default();
    let description: String = tool.description.chars().take(DESCRIPTION_CHARS).collect();
    format!("- {}({}): {description}\n", tool.name, arguments.join(", "))
}

fn kind(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    }
    schema.get("type").and_then(Value::as_str).unwrap_or("any").to_owned()
}

/// Parses a generated call, `<tool_call>{"name":…,"arguments":…}`. Returns `None` if it is incomplete.
pub(crate) fn read_call(text: &str) -> Option<(String, String)> {
    let call: Value = serde_json::from_str(text.strip_prefix(CALL_START)?).ok()?;
    let name = call.get("name")?.as_str()?.to_owned();
    Some((name, call.get("arguments")?.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weather() -> Tool {
        Tool {
            name: "get_weather".into(),
            description: "The weather of a city".into(),
            parameters: json!({"type": "object", "properties":
                {"city": {"type": "string"}, "unit": {"enum": ["c", "f"]}, "x": {}}}),
        }
    }

    #[test]
    fn renders_turns_and_adds_the_default_system() {
        let turns = render(&[Message::new(Role::User, "hi"), Message::new(Role::Assistant, "hello")], &[]);
        let turns: Vec<_> = turns.iter().map(|turn| (turn.name(), turn.text.as_str())).collect();
        assert_eq!(turns, [("system", DEFAULT_SYSTEM), ("user", "hi"), ("assistant", "hello")]);
        let turns = render(&[Message::new(Role::System, "be brief")], &[]);
        assert_eq!(turns, [Turn { role: Role::System, text: "be brief".into() }]);
    }

    #[test]
    fn lists_tools_behind_the_question() {
        let messages = [Message::new(Role::System, "be brief"), Message::new(Role::User, "Rain?")];
        let turns = render(&messages, &[weather()]);
        assert_eq!(turns[..2], render(&messages, &[]));
        let line = r#"- get_weather(city: string, unit: "c"|"f", x: any): The weather of a city"#;
        assert_eq!((turns.len(), turns[2].role), (3, Role::System));
        assert!(turns[2].text.contains(line), "{}", turns[2].text);
    }

    #[test]
    fn writes_calls_and_results() {
        let call =
            ToolCall { id: "1".into(), name: "get_weather".into(), arguments: r#"{"city":"Oslo"}"#.into() };
        let broken = ToolCall { arguments: "{".into(), ..call.clone() };
        let assistant = Message { tool_calls: vec![call, broken], ..Message::new(Role::Assistant, "wait") };
        let turns = render(&[assistant, Message::new(Role::Tool, "rain")], &[]);
        let written = r#"{"name":"get_weather","arguments":{"city":"Oslo"}}"#;
        assert_eq!(
            turns[1].text,
            format!(
                "wait\n<tool_call>{written}</tool_call>\n<tool_call>{{\"name\":\"get_weather\",\"arguments\":\"{{\"}}</tool_call>"
            )
        );
        assert_eq!(
            (turns[2].name(), turns[2].text.as_str()),
            ("user", "<tool_response>\nrain\n</tool_response>")
        );
    }

    #[test]
    fn reads_back_complete_calls_only() {
        let call = read_call(r#"<tool_call>{"name":"a","arguments":{"b":1}}"#).unwrap();
        assert_eq!(call, ("a".into(), r#"{"b":1}"#.into()));
        assert_eq!(read_call(r#"<tool_call>{"name":"a","arguments":{"b""#), None);
        assert_eq!(read_call("text"), None);
    }
}
