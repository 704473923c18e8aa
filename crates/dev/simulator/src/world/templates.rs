//! Templates: their review, and the validation of values.

use super::refused::Refused;
use super::rules::{list, required};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// A template in one language.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) language: String,
    /// In the network's format.
    pub(crate) category: String,
    pub(crate) status: String,
    pub(crate) quality: String,
    pub(crate) rejected_reason: String,
    pub(crate) components: Value,
}

impl Template {
    /// Returns the template in the network's format for lists.
    pub(crate) fn listed(&self) -> Value {
        json!({
            "id": self.id.to_string(),
            "name": self.name,
            "language": self.language,
            "status": self.status,
            "category": self.category,
            "components": self.components,
            "rejected_reason": self.rejected_reason,
            "quality_score": { "score": self.quality, "date": 1_700_000_000 },
        })
    }

    fn component(&self, kind: &str) -> Option<&Value> {
        let is_it = |part: &&Value| {
            part.get("type").and_then(Value::as_str).is_some_and(|name| name.eq_ignore_ascii_case(kind))
        };
        self.components.as_array()?.iter().find(is_it)
    }

    pub(crate) fn buttons(&self) -> &[Value] {
        self.component("BUTTONS").map(|part| list(part, "/buttons")).unwrap_or_default()
    }

    pub(crate) fn body(&self) -> &str {
        self.text("body")
    }

    /// Returns the text of a component, such as `footer`. Empty if it has none.
    pub(crate) fn text(&self, part: &str) -> &str {
        self.component(part).and_then(|part| part.get("text")?.as_str()).unwrap_or_default()
    }

    /// Checks whether the template can be sent with these values.
    pub(crate) fn check(&self, sent: &Value) -> Result<(), Refused> {
        match self.status.as_str() {
            "APPROVED" => {}
            "PAUSED" => return Err(Refused::new(132_015, "Template is paused due to low quality.")),
            "DISABLED" => return Err(Refused::new(132_016, "Template is disabled.")),
            _ => return Err(not_found(&self.name, &self.language)),
        }
        let components = list(sent, "/components");
        let of = |kind: &str| {
            components
                .iter()
                .filter(|part| {
                    part.get("type")
                        .and_then(Value::as_str)
                        .is_some_and(|name| name.eq_ignore_ascii_case(kind))
                })
                .collect::<Vec<_>>()
        };
        let parameters =
            |kind: &str| of(kind).first().map(|part| list(part, "/parameters")).unwrap_or_default();
        check_texts(self.body(), parameters("body"), "body")?;
        self.check_header(parameters("header"))?;
        self.check_buttons(&of("button"))
    }

    fn check_header(&self, sent: &[Value]) -> Result<(), Refused> {
        let Some(header) = self.component("HEADER") else {
            return check_texts("", sent, "header");
        };
        let format = header.get("format").and_then(Value::as_str).unwrap_or("TEXT").to_ascii_lowercase();
        if format == "text" {
            let text = header.get("text").and_then(Value::as_str).unwrap_or_default();
            return check_texts(text, sent, "header");
        }
        let has_file = |parameter: &Value| {
            parameter.get("type").and_then(Value::as_str) == Some(&format)
                && parameter.get(&format).is_some_and(|file| file.get("id").or(file.get("link")).is_some())
        };
        match sent {
            [only] if has_file(only) => Ok(()),
            [] => Err(Refused::new(
                132_012,
                format!("header: Format mismatch, expected {format}, received none"),
            )),
            _ => Err(Refused::new(132_012, format!("header: Format mismatch, expected {format}"))),
        }
    }

    fn check_buttons(&self, sent: &[&Value]) -> Result<(), Refused> {
        let mut given = BTreeMap::new();
        for part in sent {
            let index = part.get("index").and_then(|index| match index {
                Value::String(text) => text.parse::<usize>().ok(),
                other => usize::try_from(other.as_u64()?).ok(),
            });
            given.insert(index.ok_or_else(|| required("index"))?, *part);
        }
        for (index, button) in self.buttons().iter().enumerate() {
            let text = |key: &str| button.get(key).and_then(Value::as_str).unwrap_or_default();
            let kind = text("type").to_ascii_uppercase();
            let needs = (kind == "URL" && text("url").contains("{{")) || kind == "COPY_CODE";
            let has = given.remove(&index).is_some_and(|part| !list(part, "/parameters").is_empty());
            if needs && !has || has && kind == "URL" && !needs {
                return Err(Refused::new(
                    132_000,
                    format!("buttons: Button at index {index} of type {kind}"),
                ));
            }
        }
        match given.keys().next() {
            Some(index) => {
                Err(Refused::new(132_000, format!("buttons: There is no button at index {index}")))
            }
            None => Ok(()),
        }
    }
}

pub(crate) fn not_found(name: &str, language: &str) -> Refused {
    Refused::new(132_001, format!("template name ({name}) does not exist in {language}"))
}

/// Returns the names of the variables in a text.
fn variables(text: &str) -> BTreeSet<&str> {
    text.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0.trim())).collect()
}

/// Checks that the values are exactly those of the text's variables.
fn check_texts(text: &str, sent: &[Value], part: &str) -> Result<(), Refused> {
    let declared = variables(text);
    if declared.len() != sent.len() {
        let details = format!(
            "{part}: number of localizable_params ({}) does not match the expected number of params ({})",
            sent.len(),
            declared.len()
        );
        return Err(Refused::new(132_000, details));
    }
    let is_named = declared.iter().any(|name| name.parse::<usize>().is_err());
    for parameter in sent {
        let value = parameter
            .get("text")
            .and_then(Value::as_str)
            .filter(|_| parameter.get("type").and_then(Value::as_str) == Some("text"));
        let Some(value) = value else {
            return Err(Refused::new(132_012, format!("{part}: a parameter is no text")));
        };
        let name = parameter.get("parameter_name").and_then(Value::as_str);
        if is_named && !name.is_some_and(|name| declared.contains(name)) {
            return Err(Refused::new(132_012, format!("{part}: Parameter name is missing or not known")));
        }
        if value.is_empty() || value.contains(['\n', '\t']) || value.contains("     ") {
            let details = "Param text cannot be empty or have new-line/tab characters or more than 4 consecutive spaces";
            return Err(Refused::new(132_018, format!("{part}: {details}")));
        }
    }
    Ok(())
}

/// All templates, by id, and by name with language.
#[derive(Default)]
pub(crate) struct Templates {
    pub(crate) by_id: BTreeMap<u64, Template>,
    names: HashMap<(String, String), u64>,
}

impl Templates {
    pub(crate) fn find(&self, name: &str, language: &str) -> Option<&Template> {
        self.by_id.get(self.names.get(&(name.to_owned(), language.to_owned()))?)
    }

    pub(crate) fn find_mut(&mut self, name: &str, language: &str) -> Option<&mut Template> {
        self.by_id.get_mut(self.names.get(&(name.to_owned(), language.to_owned()))?)
    }

    /// Adds a template.
    pub(crate) fn insert(&mut self, template: Template) {
        self.names.insert((template.name.clone(), template.language.clone()), template.id);
        self.by_id.insert(template.id, template);
    }

    /// Removes all templates with this name, or only the one with this id. Returns their number.
    pub(crate) fn remove(&mut self, name: &str, id: Option<u64>) -> usize {
        let is_it = |template: &Template| template.name == name && id.is_none_or(|id| id == template.id);
        let before = self.by_id.len();
        self.by_id.retain(|_, template| !is_it(template));
        let by_id = &self.by_id;
        self.names.retain(|_, id| by_id.contains_key(id));
        before - self.by_id.len()
    }

    /// Checks a submission and returns the template. The caller chooses the id.
    pub(crate) fn submitted(&self, body: &Value, id: u64) -> Result<Template, Refused> {
        let text = |key: &str| body.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        let name = text("name").ok_or_else(|| required("name"))?;
        let language = text("language").ok_or_else(|| required("language"))?;
        let category = text("category").ok_or_else(|| required("category"))?.to_ascii_uppercase();
        let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        if name.len() > 512 || !name.chars().all(is_plain) {
            return Err(Refused::new(100, "name may have lower case letters, digits and underscores only."));
        }
        if !["MARKETING", "UTILITY", "AUTHENTICATION"].contains(&category.as_str()) {
            return Err(Refused::new(100, "category must be MARKETING, UTILITY or AUTHENTICATION."));
        }
        if self.find(name, language).is_some() {
            let details = format!("There is already {language} content for this template.");
            return Err(Refused { subcode: Some(2_388_024), ..Refused::new(100, details) });
        }
        let template = Template {
            id,
            name: name.to_owned(),
            language: language.to_owned(),
            category,
            status: "PENDING".to_owned(),
            quality: "UNKNOWN".to_owned(),
            rejected_reason: "NONE".to_owned(),
            components: body.get("components").cloned().unwrap_or(Value::Null),
        };
        let length = template.body().chars().count();
        if !(1..=1024).contains(&length) {
            return Err(Refused::new(100, "A template needs a BODY of 1 to 1,024 characters."));
        }
        Ok(template)
    }
}
