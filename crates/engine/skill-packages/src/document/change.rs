//! New documents, and documents with other fields.

use super::fields::ReadFields;
use super::split;
use super::tools::AllowedTools;
use super::{SkillDocument, edit};
use crate::faults::Mistake;
use crate::scalar::scalar;
use std::collections::BTreeMap;

/// The fields of a new document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// `name`.
    pub name: String,
    /// `description`.
    pub description: String,
    /// `license`.
    pub license: Option<String>,
    /// `compatibility`.
    pub compatibility: Option<String>,
    /// `metadata`, sorted by key.
    pub metadata: BTreeMap<String, String>,
    /// `allowed-tools`; `None` leaves the field out.
    pub allowed_tools: Option<Vec<String>>,
}

/// The parts of a document to change. What is `None` stays as it is, byte for byte; an inner `None` removes the field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentChange {
    /// `name`.
    pub name: Option<String>,
    /// `description`.
    pub description: Option<String>,
    /// `license`.
    pub license: Option<Option<String>>,
    /// `compatibility`.
    pub compatibility: Option<Option<String>>,
    /// Entries of `metadata`: a value sets one, `None` removes it. Entries that are not named stay.
    pub metadata: BTreeMap<String, Option<String>>,
    /// `allowed-tools`.
    pub allowed_tools: Option<Option<Vec<String>>>,
    /// The instructions.
    pub body: Option<String>,
}

/// Writes a document.
pub(crate) fn create(fields: &Fields, body: &str) -> Result<SkillDocument, Mistake> {
    let base = format!("---\nname: {}\ndescription: \"\"\n---\n", scalar(fields.name.trim()));
    let change = DocumentChange {
        name: Some(fields.name.clone()),
        description: Some(fields.description.clone()),
        license: fields.license.clone().map(Some),
        compatibility: fields.compatibility.clone().map(Some),
        metadata: fields.metadata.iter().map(|(key, value)| (key.clone(), Some(value.clone()))).collect(),
        allowed_tools: fields.allowed_tools.clone().map(Some),
        body: Some(body.to_owned()),
    };
    apply(&SkillDocument::parse(base.as_bytes())?.document, &change)
}

/// Changes a document and reads the outcome: it has exactly the wanted fields, or nothing is changed.
pub(crate) fn apply(document: &SkillDocument, change: &DocumentChange) -> Result<SkillDocument, Mistake> {
    let parts = split::split(&document.text)?;
    let newline = parts.newline();
    let mut front = parts.front.to_owned();
    for (field, value) in written_fields(change) {
        front = edit::set(&front, newline, field, value.as_deref())?;
    }
    for (key, value) in &change.metadata {
        let value = value.as_deref().map(|value| scalar(value.trim()));
        front = edit::set_metadata(&front, newline, key, value.as_deref())?;
    }
    let body = change.body.as_deref().unwrap_or(parts.body);
    let is_open = !parts.closing.ends_with('\n') && !body.is_empty();
    let end = if is_open { newline } else { "" };
    let text = [parts.opening, &front, parts.closing, end, body].concat();
    let changed = SkillDocument::parse(text.as_bytes())?.document;
    let wanted = wanted(&document.fields, change);
    if changed.fields != wanted || changed.body() != body {
        return Err(Mistake::new(1, complaint(&changed.fields, &wanted)));
    }
    Ok(changed)
}

/// The fields to write, as scalars. Those that have the value already are written too, so that a caller can add quotes.
fn written_fields(change: &DocumentChange) -> Vec<(&'static str, Option<String>)> {
    let text = |value: &String| scalar(value.trim());
    let mut fields = Vec::new();
    fields.extend(change.name.as_ref().map(|value| ("name", Some(text(value)))));
    fields.extend(change.description.as_ref().map(|value| ("description", Some(text(value)))));
    fields.extend(change.license.as_ref().map(|value| ("license", value.as_ref().map(text))));
    fields.extend(change.compatibility.as_ref().map(|value| ("compatibility", value.as_ref().map(text))));
    fields.extend(
        change
            .allowed_tools
            .as_ref()
            .map(|names| ("allowed-tools", names.as_ref().map(|names| scalar(&names.join(" "))))),
    );
    fields
}

/// The fields that a changed document must have.
fn wanted(before: &ReadFields, change: &DocumentChange) -> ReadFields {
    let text = |value: &str| Some(value.trim().to_owned()).filter(|value| !value.is_empty());
    let mut wanted = before.clone();
    if let Some(name) = &change.name {
        wanted.name = text(name);
    }
    if let Some(description) = &change.description {
        wanted.description = text(description);
    }
    if let Some(license) = &change.license {
        wanted.license = license.as_deref().and_then(text);
    }
    if let Some(compatibility) = &change.compatibility {
        wanted.compatibility = compatibility.as_deref().and_then(text);
    }
    for (key, value) in &change.metadata {
        match value {
            Some(value) => wanted.metadata.insert(key.clone(), value.trim().to_owned()),
            None => wanted.metadata.remove(key),
        };
    }
    match &change.allowed_tools {
        Some(Some(names)) => wanted.allowed_tools = AllowedTools::Listed(names.clone()),
        Some(None) => wanted.allowed_tools = AllowedTools::Absent,
        None => {}
    }
    wanted
}

fn complaint(changed: &ReadFields, wanted: &ReadFields) -> &'static str {
    match changed.allowed_tools == wanted.allowed_tools {
        true => "The front matter has a form that cannot be changed line by line.",
        false => {
            "A name in `allowed-tools` has a space or a comma, or is there twice; or the field is misspelled in the front matter."
        }
    }
}
