//! The values of a broadcast's message template: the expressions for all contacts, and the resolved values of each
//! recipient.

use crate::model::{BroadcastParam, BroadcastTemplate, Params};
use chatnet::{SentTemplate, TemplateComponents};
use expressions::placeholder::{Piece, pieces};
use fields::text;
use model::{Code, Error, Result};
use ports::ContactCard;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The prefix of a reference to a field of contacts.
const CONTACT: &str = "contact.";

/// Checks that a template accepts the values, as far as they are the same for all contacts.
///
/// # Errors
/// `template_params_mismatch`.
pub(crate) fn expect_params(components: &TemplateComponents, wanted: &BroadcastTemplate) -> Result<()> {
    let of = |param: &BroadcastParam| match references(&param.value).is_empty() {
        true => param.value.clone(),
        false => "x".to_owned(),
    };
    let all = |params: &Params| params.iter().map(|(name, param)| (name.clone(), of(param))).collect();
    let values = FrozenParams {
        body: all(&wanted.params),
        header: all(&wanted.header_params),
        buttons: all(&wanted.button_params),
    };
    components
        .expect_media(wanted.media.is_some())
        .and_then(|()| components.resolve(&values.sent(wanted, "")).map(drop))
        .map_err(|error| error.below("template"))
}

/// Checks that values can be resolved, independent of the template.
///
/// # Errors
/// `unknown_variable`, `validation_error`.
pub(crate) fn check_params(template: &BroadcastTemplate) -> Result<()> {
    for (part, params) in [
        ("params", &template.params),
        ("header_params", &template.header_params),
        ("button_params", &template.button_params),
    ] {
        for (name, param) in params {
            let place = format!("template.{part}.{name}");
            let named = references(&param.value);
            if let Some(unknown) = named.iter().find(|name| !is_contact_field(name)) {
                let message = format!("`{unknown}` is no variable: fields of contacts are `contact.key`.");
                return Err(Error::new(Code::UnknownVariable, message).param(format!("{place}.value")));
            }
            if !named.is_empty() && param.fallback.is_none() {
                let rule = "is required, because `value` names a field of contacts";
                return Err(Error::invalid(format!("{place}.fallback"), rule));
            }
            for (key, text) in [("value", Some(&param.value)), ("fallback", param.fallback.as_ref())] {
                if text.is_some_and(|text| *text != one_line(text)) {
                    let rule = "must not have line breaks, tabs, or spaces in a row or at its ends";
                    return Err(Error::invalid(format!("{place}.{key}"), rule));
                }
            }
        }
    }
    Ok(())
}

fn is_contact_field(name: &str) -> bool {
    let key = name.strip_prefix(CONTACT).unwrap_or_default();
    let key = key.strip_prefix('$').unwrap_or(key);
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Collapses white space to single spaces. Networks reject line breaks and repeated spaces in values.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The stored values of a recipient.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FrozenParams {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) body: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    header: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    buttons: BTreeMap<String, String>,
}

impl FrozenParams {
    /// Resolves the values for a contact. Returns `None` if it lacks a value and the fallback is empty.
    pub(crate) fn of(template: &BroadcastTemplate, card: &ContactCard) -> Option<Self> {
        let all = |params: &Params| {
            let resolved = params.iter().map(|(name, param)| Some((name.clone(), resolved(param, card)?)));
            resolved.collect::<Option<BTreeMap<_, _>>>()
        };
        Some(Self {
            body: all(&template.params)?,
            header: all(&template.header_params)?,
            buttons: all(&template.button_params)?,
        })
    }

    /// Builds the template part of a message.
    pub(crate) fn sent(self, template: &BroadcastTemplate, namespace: &str) -> SentTemplate {
        SentTemplate {
            name: template.name.clone(),
            language: template.language.clone(),
            namespace: namespace.to_owned(),
            params: self.body,
            header_params: self.header,
            button_params: self.buttons,
        }
    }
}

fn resolved(param: &BroadcastParam, card: &ContactCard) -> Option<String> {
    let text = filled(&param.value, card).or_else(|| param.fallback.clone()).unwrap_or_default();
    Some(one_line(&text)).filter(|text| !text.is_empty())
}

/// A text with the contact's values. `None` if the contact lacks one of them.
fn filled(text: &str, card: &ContactCard) -> Option<String> {
    pieces(text)
        .map(|piece| match piece {
            Piece::Text(text) => Some(text.to_owned()),
            Piece::Open(_) => Some("{{".to_owned()),
            Piece::Braces(name) => shown(card, name.trim()),
        })
        .collect()
}

/// What stands between double braces in a text.
fn references(text: &str) -> Vec<&str> {
    let reference = |piece| match piece {
        Piece::Text(_) => None,
        Piece::Braces(name) => Some(name.trim()),
        // Braces within braces name nothing.
        Piece::Open(behind) => behind.split_once("}}").map(|(name, _)| name.trim()),
    };
    pieces(text).filter_map(reference).collect()
}

/// A contact's value as text.
fn shown(card: &ContactCard, name: &str) -> Option<String> {
    let text = text::of_value(card.data.get(name.strip_prefix(CONTACT)?)?)?;
    Some(one_line(&text)).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ContactId;
    use serde_json::{Value, json};

    fn card(data: Value) -> ContactCard {
        ContactCard {
            id: ContactId(1),
            data: serde_json::from_value(data).unwrap(),
            app_url: None,
            is_blocked: false,
            is_opted_out: false,
            autopilot: true,
            epoch: 0,
            switched_by: None,
            assignee: None,
        }
    }

    fn param(value: &str, fallback: Option<&str>) -> BroadcastParam {
        BroadcastParam { value: value.to_owned(), fallback: fallback.map(str::to_owned) }
    }

    #[test]
    fn values_come_from_the_contact_or_the_fallback() {
        let ana = card(json!({ "$name": "Ana  Souza\n", "points": 5, "tags": ["a", "b"], "empty": " " }));
        for (value, fallback, expected) in [
            ("10 %", None, Some("10 %")),
            ("{{contact.$name}}", Some("there"), Some("Ana Souza")),
            ("Hi {{ contact.$name }}: {{contact.points}}!", Some("Hi"), Some("Hi Ana Souza: 5!")),
            ("{{contact.tags}}", Some("x"), Some("a, b")),
            ("{{contact.$name}} {{contact.empty}}", Some("there"), Some("there")),
            ("{{contact.other}}", Some(""), None),
        ] {
            assert_eq!(resolved(&param(value, fallback), &ana).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn references_are_found() {
        for (value, expected) in [
            ("10 %", &[][..]),
            ("a {{ b", &[]),
            ("{{ contact.$name }} {{x|y}}", &["contact.$name", "x|y"]),
            ("{{{{contact.x}}}}", &["{{contact.x", "contact.x"]),
            ("}}{{}}", &[""]),
        ] {
            assert_eq!(references(value), expected, "{value}");
        }
        let broken = card(json!({ "$name": "{{contact.points}}", "points": 5 }));
        assert_eq!(
            resolved(&param("{{contact.$name}} {{ x", Some("a")), &broken).as_deref(),
            Some("{{contact.points}} {{ x")
        );
    }

    #[test]
    fn a_template_says_what_it_takes() {
        let components = TemplateComponents::from_network(&json!([
            { "type": "HEADER", "format": "TEXT", "text": "For {{1}}" },
            { "type": "BODY", "text": "Hi {{1}}, {{2}} off, {{1}}!" },
            { "type": "BUTTONS", "buttons": [
                { "type": "QUICK_REPLY", "text": "Stop" },
                { "type": "URL", "text": "Shop", "url": "https://example.com/{{1}}" },
            ] },
        ]));
        let params =
            |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), param("x", None))).collect();
        let with = |body: &[&str], header: &[&str], buttons: &[&str]| {
            let wanted = BroadcastTemplate {
                name: "t".to_owned(),
                language: "en".to_owned(),
                namespace: None,
                params: params(body),
                header_params: params(header),
                button_params: params(buttons),
                media: None,
            };
            let refused = expect_params(&components, &wanted).err();
            refused.and_then(|error| error.param_name().map(str::to_owned))
        };
        assert_eq!(with(&["1", "2"], &["1"], &["1"]), None);
        assert_eq!(with(&["1"], &["1"], &["1"]).as_deref(), Some("template.params.2"));
        assert_eq!(with(&["1", "2", "3"], &["1"], &["1"]).as_deref(), Some("template.params.3"));
        assert_eq!(with(&["1", "2"], &[], &["1"]).as_deref(), Some("template.header_params.1"));
        assert_eq!(with(&["1", "2"], &["1"], &["0", "1"]).as_deref(), Some("template.button_params.0"));
    }
}
