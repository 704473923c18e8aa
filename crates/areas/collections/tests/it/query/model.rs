//! A naive model of filters and order, which works on items as the API returns them.

use serde_json::Value;
use std::cmp::Ordering;
use unicode_normalization::UnicodeNormalization;

/// The choices of select fields, in order.
pub const CHOICES: [&str; 3] = ["small", "medium", "large"];

/// A value in the form in which it is compared.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
enum Worth {
    Text(Vec<u8>),
    Number(f64),
    Place(usize),
    Moment(i64),
}

fn fold(text: &str) -> String {
    text.nfkc().collect::<String>().to_lowercase().replace('ς', "σ").replace('ß', "ss").nfkc().collect()
}

/// Removes the accents from a folded text.
fn letters(folded: &str) -> String {
    folded.nfd().filter(|letter| !('\u{300}'..='\u{36f}').contains(letter)).nfc().collect()
}

fn worth(kind: &str, value: &Value) -> Option<Worth> {
    Some(match kind {
        "text" => {
            let text = value.as_str()?;
            let (folded, text) = (fold(text), text.nfc().collect::<String>());
            let letters = letters(&folded);
            let accented = if folded == letters { "" } else { &folded };
            Worth::Text([letters.as_str(), accented, &text].join("\0").into_bytes())
        }
        "number" | "integer" => Worth::Number(value.as_f64()?),
        "boolean" => Worth::Place(usize::from(value.as_bool()?)),
        "date" | "time" => Worth::Text(value.as_str()?.as_bytes().to_vec()),
        "datetime" => Worth::Moment(moment(value.as_str()?)),
        "select" => Worth::Place(CHOICES.iter().position(|choice| value == choice)?),
        _ => return None,
    })
}

fn moment(text: &str) -> i64 {
    chrono::DateTime::parse_from_rfc3339(text).unwrap().timestamp_millis()
}

/// Returns the value of a field.
fn field<'a>(item: &'a Value, name: &str) -> &'a Value {
    match name {
        "id" | "version" => &item[name],
        _ => &item["data"][name],
    }
}

/// Compares two items under a sort such as `["-price", "name"]`.
pub fn order(sort: &[(String, String, bool)], one: &Value, other: &Value) -> Ordering {
    let mut newest_first = true;
    for (name, kind, desc) in sort {
        newest_first = *desc;
        let of = |item| worth(kind, field(item, name));
        let by_part = match (of(one), of(other)) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => return Ordering::Greater,
            (Some(_), None) => return Ordering::Less,
            (Some(one), Some(other)) => one.partial_cmp(&other).unwrap(),
        };
        let by_part = if *desc { by_part.reverse() } else { by_part };
        if by_part != Ordering::Equal {
            return by_part;
        }
    }
    let by_id = one["id"].as_i64().cmp(&other["id"].as_i64());
    if newest_first { by_id.reverse() } else { by_id }
}

/// Returns whether a text matches a pattern of `like`.
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

/// Returns whether a field matches an operator and an operand. An empty text matches items without a value.
pub fn fits(item: &Value, name: &str, kind: &str, op: &str, operand: &Value) -> bool {
    let value = field(item, name);
    let equal = |operand: &Value| match kind {
        "text" => value.as_str().is_some_and(|text| {
            text.nfc().collect::<String>() == operand.as_str().unwrap().nfc().collect::<String>()
        }),
        "multi_select" => value.as_array().is_some_and(|all| all.contains(operand)),
        _ => !value.is_null() && worth(kind, value) == worth(kind, operand),
    };
    let is_empty = value.is_null() || value == "";
    match op {
        "eq" if operand == "" => is_empty,
        "neq" if operand == "" => !is_empty,
        "eq" => equal(operand),
        "neq" => !equal(operand),
        "in" => operand.as_array().unwrap().iter().any(equal),
        "like" | "ilike" => value.as_str().is_some_and(|text| {
            let operand = operand.as_str().unwrap();
            let fit = |form: &dyn Fn(&str) -> String| {
                let letters = |text: &str| form(text).chars().collect::<Vec<_>>();
                like(&letters(operand), &letters(text))
            };
            let composed = |text: &str| text.nfc().collect();
            // Folding a whole text can combine letters that match one by one.
            let letterwise = |text: &str| text.nfc().map(|letter| fold(&letter.to_string())).collect();
            if op == "like" { fit(&composed) } else { fit(&fold) || fit(&letterwise) }
        }),
        _ => match (worth(kind, value), worth(kind, operand)) {
            (Some(value), Some(operand)) => match op {
                "gt" => value > operand,
                "gte" => value >= operand,
                "lt" => value < operand,
                _ => value <= operand,
            },
            _ => false,
        },
    }
}

/// Returns whether an item matches a tree of conditions. `kind` returns the type of a field.
pub fn fits_tree(item: &Value, tree: &Value, kind: &dyn Fn(&str) -> String) -> bool {
    if let Some(all) = tree["and"].as_array() {
        return all.iter().all(|tree| fits_tree(item, tree, kind));
    }
    if let Some(any) = tree["or"].as_array() {
        return any.iter().any(|tree| fits_tree(item, tree, kind));
    }
    if tree.get("not").is_some() {
        return !fits_tree(item, &tree["not"], kind);
    }
    let name = tree["field"].as_str().unwrap();
    fits(item, name, &kind(name), tree["op"].as_str().unwrap(), &tree["value"])
}
