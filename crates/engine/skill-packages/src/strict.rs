//! The rules of the format, as its reference validator `skills-ref` applies them.

use crate::rules::{self, FIELDS};
use crate::yaml::{self, Node, Value, shortened};

/// A rule that a document breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field, if the rule is about one.
    pub field: Option<String>,
    /// The line, from 1, if it is known.
    pub line: Option<u32>,
    /// An explanation for people.
    pub message: String,
}

impl Violation {
    fn of_document(line: u32, message: impl Into<String>) -> Self {
        Self { field: None, line: Some(line), message: message.into() }
    }

    fn of_field(field: &str, line: Option<u32>, message: impl Into<String>) -> Self {
        Self { field: Some(field.to_owned()), line, message: message.into() }
    }
}

/// Checks SKILL.md against the rules of the format; with `folder`, also that the name is the folder's. Empty if it is valid.
pub fn check_strict(bytes: &[u8], folder: Option<&str>) -> Vec<Violation> {
    match entries(bytes) {
        Ok(entries) => check_entries(&entries, folder),
        Err(violation) => vec![violation],
    }
}

fn entries(bytes: &[u8]) -> Result<Vec<(Node, Node)>, Violation> {
    let text = std::str::from_utf8(bytes).map_err(|_| Violation::of_document(1, "The text is not UTF-8."))?;
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut parts = text.splitn(3, "---");
    if parts.next() != Some("") {
        return Err(Violation::of_document(1, "SKILL.md must begin with `---`."));
    }
    // The reference ends the front matter at the next `---`, wherever it stands.
    let (Some(front), Some(_)) = (parts.next(), parts.next()) else {
        return Err(Violation::of_document(1, "The front matter is not closed with `---`."));
    };
    if front.len() > rules::FRONT_MATTER {
        return Err(Violation::of_document(1, "The front matter is longer than 64 KB."));
    }
    let tree = yaml::parse(front).map_err(|fault| Violation::of_document(fault.line, fault.message))?;
    if let Some(line) = tree.tag {
        return Err(Violation::of_document(line, "Tags such as `!!str` are not allowed."));
    }
    if let Some(line) = tree.tab {
        return Err(Violation::of_document(line, "Tabs are allowed only within quotes."));
    }
    let Some(Node { value: Value::Map { entries, is_flow: false }, .. }) = &tree.root else {
        return Err(Violation::of_document(1, "The front matter must be a map of fields."));
    };
    match tree.root.as_ref().and_then(fault_of_style) {
        Some(violation) => Err(violation),
        None => Ok(entries.clone()),
    }
}

/// Brackets and braces, and maps of one map that are indented differently.
fn fault_of_style(node: &Node) -> Option<Violation> {
    if node.is_flow() {
        return Some(Violation::of_document(
            node.line,
            "Lists and maps in brackets are not allowed: put the text in quotes.",
        ));
    }
    match &node.value {
        Value::Text { .. } => None,
        Value::List { items, .. } => items.iter().find_map(fault_of_style),
        Value::Map { entries, .. } => {
            let mut maps = entries
                .iter()
                .map(|(_, value)| value)
                .filter(|value| matches!(value.value, Value::Map { .. }));
            let column = maps.next().map(|first| first.column);
            match maps.find(|map| Some(map.column) != column) {
                Some(map) => Some(Violation::of_document(
                    map.line,
                    "The map is indented differently from the one before.",
                )),
                None => entries
                    .iter()
                    .find_map(|(key, value)| fault_of_style(key).or_else(|| fault_of_style(value))),
            }
        }
    }
}

fn check_entries(entries: &[(Node, Node)], folder: Option<&str>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (key, _) in entries {
        let field = key.text().unwrap_or_default();
        if !FIELDS.contains(&field) {
            let message = format!("The format has no field `{}`.", shortened(field));
            violations.push(Violation::of_field(field, Some(key.line), message));
        }
    }
    let find = |field: &str| entries.iter().find(|(key, _)| key.text() == Some(field));
    match required("name", find("name")) {
        Ok((name, line)) => {
            let faults = rules::name_faults(name).into_iter();
            violations.extend(faults.map(|(_, message)| Violation::of_field("name", Some(line), message)));
            if let Some(folder) = folder.filter(|folder| !rules::is_folder_of(folder, name)) {
                let message =
                    format!("The folder is `{}`, but the name is `{}`.", shortened(folder), shortened(name));
                violations.push(Violation::of_field("name", Some(line), message));
            }
        }
        Err(violation) => violations.push(violation),
    }
    match required("description", find("description")) {
        Ok((description, line)) => violations.extend(
            rules::description_fault(description)
                .map(|(_, message)| Violation::of_field("description", Some(line), message)),
        ),
        Err(violation) => violations.push(violation),
    }
    if let Some((key, value)) = find("compatibility") {
        let fault = match value.text() {
            Some(text) => rules::compatibility_fault(text).map(|(_, message)| message),
            None => Some("The field `compatibility` must be a text.".to_owned()),
        };
        violations.extend(fault.map(|message| Violation::of_field("compatibility", Some(key.line), message)));
    }
    violations
}

fn required<'a>(field: &str, entry: Option<&'a (Node, Node)>) -> Result<(&'a str, u32), Violation> {
    let Some((key, value)) = entry else {
        return Err(Violation::of_field(field, None, format!("The field `{field}` is missing.")));
    };
    match value.text().filter(|text| !text.trim().is_empty()) {
        Some(text) => Ok((text, key.line)),
        None => Err(Violation::of_field(
            field,
            Some(key.line),
            format!("The field `{field}` must be a text that is not empty."),
        )),
    }
}
