//! What a search is for: a model of this size repeats the tool's description instead of the user's subject, so the words
//! of the question are given to it.

use crate::choose::{is_common, spaced, words};
use crate::types::{Message, Role, Tool};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// The arguments by which tools take the words to find.
const NAMES: [&str; 2] = ["q", "query"];
/// Words with which people ask about a thing, and which do not name it.
const ASKING: [&str; 29] = [
    "available",
    "best",
    "buy",
    "cheap",
    "cheapest",
    "cost",
    "costs",
    "expensive",
    "fewest",
    "interested",
    "kind",
    "know",
    "least",
    "left",
    "looking",
    "many",
    "most",
    "much",
    "need",
    "number",
    "price",
    "prices",
    "sell",
    "selling",
    "shop",
    "sort",
    "still",
    "stock",
    "type",
];
/// The most words of a search.
const MOST: usize = 8;

/// The argument by which a tool takes the words to find, if it needs nothing else.
pub(crate) fn argument(tool: &Tool) -> Option<&'static str> {
    let required = tool.parameters.get("required").and_then(Value::as_array)?;
    NAMES.into_iter().find(|name| required.len() == 1 && required.iter().any(|one| one == name))
}

/// The tool with the words that the conversation asks for as its only argument. `None` for a tool that does not search for
/// words, and where the user named no subject.
pub(crate) fn with_terms(tool: &Tool, messages: &[Message]) -> Option<Tool> {
    let name = argument(tool)?;
    let own = words(&tool.name);
    let asked = messages.iter().rev().filter(|message| message.role == Role::User);
    let terms = asked.map(|message| terms(&message.content, &own)).find(|terms| !terms.is_empty())?;
    let properties = Map::from_iter([(name.to_owned(), json!({ "const": terms }))]);
    let parameters = json!({
        "type": "object", "properties": properties, "required": [name], "additionalProperties": false,
    });
    Some(Tool { parameters, ..tool.clone() })
}

/// The words of a question that say what it is about, in their order.
fn terms(question: &str, own: &HashSet<String>) -> String {
    let spaced = spaced(question);
    let names_it = |word: &&str| {
        let stems = words(word);
        !stems.is_empty()
            && stems.is_disjoint(own)
            && !stems.iter().all(|stem| is_common(stem))
            && !ASKING.contains(word)
    };
    spaced.split(' ').filter(names_it).take(MOST).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search() -> Tool {
        Tool {
            name: "products_search".to_owned(),
            description:
                "Searches the items of the collection \"Products\": what the shop sells, and the price."
                    .to_owned(),
            parameters: json!({
                "type": "object", "required": ["q"],
                "properties": { "q": { "type": "string" }, "page": { "type": "integer" } },
            }),
        }
    }

    fn asked(questions: &[&str]) -> Option<Value> {
        let messages: Vec<Message> =
            questions.iter().map(|question| Message::new(Role::User, *question)).collect();
        let tool = with_terms(&search(), &messages)?;
        assert_eq!(tool.parameters["required"], json!(["q"]));
        Some(tool.parameters["properties"]["q"]["const"].clone())
    }

    #[test]
    fn a_search_is_for_the_subject_of_the_question() {
        for (question, terms) in [
            ("Do you have wooden trains? How much are they?", "wooden trains"),
            ("What is the price of a Tea Pot?", "tea pot"),
            ("How many products do you sell for the GARDEN?", "garden"),
            ("Do you sell chef's knives?", "chef knives"),
        ] {
            assert_eq!(asked(&[question]), Some(json!(terms)), "{question}");
        }
    }

    #[test]
    fn a_question_without_a_subject_is_about_that_of_the_one_before() {
        assert_eq!(asked(&["Do you have yoga mats?", "How much is it?"]), Some(json!("yoga mats")));
        assert_eq!(asked(&["How much is it?"]), None);
    }

    #[test]
    fn other_tools_keep_their_arguments() {
        let messages = [Message::new(Role::User, "Yoga mats")];
        for required in [json!([]), json!(["city"]), json!(["q", "city"])] {
            let parameters = json!({ "type": "object", "required": required, "properties": {} });
            assert_eq!(with_terms(&Tool { parameters, ..search() }, &messages), None);
        }
    }
}
