//! A naive model of `filters` and `filter_tree` (docs/contacts.md, docs/data.md), which works on contacts as the API
//! returns them.

use serde_json::Value;
use std::cmp::Ordering;
use unicode_normalization::UnicodeNormalization;

/// The type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    Text,
    Number,
    Boolean,
    Date,
    Datetime,
    Time,
    Select,
    Words,
    Ids,
    Json,
}

/// A field by which contacts can be filtered.
#[derive(Debug, Clone)]
pub struct Known {
    pub key: String,
    pub sort: Sort,
    /// Keys and labels of the choices, in order.
    pub choices: Vec<(String, String)>,
}

impl Known {
    pub fn new(key: impl Into<String>, sort: Sort) -> Self {
        Self { key: key.into(), sort, choices: Vec::new() }
    }

    /// Returns the value of a contact, or `null`.
    pub fn of(&self, contact: &Value) -> Value {
        let value = match self.key.as_str() {
            "id" | "version" | "created_at" | "updated_at" => contact[&self.key].clone(),
            "external_id" | "external_key" => contact["external_id"].clone(),
            "created_by" => {
                let actor = &contact["created_by"];
                format!("{}:{}", actor["type"].as_str().unwrap(), actor["id"].as_str().unwrap()).into()
            }
            "tags" | "$tags" => contact["tags"].clone(),
            "status" | "$status" => contact["status"].clone(),
            "assignee" | "$assignee" => match &contact["assignee"]["id"] {
                Value::Null => Value::Null,
                id => Value::Array(vec![id.clone()]),
            },
            "autopilot" | "$autopilot" => contact["autopilot"]["enabled"].clone(),
            "paused_until" | "$paused_until" => contact["autopilot"]["paused_until"].clone(),
            "opted_out" | "$opted_out" => contact["opted_out"].clone(),
            key => match &contact["data"][key] {
                Value::Null => contact["data"][format!("${key}")].clone(),
                value => value.clone(),
            },
        };
        if value.as_array().is_some_and(Vec::is_empty) { Value::Null } else { value }
    }
}

pub fn composed(text: &str) -> String {
    text.nfc().collect()
}

fn folded(text: &str) -> String {
    text.nfkc().collect::<String>().to_lowercase().replace('ς', "σ").replace('ß', "ss").nfkc().collect()
}

/// Removes the accents from a folded text.
fn letters(folded: &str) -> String {
    folded.nfd().filter(|letter| !('\u{300}'..='\u{36f}').contains(letter)).nfc().collect()
}

/// Returns a value as texts: none for `null`, one for each element of a list, and JSON for values without another
/// text.
pub fn says(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![composed(text)],
        Value::Bool(value) => vec![value.to_string()],
        Value::Number(number) => vec![match number.as_i64() {
            Some(whole) => whole.to_string(),
            None => number.as_f64().unwrap().to_string(),
        }],
        Value::Array(elements) => {
            let text =
                |element: &Value| if element.is_array() { vec![element.to_string()] } else { says(element) };
            elements.iter().flat_map(text).collect()
        }
        Value::Object(_) => vec![value.to_string()],
        Value::Null => Vec::new(),
    }
}

/// Returns whether a contact matches a well-formed condition of `filters`.
pub fn fits_exactly(contact: &Value, known: &Known, negated: bool, operand: &Value) -> bool {
    let wanted = says(operand);
    says(&known.of(contact)).contains(&wanted[0]) != negated
}

/// A value as the field compares it.
#[derive(Debug, PartialEq, PartialOrd)]
enum Worth {
    Text(String, String),
    Number(f64),
    Place(usize),
}

fn moment(text: &str) -> i64 {
    let midnight = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    chrono::DateTime::parse_from_rfc3339(&midnight).unwrap().timestamp_millis()
}

impl Known {
    fn worth(&self, value: &Value) -> Option<Worth> {
        Some(match self.sort {
            Sort::Text => {
                let text = value.as_str()?;
                let (folded, composed) = (folded(text), composed(text));
                let letters = letters(&folded);
                let accented = if folded == letters { "" } else { &folded };
                Worth::Text(letters.clone(), [accented, &composed].join("\0"))
            }
            Sort::Number => Worth::Number(value.as_f64()?),
            Sort::Boolean => Worth::Place(usize::from(value.as_bool()?)),
            Sort::Date => Worth::Text(value.as_str()?.to_owned(), String::new()),
            Sort::Time => {
                let text = value.as_str()?;
                Worth::Text(
                    if text.len() == 5 { format!("{text}:00") } else { text.to_owned() },
                    String::new(),
                )
            }
            #[expect(clippy::cast_precision_loss, reason = "moments are far below 2^53")]
            Sort::Datetime => Worth::Number(moment(value.as_str()?) as f64),
            Sort::Select => {
                Worth::Place(self.choices.iter().position(|(key, label)| key == value || label == value)?)
            }
            Sort::Words | Sort::Ids | Sort::Json => return None,
        })
    }

    fn equal(&self, value: &Value, operand: &Value) -> bool {
        match self.sort {
            Sort::Text => {
                value.as_str().is_some_and(|text| composed(text) == composed(operand.as_str().unwrap()))
            }
            Sort::Words => {
                let wanted = operand.as_str().unwrap();
                value.as_array().is_some_and(|words| words.iter().any(|word| word == wanted))
            }
            Sort::Ids => value.as_array().is_some_and(|ids| ids.contains(operand)),
            Sort::Json => value == operand,
            // A date without a time means the whole day.
            Sort::Datetime if operand.as_str().unwrap().len() == 10 => {
                value.as_str().is_some_and(|text| text.starts_with(operand.as_str().unwrap()))
            }
            _ => !value.is_null() && self.worth(value) == self.worth(operand),
        }
    }

    /// Returns the text that patterns are compared with.
    fn shown<'a>(&'a self, value: &'a Value) -> Option<&'a str> {
        let text = value.as_str()?;
        if self.sort != Sort::Select {
            return Some(text);
        }
        self.choices.iter().find(|(key, _)| key == text).map(|(_, label)| label.as_str())
    }

    fn fits(&self, contact: &Value, op: &str, operand: &Value) -> bool {
        let value = &self.of(contact);
        let asks_for_nothing = operand.is_null() || (operand == "" && self.sort != Sort::Json);
        match op {
            "eq" if asks_for_nothing => value.is_null() || value == "",
            "neq" if asks_for_nothing => !value.is_null() && value != "",
            "eq" => self.equal(value, operand),
            "neq" => !self.equal(value, operand),
            "in" => operand.as_array().unwrap().iter().any(|one| self.equal(value, one)),
            "like" | "ilike" => self.shown(value).is_some_and(|text| {
                let form = |text: &str| if op == "like" { composed(text) } else { folded(text) };
                let letters = |text: &str| form(text).chars().collect::<Vec<_>>();
                like(&letters(operand.as_str().unwrap()), &letters(text))
            }),
            _ => {
                let (Some(value), Some(operand)) = (self.worth(value), self.worth(operand)) else {
                    return false;
                };
                let order = value.partial_cmp(&operand).unwrap();
                match op {
                    "gt" => order == Ordering::Greater,
                    "gte" => order != Ordering::Less,
                    "lt" => order == Ordering::Less,
                    _ => order != Ordering::Greater,
                }
            }
        }
    }
}

/// Returns whether a text matches a pattern.
fn like(pattern: &[char], text: &[char]) -> bool {
    match (pattern.first(), text.first()) {
        (None, None) => true,
        (Some('%'), _) => like(&pattern[1..], text) || (!text.is_empty() && like(pattern, &text[1..])),
        (Some('_'), Some(_)) => like(&pattern[1..], &text[1..]),
        (Some('\\'), Some(letter)) if pattern.len() > 1 => {
            pattern[1] == *letter && like(&pattern[2..], &text[1..])
        }
        (Some(wanted), Some(letter)) => wanted == letter && like(&pattern[1..], &text[1..]),
        _ => false,
    }
}

/// Returns whether a contact matches a tree of conditions.
pub fn fits_tree(contact: &Value, tree: &Value, all: &[Known]) -> bool {
    if let Some(nodes) = tree["and"].as_array() {
        return nodes.iter().all(|node| fits_tree(contact, node, all));
    }
    if let Some(nodes) = tree["or"].as_array() {
        return nodes.iter().any(|node| fits_tree(contact, node, all));
    }
    if tree.get("not").is_some() {
        return !fits_tree(contact, &tree["not"], all);
    }
    let known = all.iter().find(|known| tree["field"] == *known.key).unwrap();
    known.fits(contact, tree["op"].as_str().unwrap(), &tree["value"])
}
