//! The decision whether to call a tool, and which: first by words, then by the model.
//!
//! On its own, a model of this size calls any tool at any occasion, or none. So the decision depends on words that
//! the question shares with a tool's name and description. If several tools match equally well, the model decides by
//! the likelihood of their names (alone it found 5 of 8 in a small trial with four tools). If the instructions match
//! better than any tool, the model answers from them. If nothing matches but a tool searches, the question is
//! searched, because the model would invent an answer. Otherwise the model is free to answer or to call, and mostly
//! answers.

use std::collections::HashSet;

use crate::types::{Message, Role, Tool};

/// The allowed answers. `T` is the type of the tools.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan<T = Vec<usize>> {
    /// Text only.
    Text,
    /// Text or a call of any tool; the model decides.
    Free,
    /// A call of one of these tools, usually given by their positions in the request.
    Call(T),
}

/// The minimum number of points for a match. Fewer are chance. A word in the name counts 2; a verb that any tool
/// could have, or a word in the description, counts 1.
const ENOUGH: usize = 2;
/// Verbs in tool names that say nothing about the subject.
const VERBS: &[&str] = &[
    "add", "call", "create", "delete", "do", "fetch", "find", "get", "list", "look", "make", "run", "search",
    "send", "set", "show", "update",
];
/// Words without significance.
const STOP: &[&str] = &[
    "about", "all", "and", "any", "are", "but", "can", "could", "did", "does", "for", "from", "give", "has",
    "have", "her", "his", "how", "into", "its", "like", "may", "more", "not", "now", "one", "our", "out",
    "please", "should", "some", "tell", "than", "that", "the", "their", "them", "then", "there", "these",
    "they", "this", "tool", "use", "used", "user", "using", "want", "was", "what", "when", "where", "which",
    "who", "will", "with", "would", "you", "your",
];

/// Words of greetings, which are said without a question.
const GREETINGS: &[&str] = &[
    "afternoon",
    "bye",
    "day",
    "evening",
    "good",
    "goodbye",
    "great",
    "hello",
    "hey",
    "hola",
    "morning",
    "nice",
    "okay",
    "thank",
    "thanks",
    "yes",
    "gracias",
    "buenos",
    "días",
    "hallo",
    "danke",
];

/// Words that only modify others. Alone they ask for an amount.
const MORE: [&str; 3] = ["lot", "much", "very"];

/// Decides by the words of the conversation only.
pub(crate) fn plan(messages: &[Message], tools: &[Tool]) -> Plan {
    let Some(asked) = messages.iter().rposition(|message| message.role == Role::User) else {
        return Plan::Text;
    };
    if tools.is_empty() {
        return Plan::Text;
    }
    let question = messages.get(asked).map(|message| message.content.as_str()).unwrap_or_default();
    let since = messages.get(asked + 1..).unwrap_or_default();
    if since.iter().any(|message| message.role == Role::Tool) {
        // There is a result, so normally the model should now answer. The exception is a tool that the user named and
        // that was not called yet ("use a and then b").
        let called: HashSet<&str> =
            since.iter().flat_map(|message| &message.tool_calls).map(|call| call.name.as_str()).collect();
        let next = tools.iter().enumerate().find(|(_, tool)| {
            names(question, &tool.name) && !called.is_empty() && !called.contains(tool.name.as_str())
        });
        return next.map_or(Plan::Text, |(place, _)| Plan::Call(vec![place]));
    }
    // A tool that is named literally is called. Of several, the one named first comes first.
    let named = (0..).zip(tools).filter(|(_, tool)| names(question, &tool.name));
    if let Some((place, _)) = named.min_by_key(|(_, tool)| question.find(tool.name.as_str())) {
        return Plan::Call(vec![place]);
    }
    let words = words(question);
    let points: Vec<usize> = tools.iter().map(|tool| score(&words, tool)).collect();
    let best = points.iter().copied().max().unwrap_or(0);
    let instructions = messages.iter().filter(|message| message.role == Role::System);
    let instructed: HashSet<String> =
        instructions.flat_map(|message| self::words(&message.content)).collect();
    let told = words.iter().filter(|word| instructed.contains(*word)).count();
    if told >= ENOUGH && told > best {
        return Plan::Text;
    }
    if best < ENOUGH {
        let searches =
            (0..).zip(tools).filter(|(_, tool)| spaced(&tool.name).split(' ').any(|word| word == "search"));
        let searches: Vec<usize> = searches.map(|(place, _)| place).collect();
        let says_more = |word: &String| MORE.iter().any(|more| stem(more) == *word);
        let says_nothing = words.is_empty()
            || words.iter().all(|word| says_more(word) || is_common(word)) && !words.iter().all(says_more);
        return match (searches.is_empty(), says_nothing) {
            (true, _) => Plan::Free,
            (false, true) => Plan::Text,
            (false, false) => Plan::Call(searches),
        };
    }
    Plan::Call((0..).zip(points).filter(|(_, points)| *points == best).map(|(place, _)| place).collect())
}

/// Returns whether the stem is that of a greeting or of a verb that any tool could have.
pub(crate) fn is_common(word: &str) -> bool {
    GREETINGS.iter().chain(VERBS).any(|common| stem(common) == word)
}

/// Returns whether the text contains this name as a separate word. Names that are one plain word count as words, not
/// as names.
fn names(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    name.contains(['_', '-']) && text.split(|c| !part(c)).any(|word| word == name)
}

fn score(question: &HashSet<String>, tool: &Tool) -> usize {
    let name = words(&tool.name);
    let from_name: usize = name
        .iter()
        .filter(|word| question.contains(*word))
        .map(|word| if VERBS.contains(&word.as_str()) { 1 } else { 2 })
        .sum();
    let description = words(&tool.description);
    from_name + description.iter().filter(|word| question.contains(*word) && !name.contains(*word)).count()
}

/// Returns a text in lower case with single spaces between words. `camelCase` becomes two words.
pub(crate) fn spaced(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + 8);
    let mut lower_before = false;
    for c in text.chars() {
        if c.is_uppercase() && lower_before {
            spaced.push(' ');
        }
        lower_before = c.is_lowercase();
        if c.is_alphanumeric() {
            spaced.extend(c.to_lowercase());
        } else {
            spaced.push(' ');
        }
    }
    spaced
}

/// Returns the significant words of a text, without common endings.
pub(crate) fn words(text: &str) -> HashSet<String> {
    spaced(text)
        .split(' ')
        .filter(|word| word.chars().count() > 2 && !STOP.contains(word))
        .map(stem)
        .collect()
}

fn stem(word: &str) -> String {
    let endings = ["ing", "ies", "es", "ed", "s", "e", "y"];
    let stem =
        endings.iter().find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.chars().count() > 2));
    stem.unwrap_or(word).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::ToolCall;

    fn tool(name: &str, description: &str) -> Tool {
        Tool { name: name.into(), description: description.into(), ..Tool::default() }
    }

    fn tools() -> Vec<Tool> {
        vec![
            tool("get_weather", "Current weather and temperature in a city"),
            tool("create_ticket", "Opens a support ticket for a customer's problem"),
            tool("searchContacts", "Finds contacts by name or company"),
        ]
    }

    fn ask(question: &str) -> Plan {
        plan(&[Message::new(Role::User, question)], &tools())
    }

    #[test]
    fn words_of_name_and_description_choose() {
        assert_eq!(ask("What is the weather in Paris?"), Plan::Call(vec![0]));
        assert_eq!(ask("How hot is it? I mean the current temperature"), Plan::Call(vec![0]));
        assert_eq!(ask("My printer has a problem, open a ticket please"), Plan::Call(vec![1]));
        assert_eq!(ask("Which contact works at Acme?"), Plan::Call(vec![2]));
        assert_eq!(ask("Contacts with tickets"), Plan::Call(vec![1, 2]));
    }

    #[test]
    fn a_tool_named_literally_wins() {
        assert_eq!(ask("weather aside, use create_ticket"), Plan::Call(vec![1]));
    }

    #[test]
    fn nothing_in_common_leaves_it_to_the_model() {
        let weather = &tools()[..2];
        for question in ["Tell me a joke", "get it", ""] {
            assert_eq!(plan(&[Message::new(Role::User, question)], weather), Plan::Free, "{question}");
        }
    }

    #[test]
    fn what_the_instructions_say_is_not_searched_for() {
        let rules = "Opening hours: Monday to Friday. The weather is no topic.";
        let ask = |question| {
            plan(&[Message::new(Role::System, rules), Message::new(Role::User, question)], &tools())
        };
        assert_eq!(ask("What are your opening hours?"), Plan::Text);
        assert_eq!(ask("The current weather in Paris"), Plan::Call(vec![0]));
        assert_eq!(ask("Is Ana there on Monday?"), Plan::Call(vec![2]));
    }

    #[test]
    fn what_no_tool_is_near_to_is_searched_for() {
        assert_eq!(ask("Do you know Ana Ruiz?"), Plan::Call(vec![2]));
        assert_eq!(ask("And how much are they?"), Plan::Call(vec![2]));
        for greeting in ["Hello!", "Good morning", "Thank you very much", "get it", ""] {
            assert_eq!(ask(greeting), Plan::Text, "{greeting}");
        }
    }

    #[test]
    fn no_tools_or_no_question_is_text() {
        assert_eq!(plan(&[Message::new(Role::User, "weather")], &[]), Plan::Text);
        assert_eq!(plan(&[Message::new(Role::System, "weather")], &tools()), Plan::Text);
        assert_eq!(plan(&[], &tools()), Plan::Text);
    }

    #[test]
    fn an_answered_tool_leads_to_text() {
        let call = ToolCall { name: "get_weather".into(), ..ToolCall::default() };
        let called = Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "") };
        let conversation =
            |question| [Message::new(Role::User, question), called.clone(), Message::new(Role::Tool, "rain")];
        assert_eq!(plan(&conversation("The weather in Paris?"), &tools()), Plan::Text);
        let both = conversation("Do get_weather, then create_ticket");
        assert_eq!(plan(&both, &tools()), Plan::Call(vec![1]));
        let again = [&both[..], &[Message::new(Role::User, "And the weather tomorrow?")]].concat();
        assert_eq!(plan(&again, &tools()), Plan::Call(vec![0]));
    }
}
