//! Deferred tools: an agent with many tools shows its model a part of them, and a tool that finds the others.
//!
//! What was found stands in the steps, so a run that is resumed offers the same tools.

use super::callable::Callable;
use super::tool::FIND_TOOLS;
use fields::terms;
use fields::words::{Clause, Words};
use model::JsonText;
use providers::{ToolSpec, estimated_tool_tokens, json};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The most operations that a model is offered without a search. All others are deferred.
const MOST_OFFERED: usize = 40;
/// The most tokens that these operations may add to a prompt.
const MOST_TOKENS: i64 = 20_000;
/// The most operations that one search finds.
const MOST_FOUND: usize = 10;
/// The most names that a search without a result lists.
const MOST_NAMES: usize = 100;

/// The fewest letters of a word that may be the beginning of another.
const OPEN_FROM: usize = 4;

/// The weight of a word of the query in the name, the description and the parameters of an operation.
const WEIGHTS: [usize; 3] = [4, 2, 1];

/// Splits the operations of a run into those that the model is offered from the beginning, and the names of the deferred ones.
pub fn split<'a>(tools: impl Iterator<Item = &'a Callable> + Clone) -> (Vec<ToolSpec>, Vec<String>) {
    // Tools that were attached before the name was reserved are not hidden behind a tool that cannot be called.
    let is_taken = tools.clone().any(|tool| tool.spec.name == FIND_TOOLS);
    let (mut offered, mut deferred, mut tokens) = (Vec::new(), Vec::new(), 0);
    for Callable { spec, settings, .. } in tools {
        let more = estimated_tool_tokens(std::slice::from_ref(spec));
        let fits = offered.len() < MOST_OFFERED && tokens + more <= MOST_TOKENS;
        if is_taken || fits && !settings.deferred {
            tokens += more;
            offered.push(spec.clone());
        } else {
            deferred.push(spec.name.clone());
        }
    }
    if !deferred.is_empty() {
        offered.push(finder(deferred.len()));
    }
    (offered, deferred)
}

/// The tool that finds deferred ones.
fn finder(deferred: usize) -> ToolSpec {
    let query = json!({ "type": "string", "description": "What the tool is to do, in a few words." });
    ToolSpec {
        name: FIND_TOOLS.to_owned(),
        description: format!(
            "Finds further tools by what they do. There are {deferred} more than you see. You can call those that it finds."
        ),
        parameters: json!({ "type": "object", "properties": { "query": query }, "required": ["query"] }),
    }
}

/// The result of a search, as the model receives it and as the run keeps it.
#[derive(Debug, Serialize, Deserialize)]
pub struct FoundTools {
    tools: Vec<FoundTool>,
    /// Further operations that fit less well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    others: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct FoundTool {
    name: String,
    description: String,
    parameters: Value,
}

/// Answers a call of `find_tools`.
///
/// # Errors
/// What is wrong with the arguments, for the model.
pub fn find_tools<'a>(
    tools: impl Iterator<Item = &'a Callable>,
    deferred: &[String],
    arguments: &JsonText,
) -> Result<FoundTools, &'static str> {
    let arguments = json::parsed(arguments);
    let query = arguments.get("query").and_then(Value::as_str).filter(|query| !query.trim().is_empty());
    let query = query.ok_or("lack the text `query`")?;
    let words = words_of(query);
    let hidden = tools.filter(|tool| deferred.contains(&tool.spec.name));
    let mut scored: Vec<(usize, &ToolSpec)> =
        hidden.map(|tool| (score(&words, &tool.spec), &tool.spec)).collect();
    scored.retain(|(score, _)| *score > 0);
    // Of those that fit as well the first stays the first.
    scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    let note = scored.is_empty().then(|| {
        let names: Vec<&str> = deferred.iter().take(MOST_NAMES).map(String::as_str).collect();
        format!("No tool fits the query. There are: {}", names.join(", "))
    });
    let tool = |(_, spec): &(usize, &ToolSpec)| FoundTool {
        name: spec.name.clone(),
        description: spec.description.clone(),
        parameters: spec.parameters.clone(),
    };
    let others = scored.iter().skip(MOST_FOUND).take(MOST_NAMES).map(|(_, spec)| spec.name.clone());
    let others = others.collect();
    let tools = scored.iter().take(MOST_FOUND).map(tool).collect();
    Ok(FoundTools { tools, others, note })
}

impl FoundTools {
    /// The names of what was found.
    pub fn names(self) -> impl Iterator<Item = String> {
        self.tools.into_iter().map(|tool| tool.name)
    }
}

/// The words of a query as the search over records reads them, without the endings of plurals. A word that is not short may be the
/// beginning of another, such as that of its plural.
fn words_of(query: &str) -> Words {
    let is_long = |words: &[String]| words.iter().any(|word| word.chars().count() >= OPEN_FROM);
    let clause = |wanted: terms::Wanted| Clause {
        field: None,
        open: wanted.open || is_long(&wanted.words),
        words: wanted.words,
    };
    let words = Words(terms::wanted(query).into_iter().map(clause).collect());
    words.stems().unwrap_or(words)
}

fn score(words: &Words, spec: &ToolSpec) -> usize {
    let texts = [spec.name.clone(), spec.description.clone(), parameter_texts(&spec.parameters)];
    let tokens = texts.map(|text| terms::tokens(&text));
    let of_clause = |clause: &Clause| {
        let weighted = tokens.iter().zip(WEIGHTS).filter(|(tokens, _)| clause.count_in(tokens) > 0);
        weighted.map(|(_, weight)| weight).sum::<usize>()
    };
    words.0.iter().map(of_clause).sum()
}

/// The names and descriptions of parameters.
fn parameter_texts(parameters: &Value) -> String {
    let properties = parameters.get("properties").and_then(Value::as_object);
    let text = |(name, schema): (&String, &Value)| {
        let description = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        format!("{name} {description} ")
    };
    properties.into_iter().flatten().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_more_than_descriptions_and_plurals_are_found() {
        let spec = |name: &str, description: &str| ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json!({ "type": "object", "properties": { "city": { "description": "Where it is sent." } } }),
        };
        let score = |query: &str, spec: &ToolSpec| score(&words_of(query), spec);
        let orders = spec("orders_get", "Gets one.");
        let invoices = spec("invoices_get", "Gets the invoice of an order.");
        assert!(score("order", &invoices) < score("orders", &orders));
        assert_eq!(score("invoice", &invoices), score("invoices", &invoices));
        assert_eq!(score("ORDERS", &orders), score("orders", &orders));
        assert!(score("city", &orders) > 0 && score("sent", &orders) > 0);
        assert_eq!(score("weather", &orders), 0);
    }
}
