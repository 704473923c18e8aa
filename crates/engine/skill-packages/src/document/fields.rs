//! Fields from front matter, and what is odd about them.

use super::retry::Front;
use super::tools::{self, AllowedTools};
use crate::faults::{Mistake, Warning};
use crate::rules;
use crate::yaml::{Node, Value, shortened};
use std::collections::BTreeMap;

/// The fields of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ReadFields {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) license: Option<String>,
    pub(crate) compatibility: Option<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) allowed_tools: AllowedTools,
}

/// The lines above the front matter: `---`.
const ABOVE: u32 = 1;

/// Reads the fields.
pub(crate) fn read(front: &Front) -> Result<(ReadFields, Vec<Warning>), Mistake> {
    let entries = entries(front)?;
    let mut fields = ReadFields::default();
    let mut warnings: Vec<Warning> = front
        .quoted
        .iter()
        .map(|line| {
            Warning::of_document(
                "unquoted_value",
                line + ABOVE,
                "The value needs quotes: as written it is no YAML.",
            )
        })
        .collect();
    if let Some(line) = front.tree.tag {
        warnings.push(Warning::of_document("yaml_tag", line + ABOVE, "Tags such as `!!str` are ignored."));
    }
    for (key, value) in entries {
        let line = key.line + ABOVE;
        match key.text().unwrap_or_default() {
            "name" => fields.name = text("name", value, line, &mut warnings),
            "description" => fields.description = text("description", value, line, &mut warnings),
            "license" => fields.license = text("license", value, line, &mut warnings),
            "compatibility" => fields.compatibility = text("compatibility", value, line, &mut warnings),
            "metadata" => fields.metadata = metadata(value, line, &mut warnings),
            "allowed-tools" => fields.allowed_tools = tools::read(value, line, &mut warnings),
            other => {
                if tools::is_misspelled(other) && fields.allowed_tools == AllowedTools::Absent {
                    fields.allowed_tools = AllowedTools::Unreadable;
                }
                let message =
                    format!("The format has no field `{}`; it is kept and not used.", shortened(other));
                warnings.push(Warning::of_document("unknown_field", line, message));
            }
        }
    }
    warn_of_rules(&fields, entries, &mut warnings);
    Ok((fields, warnings))
}

/// The entries of the front matter.
pub(crate) fn entries(front: &Front) -> Result<&[(Node, Node)], Mistake> {
    match &front.tree.root {
        Some(Node { value: Value::Map { entries, .. }, .. }) if !entries.is_empty() => Ok(entries),
        Some(Node { value: Value::Text { text, .. }, .. }) if !text.is_empty() => Err(Mistake::new(
            1 + ABOVE,
            "The front matter has no fields: write `name: …` and `description: …`.",
        )),
        Some(Node { value: Value::List { .. }, line, .. }) => {
            Err(Mistake::new(line + ABOVE, "The front matter is a list; it must be a map of fields."))
        }
        _ => Err(Mistake::new(1 + ABOVE, "The front matter is empty.")),
    }
}

fn text(field: &str, value: &Node, line: u32, warnings: &mut Vec<Warning>) -> Option<String> {
    match value.text().map(str::trim) {
        Some("") => None,
        Some(text) => Some(text.to_owned()),
        None => {
            let message = format!("The field `{field}` must be a text; it is not used.");
            warnings.push(Warning::of_document("field_type", line, message));
            None
        }
    }
}

fn metadata(value: &Node, line: u32, warnings: &mut Vec<Warning>) -> BTreeMap<String, String> {
    let entries = match &value.value {
        Value::Map { entries, .. } => entries.as_slice(),
        Value::Text { text, .. } if text.is_empty() => &[],
        _ => {
            let message = "The field `metadata` must be a map; it is not used.";
            warnings.push(Warning::of_document("field_type", line, message));
            &[]
        }
    };
    let mut metadata = BTreeMap::new();
    for (key, value) in entries {
        let name = key.text().unwrap_or_default();
        if let Some(text) = value.text() {
            metadata.insert(name.to_owned(), text.trim().to_owned());
        } else {
            let message =
                format!("The entry `{}` of `metadata` must be a text; it is not used.", shortened(name));
            warnings.push(Warning::of_document("field_type", key.line + ABOVE, message));
        }
    }
    metadata
}

fn warn_of_rules(fields: &ReadFields, entries: &[(Node, Node)], warnings: &mut Vec<Warning>) {
    let line_of = |field: &str| {
        entries.iter().find(|(key, _)| key.text() == Some(field)).map_or(1, |(key, _)| key.line + ABOVE)
    };
    let name = fields.name.as_deref();
    match name {
        None => warnings.push(Warning::of_document(
            "name_missing",
            line_of("name"),
            "The front matter has no `name`.",
        )),
        Some(name) => warnings.extend(
            rules::name_faults(name)
                .into_iter()
                .map(|(code, text)| Warning::of_document(code, line_of("name"), text)),
        ),
    }
    if name.is_some_and(|name| !name.is_ascii()) {
        let text = "The name has letters outside a–z, which can look like others.";
        warnings.push(Warning::of_document("name_not_ascii", line_of("name"), text));
    }
    match &fields.description {
        None => {
            let text = "The front matter has no `description`: an agent cannot know when to use the skill.";
            warnings.push(Warning::of_document("description_missing", line_of("description"), text));
        }
        Some(text) => warnings.extend(
            rules::description_fault(text)
                .map(|(code, text)| Warning::of_document(code, line_of("description"), text)),
        ),
    }
    warnings.extend(
        fields
            .compatibility
            .as_deref()
            .and_then(rules::compatibility_fault)
            .map(|(code, text)| Warning::of_document(code, line_of("compatibility"), text)),
    );
}
