//! Terms of a search. A model of this size repeats the tool's description instead of the user's subject, so the
//! search terms are taken from the question.

use crate::choose::{is_common, spaced, words};
use crate::types::{Message, Role, Tool};
use serde_json::{Map, Value, json};
use std::collections::HashSet;

/// The names of arguments that take search terms.
const NAMES: [&str; 2] = ["q", "query"];
/// Words with which people ask about a thing without naming it.
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
/// The maximum number of search terms.
const MOST: usize = 8;

/// Returns the argument for search terms, if the tool requires nothing else.
pub(crate) fn argument(tool: &Tool) -> Option<&'static str> {
    let required = tool.parameters.get("required").and_then(Value::as_array)?;
    NAMES.into_iter().find(|name| required.len() == 1 && required.iter().any(|one| one == name))
}

/// Returns the tool with the conversation's search terms as its only argument. Returns `None` if the tool does not
/// search, or the user named no subject.
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

/// Returns the words of a question that name its subject, in order.
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
