//! The message template of a broadcast, and the values that fill it for each contact.

use super::model::{BroadcastParam, BroadcastTemplate, Params};
use crate::messages::SentTemplate;
use crate::schema::message_templates;
use chatnet::{TemplateCategory, TemplateStatus};
use diesel::prelude::*;
use model::{ChannelId, Code, Error, JsonText, Result};
use operation::ports::ContactCard;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use store::Read;

/// The most characters of a body that is filled.
const LONGEST_BODY: usize = 1_024;
/// What a reference to a contact's field begins with.
const CONTACT: &str = "contact.";

/// A template of a channel as broadcasts need it.
pub(super) struct Template {
    pub(super) namespace: String,
    pub(super) category: TemplateCategory,
    pub(super) status: TemplateStatus,
    body: String,
    /// The names of the variables, by part.
    body_variables: BTreeSet<String>,
    header_variables: BTreeSet<String>,
    /// The places of the buttons with a variable.
    button_variables: BTreeSet<String>,
    has_file: bool,
}

impl Template {
    /// The channel's template that a broadcast names.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) fn find(
        read: &mut Read,
        channel: ChannelId,
        wanted: &BroadcastTemplate,
    ) -> Result<Option<Self>> {
        let found: Option<(String, TemplateCategory, TemplateStatus, JsonText)> = message_templates::table
            .filter(message_templates::channel_id.eq(channel))
            .filter(message_templates::name.eq(&wanted.name))
            .filter(message_templates::language.eq(&wanted.language))
            .select((
                message_templates::namespace,
                message_templates::category,
                message_templates::status,
                message_templates::components,
            ))
            .get_result(read.connection())
            .optional()?;
        let is_wanted = |namespace: &str| wanted.namespace.as_deref().is_none_or(|other| other == namespace);
        let Some((namespace, category, status, components)) =
            found.filter(|(namespace, ..)| is_wanted(namespace))
        else {
            return Ok(None);
        };
        let components: Vec<Value> = components.parse()?;
        Ok(Some(Self::of(namespace, category, status, &components)))
    }

    fn of(
        namespace: String,
        category: TemplateCategory,
        status: TemplateStatus,
        components: &[Value],
    ) -> Self {
        let part = |kind: &str| components.iter().find(|component| component["type"] == kind);
        let text = |kind: &str| part(kind).and_then(|part| part["text"].as_str()).unwrap_or_default();
        let format = part("HEADER").and_then(|part| part["format"].as_str());
        let buttons = part("BUTTONS").and_then(|part| part["buttons"].as_array());
        let filled = buttons.into_iter().flatten().enumerate().filter(|(_, button)| {
            button["url"].as_str().is_some_and(|url| !variables(url).is_empty())
                || button["type"] == "COPY_CODE"
        });
        Self {
            namespace,
            category,
            status,
            body: text("BODY").to_owned(),
            body_variables: variables(text("BODY")),
            header_variables: variables(text("HEADER")),
            button_variables: filled.map(|(place, _)| place.to_string()).collect(),
            has_file: format.is_some_and(|format| format != "TEXT"),
        }
    }

    /// Makes sure that the values fit.
    ///
    /// # Errors
    /// `template_params_mismatch`, and `validation_error` for a template that no broadcast can fill.
    pub(super) fn expect_params(&self, wanted: &BroadcastTemplate) -> Result<()> {
        if self.has_file {
            return Err(Error::invalid("template.name", "must not be a template whose header is a file"));
        }
        for (part, declared, given) in [
            ("params", &self.body_variables, &wanted.params),
            ("header_params", &self.header_variables, &wanted.header_params),
            ("button_params", &self.button_variables, &wanted.button_params),
        ] {
            let missing = declared.iter().find(|name| !given.contains_key(*name));
            let extra = given.keys().find(|name| !declared.contains(*name));
            if let Some(name) = missing.or(extra) {
                let rule = if missing.is_some() { "requires" } else { "has no" };
                let message = format!("The message template {rule} a value `{name}`.");
                return Err(Error::new(Code::TemplateParamsMismatch, message)
                    .param(format!("template.{part}.{name}"))
                    .with("details", json!({ "declared": declared })));
            }
        }
        Ok(())
    }

    /// The body with values.
    pub(super) fn filled(&self, values: &BTreeMap<String, String>) -> String {
        let text = replaced(&self.body, |name| values.get(name).cloned().unwrap_or_default());
        text.chars().take(LONGEST_BODY).collect()
    }
}

/// The pieces of a text: what stands between references, and references.
enum Piece<'a> {
    Text(&'a str),
    Name(&'a str),
}

/// Takes `Hi {{1}}!` apart.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut all, mut rest) = (Vec::new(), text);
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((name, after)) = behind.split_once("}}") else { break };
        all.extend([Piece::Text(before), Piece::Name(name.trim())]);
        rest = after;
    }
    all.push(Piece::Text(rest));
    all
}

fn variables(text: &str) -> BTreeSet<String> {
    let name = |piece| match piece {
        Piece::Name(name) => Some(name.to_owned()),
        Piece::Text(_) => None,
    };
    pieces(text).into_iter().filter_map(name).collect()
}

fn replaced(text: &str, value: impl Fn(&str) -> String) -> String {
    let piece = |piece| match piece {
        Piece::Text(text) => text.to_owned(),
        Piece::Name(name) => value(name),
    };
    pieces(text).into_iter().map(piece).collect()
}

/// Makes sure that values can be resolved, whatever the template.
///
/// # Errors
/// `unknown_variable`, `validation_error`.
pub(super) fn check_params(template: &BroadcastTemplate) -> Result<()> {
    for (part, params) in [
        ("params", &template.params),
        ("header_params", &template.header_params),
        ("button_params", &template.button_params),
    ] {
        for (name, param) in params {
            let place = format!("template.{part}.{name}");
            let named = variables(&param.value);
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

/// A text in one line, with single spaces: what networks allow in values.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The values of one recipient, as they are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FrozenParams {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) body: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    header: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    buttons: BTreeMap<String, String>,
}

impl FrozenParams {
    /// The values for a contact. `None` where it lacks one that has no fallback.
    pub(super) fn of(template: &BroadcastTemplate, card: &ContactCard) -> Option<Self> {
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

    /// What a message has of its template.
    pub(super) fn sent(self, template: &BroadcastTemplate, namespace: &str) -> SentTemplate {
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
    let known = |name: &String| shown(card, name).is_some();
    let text = if variables(&param.value).iter().all(known) {
        replaced(&param.value, |name| shown(card, name).unwrap_or_default())
    } else {
        param.fallback.clone().unwrap_or_default()
    };
    Some(one_line(&text)).filter(|text| !text.is_empty())
}

/// A contact's value as text.
fn shown(card: &ContactCard, name: &str) -> Option<String> {
    let text = match card.data.get(name.strip_prefix(CONTACT)?)? {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(value) => value.to_string(),
        Value::Array(values) => {
            let texts = values.iter().filter_map(|value| match value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                _ => None,
            });
            texts.collect::<Vec<_>>().join(", ")
        }
        Value::Null | Value::Object(_) => return None,
    };
    Some(one_line(&text)).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::ContactId;

    fn card(data: Value) -> ContactCard {
        ContactCard {
            id: ContactId(1),
            data: serde_json::from_value(data).unwrap(),
            app_url: String::new(),
            is_blocked: false,
            is_opted_out: false,
            autopilot: true,
            epoch: 0,
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
    fn a_template_says_what_it_takes() {
        let components = [
            json!({ "type": "HEADER", "format": "TEXT", "text": "For {{1}}" }),
            json!({ "type": "BODY", "text": "Hi {{1}}, {{2}} off, {{1}}!" }),
            json!({ "type": "BUTTONS", "buttons": [
                { "type": "QUICK_REPLY", "text": "Stop" }, { "type": "URL", "url": "https://example.com/{{1}}" },
            ] }),
        ];
        let template =
            Template::of("n".to_owned(), TemplateCategory::Marketing, TemplateStatus::Approved, &components);
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
            };
            template.expect_params(&wanted).err().and_then(|error| error.param_name().map(str::to_owned))
        };
        assert_eq!(with(&["1", "2"], &["1"], &["1"]), None);
        assert_eq!(with(&["1"], &["1"], &["1"]).as_deref(), Some("template.params.2"));
        assert_eq!(with(&["1", "2", "3"], &["1"], &["1"]).as_deref(), Some("template.params.3"));
        assert_eq!(with(&["1", "2"], &[], &["1"]).as_deref(), Some("template.header_params.1"));
        assert_eq!(with(&["1", "2"], &["1"], &["0", "1"]).as_deref(), Some("template.button_params.0"));
        let values =
            BTreeMap::from([("1".to_owned(), "Ana".to_owned()), ("2".to_owned(), "{{1}}".to_owned())]);
        assert_eq!(template.filled(&values), "Hi Ana, {{1}} off, Ana!");
    }
}
