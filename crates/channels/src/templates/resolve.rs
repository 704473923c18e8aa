//! Filling a message template: what the contact will read, and whether the network would take it.

use super::components::{Piece, has_variable, pieces, variables};
use crate::messages::SentTemplate;
use chatnet::{TemplateButtonType, TemplateComponents, TemplateHeaderFormat};
use model::{Code, Error, Result};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The most characters of a body that is filled.
const LONGEST_BODY: usize = 1_024;

/// A message as the contact will read it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, ToSchema)]
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

/// Fills a template.
///
/// # Errors
/// `template_params_mismatch` with the `param` of the first value that is missing, not a variable, or refused by the
/// network.
pub(crate) fn resolve(components: &TemplateComponents, filled: &SentTemplate) -> Result<ResolvedMessage> {
    expect_same("params", &variables(&components.body.text), &filled.params)?;
    let body = fill(&components.body.text, &filled.params);
    if body.chars().count() > LONGEST_BODY {
        return Err(mismatch("params", format!("makes the text longer than {LONGEST_BODY} characters")));
    }
    let header_text = components.header.as_ref().and_then(|header| header.text.as_deref());
    expect_same("header_params", &variables(header_text.unwrap_or_default()), &filled.header_params)?;
    let with_values = components.buttons.iter().enumerate().filter(|(_, button)| has_variable(button));
    let places: Vec<String> = with_values.map(|(place, _)| place.to_string()).collect();
    expect_same("button_params", &places, &filled.button_params)?;
    let header = components.header.as_ref().map(|header| match header.format {
        TemplateHeaderFormat::Text => fill(header_text.unwrap_or_default(), &filled.header_params),
        media => media.as_str().to_owned(),
    });
    Ok(ResolvedMessage {
        header,
        body,
        footer: components.footer.clone(),
        buttons: components.buttons.iter().map(|button| button.text.clone()).collect(),
    })
}

/// Makes sure that a template's header file is given where it has one, and only then.
///
/// # Errors
/// `template_params_mismatch` with `param` = `media`.
pub(crate) fn expect_media(components: &TemplateComponents, is_given: bool) -> Result<()> {
    let wants = components.header.as_ref().is_some_and(|header| header.format != TemplateHeaderFormat::Text);
    match (wants, is_given) {
        (true, false) => {
            Err(mismatch("media", "is required, because the template has a file above its text"))
        }
        (false, true) => Err(mismatch("media", "is not a part of the template")),
        _ => Ok(()),
    }
}

/// What fills the buttons, for the network.
pub(crate) fn button_params(
    components: &TemplateComponents,
    values: &BTreeMap<String, String>,
) -> Vec<chatnet::TemplateButtonParam> {
    let filled = components.buttons.iter().enumerate().filter_map(|(place, button)| {
        let index = u8::try_from(place).ok()?;
        let value = values.get(&place.to_string())?.clone();
        Some(match button.kind {
            TemplateButtonType::CopyCode => chatnet::TemplateButtonParam::CopyCode { index, code: value },
            TemplateButtonType::QuickReply => {
                chatnet::TemplateButtonParam::QuickReply { index, payload: value }
            }
            _ => chatnet::TemplateButtonParam::Url { index, value },
        })
    });
    filled.collect()
}

/// Makes sure that the values are exactly those of the variables, and that the network takes them.
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

/// A text with the values of its variables.
pub(crate) fn fill(text: &str, values: &BTreeMap<String, String>) -> String {
    let piece = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => (*text).to_owned(),
        Piece::Variable(name) => values.get(*name).cloned().unwrap_or_default(),
    };
    pieces(text).iter().map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chatnet::TemplateBody;

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
        resolve(&components, &sent).map(|message| message.body)
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
        // A value with braces is a value, not another variable.
        assert_eq!(filled(&[("1", "{{2}}"), ("2", "7")]).unwrap(), "Hello {{2}}, order 7.");
    }
}
