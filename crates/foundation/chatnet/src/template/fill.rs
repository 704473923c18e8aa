//! Filling of message templates: the resulting text, and the rules of the network for values.

use super::components::{TemplateButtonType, TemplateComponents, TemplateHeaderFormat};
use super::text::{fill, variables};
use crate::outbound::{TemplateButtonParam, TemplateMessage};
use model::{Code, Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The maximum length of a filled body, in characters.
const LONGEST_BODY: usize = 1_024;

/// A message template with its values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({ "name": "order_shipped", "language": "en", "params": { "1": "Ana", "2": "4711" } }))]
pub struct SentTemplate {
    /// The name.
    pub name: String,
    /// The language, such as `pt_BR`.
    pub language: String,
    /// The namespace.
    pub namespace: String,
    /// The values of the variables in the body, by number.
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub params: BTreeMap<String, String>,
    /// The values of the variables in the header, by number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub header_params: BTreeMap<String, String>,
    /// The values of the buttons, by their places from 0.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    pub button_params: BTreeMap<String, String>,
}

/// A message as the contact will read it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(example = json!({
    "header": null, "body": "Hello Ana, your order 4711 was shipped today.", "footer": "Reply STOP to opt out",
    "buttons": ["Track it"],
}))]
pub struct ResolvedMessage {
    /// What is above the body: a text, or the kind of file.
    pub header: Option<String>,
    /// The text.
    pub body: String,
    /// The text below the body.
    pub footer: Option<String>,
    /// What the buttons say.
    pub buttons: Vec<String>,
}

impl TemplateComponents {
    /// Fills a template and returns the message that the recipient will see.
    ///
    /// # Errors
    /// `template_params_mismatch` with the `param` of the first value that is missing, belongs to no variable, or
    /// breaks a rule of the network.
    pub fn resolve(&self, filled: &SentTemplate) -> Result<ResolvedMessage> {
        expect_same("params", &variables(&self.body.text), &filled.params)?;
        let body = fill(&self.body.text, &filled.params);
        if body.chars().count() > LONGEST_BODY {
            return Err(mismatch("params", format!("makes the text longer than {LONGEST_BODY} characters")));
        }
        let header_text = self.header.as_ref().and_then(|header| header.text.as_deref());
        expect_same("header_params", &variables(header_text.unwrap_or_default()), &filled.header_params)?;
        let with_values = self.buttons.iter().enumerate().filter(|(_, button)| button.has_variable());
        let places: Vec<String> = with_values.map(|(place, _)| place.to_string()).collect();
        expect_same("button_params", &places, &filled.button_params)?;
        let header = self.header.as_ref().map(|header| match header.format {
            TemplateHeaderFormat::Text => fill(header_text.unwrap_or_default(), &filled.header_params),
            media => media.as_str().to_owned(),
        });
        Ok(ResolvedMessage {
            header,
            body,
            footer: self.footer.clone(),
            buttons: self.buttons.iter().map(|button| button.text.clone()).collect(),
        })
    }

    /// Checks that a header file is given if and only if the template has one.
    ///
    /// # Errors
    /// `template_params_mismatch` with `param` = `media`.
    pub fn expect_media(&self, is_given: bool) -> Result<()> {
        let wants = self.header.as_ref().is_some_and(|header| header.format != TemplateHeaderFormat::Text);
        match (wants, is_given) {
            (true, false) => {
                Err(mismatch("media", "is required, because the template has a file above its text"))
            }
            (false, true) => Err(mismatch("media", "is not a part of the template")),
            _ => Ok(()),
        }
    }

    /// Returns the message to send. The caller adds the header file, if there is one.
    #[must_use]
    pub fn message(&self, filled: &SentTemplate) -> TemplateMessage {
        TemplateMessage {
            name: filled.name.clone(),
            language: filled.language.clone(),
            header_params: in_order(&filled.header_params),
            header_media: None,
            body_params: in_order(&filled.params).into_iter().map(|value| (None, value)).collect(),
            button_params: self.button_params(&filled.button_params),
        }
    }

    /// Returns the values of the buttons.
    fn button_params(&self, values: &BTreeMap<String, String>) -> Vec<TemplateButtonParam> {
        let filled = self.buttons.iter().enumerate().filter_map(|(place, button)| {
            let index = u8::try_from(place).ok()?;
            let value = values.get(&place.to_string())?.clone();
            Some(match button.kind {
                TemplateButtonType::CopyCode => TemplateButtonParam::CopyCode { index, code: value },
                TemplateButtonType::QuickReply => TemplateButtonParam::QuickReply { index, payload: value },
                _ => TemplateButtonParam::Url { index, value },
            })
        });
        filled.collect()
    }
}

/// Returns the values in the order of their numbers.
fn in_order(values: &BTreeMap<String, String>) -> Vec<String> {
    let mut all: Vec<_> = values.iter().collect();
    all.sort_by_key(|(number, _)| number.parse::<u32>().unwrap_or(u32::MAX));
    all.into_iter().map(|(_, value)| value.clone()).collect()
}

/// Checks that there is exactly one value for each variable, and that the network accepts the values.
fn expect_same(param: &str, names: &[String], values: &BTreeMap<String, String>) -> Result<()> {
    if let Some(missing) = names.iter().find(|name| !values.contains_key(*name)) {
        let error = mismatch(&format!("{param}.{missing}"), "is required by the template");
        return Err(error.with("details", json!({ "expected": names })));
    }
    for (name, value) in values {
        let at = format!("{param}.{name}");
        if !names.contains(name) {
            let error = mismatch(&at, "is not a variable of the template");
            return Err(error.with("details", json!({ "expected": names })));
        }
        if value.trim().is_empty() {
            return Err(mismatch(&at, "must not be blank"));
        }
        if value.contains(['\n', '\r', '\t']) || value.contains("     ") {
            return Err(mismatch(&at, "must contain no line breaks, tabs or five spaces in a row"));
        }
    }
    Ok(())
}

fn mismatch(param: &str, rule: impl std::fmt::Display) -> Error {
    Error::new(Code::TemplateParamsMismatch, format!("`{param}` {rule}")).param(param)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TemplateBody;

    fn filled(values: &[(&str, &str)]) -> Result<String> {
        let body = TemplateBody { text: "Hello {{1}}, order {{2}}.".to_owned(), samples: Vec::new() };
        let components = TemplateComponents { body, ..TemplateComponents::default() };
        let params = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let sent = SentTemplate {
            name: "x".to_owned(),
            language: "en".to_owned(),
            namespace: "n".to_owned(),
            params,
            header_params: BTreeMap::new(),
            button_params: BTreeMap::new(),
        };
        components.resolve(&sent).map(|message| message.body)
    }

    #[test]
    fn values_are_exactly_those_of_the_variables() {
        assert_eq!(filled(&[("1", "Ana"), ("2", "7")]).unwrap(), "Hello Ana, order 7.");
        let param = |values| filled(values).unwrap_err().param_name().map(str::to_owned);
        assert_eq!(param(&[("1", "Ana")]).as_deref(), Some("params.2"));
        assert_eq!(param(&[("1", "Ana"), ("2", "7"), ("3", "x")]).as_deref(), Some("params.3"));
        assert_eq!(param(&[("1", "Ana"), ("2", " ")]).as_deref(), Some("params.2"));
        assert_eq!(param(&[("1", "A\nna"), ("2", "7")]).as_deref(), Some("params.1"));
        assert_eq!(param(&[("1", &"a".repeat(1_100)), ("2", "7")]).as_deref(), Some("params"));
        // Braces in a value are not expanded again.
        assert_eq!(filled(&[("1", "{{2}}"), ("2", "7")]).unwrap(), "Hello {{2}}, order 7.");
    }
}
