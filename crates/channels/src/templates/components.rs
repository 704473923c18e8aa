//! The parts of a message template: as callers write them, and as the network has them.

use model::{Error, FieldError, Result, string_enum};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

string_enum! {
    /// What is above the body of a message template.
    pub enum TemplateHeaderFormat {
        /// Text, with at most one variable.
        Text = "text",
        /// A picture.
        Image = "image",
        /// A video.
        Video = "video",
        /// A document.
        Document = "document",
    }
}

string_enum! {
    /// What a button of a message template does.
    pub enum TemplateButtonType {
        /// Answers with its text.
        QuickReply = "quick_reply",
        /// Opens a page.
        Url = "url",
        /// Calls a number.
        PhoneNumber = "phone_number",
        /// Copies a code.
        CopyCode = "copy_code",
    }
}

/// The parts of a message template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "body": { "text": "Hello {{1}}, your order {{2}} was shipped today.", "samples": ["Ana", "4711"] },
    "footer": "Reply STOP to opt out",
    "buttons": [{ "type": "url", "text": "Track it", "url": "https://example.com/track/{{1}}", "sample": "4711" }],
}))]
pub struct TemplateComponents {
    /// What is above the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub header: Option<TemplateHeader>,
    /// The text.
    pub body: TemplateBody,
    /// The text below the body, without variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 60)]
    pub footer: Option<String>,
    /// Up to 10 buttons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 10)]
    pub buttons: Vec<TemplateButton>,
}

/// What is above the body of a message template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "format": "text", "text": "Order {{1}}", "sample": "4711" }))]
pub struct TemplateHeader {
    /// What it is.
    pub format: TemplateHeaderFormat,
    /// The text, with at most the variable `{{1}}`. Only with the format `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 60)]
    pub text: Option<String>,
    /// A sample of the variable's value, or the network's handle of a sample file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 2_000)]
    pub sample: Option<String>,
}

/// The text of a message template.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "text": "Hello {{1}}, your order {{2}} was shipped today.", "samples": ["Ana", "4711"] }))]
pub struct TemplateBody {
    /// The text, with the variables `{{1}}`, `{{2}}` and so on. It neither begins nor ends with a variable.
    #[schema(min_length = 1, max_length = 1_024, pattern = r"\S")]
    pub text: String,
    /// A sample of each variable's value, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 100)]
    pub samples: Vec<String>,
}

/// A button of a message template.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "type": "quick_reply", "text": "Yes, please" }))]
pub struct TemplateButton {
    /// What it does.
    #[serde(rename = "type")]
    pub kind: TemplateButtonType,
    /// What the contact sees.
    #[schema(min_length = 1, max_length = 25, pattern = r"\S")]
    pub text: String,
    /// The page; it may end in the variable `{{1}}`. Only with the type `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 2_000)]
    pub url: Option<String>,
    /// The number to call. Only with the type `phone_number`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 20)]
    pub phone_number: Option<String>,
    /// A sample of the variable's value or of the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1, max_length = 2_000)]
    pub sample: Option<String>,
}

/// A piece of a text with variables.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    Text(&'a str),
    Variable(&'a str),
}

/// A text taken apart: what is between double braces is a variable.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut all, mut rest) = (Vec::new(), text);
    while let Some((before, (name, after))) =
        rest.split_once("{{").and_then(|(before, after)| Some((before, after.split_once("}}")?)))
    {
        if !before.is_empty() {
            all.push(Piece::Text(before));
        }
        all.push(Piece::Variable(name.trim()));
        rest = after;
    }
    if !rest.is_empty() {
        all.push(Piece::Text(rest));
    }
    all
}

/// The variables of a text, each once, in the order of their numbers where they are numbers.
pub(crate) fn variables(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for piece in pieces(text) {
        if let Piece::Variable(name) = piece
            && !all.iter().any(|known| known == name)
        {
            all.push(name.to_owned());
        }
    }
    all.sort_by_key(|name| name.parse::<u32>().unwrap_or(u32::MAX));
    all
}

impl TemplateComponents {
    /// Checks what the network would refuse, so that it is known before the review.
    ///
    /// # Errors
    /// `validation_error` with all that is wrong.
    pub(super) fn check(&self) -> Result<()> {
        let mut problems = Vec::new();
        let mut wrong = |param: &str, rule: &str| problems.push(FieldError::new(param, rule));
        check_body(&self.body, &mut wrong);
        if let Some(header) = &self.header {
            check_header(header, &mut wrong);
        }
        if self.footer.as_deref().is_some_and(|footer| !variables(footer).is_empty()) {
            wrong("components.footer", "must have no variables");
        }
        for (place, button) in self.buttons.iter().enumerate() {
            if let Some((field, rule)) = button.problem() {
                wrong(&format!("components.buttons[{place}].{field}"), rule);
            }
        }
        Error::all_invalid(problems).map_or(Ok(()), Err)
    }

    /// As the network has it.
    pub(super) fn to_network(&self) -> Value {
        let mut all = Vec::new();
        if let Some(header) = &self.header {
            let format = header.format.as_str().to_uppercase();
            let mut part = json!({ "type": "HEADER", "format": format });
            let example = match (&header.sample, header.format) {
                (Some(example), TemplateHeaderFormat::Text) => Some(json!({ "header_text": [example] })),
                (Some(example), _) => Some(json!({ "header_handle": [example] })),
                (None, _) => None,
            };
            put(&mut part, "text", header.text.as_ref().map(|text| json!(text)));
            put(&mut part, "example", example);
            all.push(part);
        }
        let mut body = json!({ "type": "BODY", "text": self.body.text });
        let examples = Some(&self.body.samples).filter(|examples| !examples.is_empty());
        put(&mut body, "example", examples.map(|examples| json!({ "body_text": [examples] })));
        all.push(body);
        all.extend(self.footer.as_ref().map(|text| json!({ "type": "FOOTER", "text": text })));
        if !self.buttons.is_empty() {
            let buttons: Vec<Value> = self.buttons.iter().map(TemplateButton::to_network).collect();
            all.push(json!({ "type": "BUTTONS", "buttons": buttons }));
        }
        all.into()
    }

    /// What the network has. What is not understood is left out.
    pub(crate) fn from_network(components: &Value) -> Self {
        let mut all = Self::default();
        for part in components.as_array().into_iter().flatten() {
            let text = || part["text"].as_str().map(str::to_owned);
            match part["type"].as_str().map(str::to_uppercase).as_deref() {
                Some("HEADER") => all.header = header_of(part),
                Some("BODY") => {
                    let examples = part.pointer("/example/body_text/0").and_then(Value::as_array);
                    let examples = examples.into_iter().flatten().filter_map(Value::as_str);
                    all.body.samples = examples.map(str::to_owned).collect();
                    all.body.text = text().unwrap_or_default();
                }
                Some("FOOTER") => all.footer = text(),
                Some("BUTTONS") => {
                    let buttons = part["buttons"].as_array().into_iter().flatten();
                    all.buttons = buttons.filter_map(button_of).collect();
                }
                _ => {}
            }
        }
        all
    }
}

fn put(part: &mut Value, key: &str, value: Option<Value>) {
    if let (Some(part), Some(value)) = (part.as_object_mut(), value) {
        part.insert(key.to_owned(), value);
    }
}

fn header_of(part: &Value) -> Option<TemplateHeader> {
    let format = TemplateHeaderFormat::parse(&part["format"].as_str()?.to_lowercase())?;
    let example = part.pointer("/example/header_text/0").or_else(|| part.pointer("/example/header_handle/0"));
    Some(TemplateHeader {
        format,
        text: part["text"].as_str().map(str::to_owned),
        sample: example.and_then(Value::as_str).map(str::to_owned),
    })
}

fn button_of(part: &Value) -> Option<TemplateButton> {
    let text = |key: &str| part[key].as_str().map(str::to_owned);
    let example = part["example"].as_str().or_else(|| part.pointer("/example/0").and_then(Value::as_str));
    Some(TemplateButton {
        kind: TemplateButtonType::parse(&part["type"].as_str()?.to_lowercase())?,
        text: text("text").unwrap_or_default(),
        url: text("url"),
        phone_number: text("phone_number"),
        sample: example.map(str::to_owned),
    })
}

fn check_body(body: &TemplateBody, wrong: &mut impl FnMut(&str, &str)) {
    let param = "components.body.text";
    let pieces = pieces(&body.text);
    let is_variable = |piece: Option<&Piece<'_>>| matches!(piece, Some(Piece::Variable(_)));
    if is_variable(pieces.first()) || is_variable(pieces.last()) {
        wrong(param, "must neither begin nor end with a variable");
    }
    let is_adjacent = |pair: &[Piece<'_>]| match pair {
        [Piece::Variable(_), Piece::Variable(_)] => true,
        [Piece::Variable(_), Piece::Text(between)] => between.is_empty(),
        _ => false,
    };
    let blank_between = |three: &[Piece<'_>]| match three {
        [Piece::Variable(_), Piece::Text(between), Piece::Variable(_)] => between.trim().is_empty(),
        _ => false,
    };
    if pieces.windows(2).any(is_adjacent) || pieces.windows(3).any(blank_between) {
        wrong(param, "must have words between two variables");
    }
    let names = variables(&body.text);
    let is_numbered = (1_usize..).zip(&names).all(|(number, name)| *name == number.to_string());
    if !is_numbered {
        wrong(param, "must number its variables `{{1}}`, `{{2}}` and so on, without gaps");
    } else if names.len() != body.samples.len() {
        wrong("components.body.samples", "must have one sample for each variable");
    }
    if body.samples.iter().any(|example| example.trim().is_empty()) {
        wrong("components.body.samples", "must have no blank samples");
    }
}

fn check_header(header: &TemplateHeader, wrong: &mut impl FnMut(&str, &str)) {
    let (param, example) = ("components.header.text", "components.header.sample");
    match (header.format, header.text.as_deref()) {
        (TemplateHeaderFormat::Text, None) => wrong(param, "is required with the format `text`"),
        (TemplateHeaderFormat::Text, Some(text)) => {
            let names = variables(text);
            if names.iter().any(|name| name != "1") {
                wrong(param, "must have at most the variable `{{1}}`");
            } else if !names.is_empty() && header.sample.is_none() {
                wrong(example, "is required, because the text has a variable");
            }
        }
        (_, Some(_)) => wrong(param, "is only for the format `text`"),
        (_, None) => {}
    }
}

impl TemplateButton {
    /// Whether a value fills it when it is sent.
    pub(super) fn has_variable(&self) -> bool {
        match self.kind {
            TemplateButtonType::Url => self.url.as_deref().is_some_and(|url| !variables(url).is_empty()),
            TemplateButtonType::CopyCode => true,
            _ => false,
        }
    }

    /// The field that is wrong, and why.
    fn problem(&self) -> Option<(&'static str, &'static str)> {
        if !variables(&self.text).is_empty() {
            return Some(("text", "must have no variables"));
        }
        match self.kind {
            TemplateButtonType::Url => match self.url.as_deref() {
                None => return Some(("url", "is required with the type `url`")),
                Some(url) => {
                    let names = variables(url);
                    let at_end = names.is_empty() || url.ends_with("}}");
                    if names.len() > 1 || names.iter().any(|name| name != "1") || !at_end {
                        return Some(("url", "may have only the variable `{{1}}`, at its end"));
                    }
                    if !url.starts_with("https://") && !url.starts_with("http://") {
                        return Some(("url", "must be an address that begins with `https://` or `http://`"));
                    }
                    if !names.is_empty() && self.sample.is_none() {
                        return Some(("sample", "is required, because the address has a variable"));
                    }
                }
            },
            TemplateButtonType::PhoneNumber if self.phone_number.is_none() => {
                return Some(("phone_number", "is required with the type `phone_number`"));
            }
            TemplateButtonType::CopyCode if self.sample.is_none() => {
                return Some(("sample", "is required with the type `copy_code`"));
            }
            _ => {}
        }
        if self.kind != TemplateButtonType::Url && self.url.is_some() {
            return Some(("url", "is only for the type `url`"));
        }
        let is_foreign = self.kind != TemplateButtonType::PhoneNumber && self.phone_number.is_some();
        is_foreign.then_some(("phone_number", "is only for the type `phone_number`"))
    }

    fn to_network(&self) -> Value {
        let mut part = json!({ "type": self.kind.as_str().to_uppercase(), "text": self.text });
        put(&mut part, "url", self.url.as_ref().map(|url| json!(url)));
        put(&mut part, "phone_number", self.phone_number.as_ref().map(|number| json!(number)));
        let example = self.sample.as_ref().map(|example| match self.kind {
            TemplateButtonType::CopyCode => json!(example),
            _ => json!([example]),
        });
        put(&mut part, "example", example);
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(body: &str, examples: &[&str]) -> Vec<String> {
        let examples = examples.iter().map(|example| (*example).to_owned()).collect();
        let body = TemplateBody { text: body.to_owned(), samples: examples };
        let mut all = Vec::new();
        check_body(&body, &mut |param, _| all.push(param.to_owned()));
        all
    }

    #[test]
    fn texts_that_the_network_refuses_are_found() {
        let (text, examples) = ("components.body.text", "components.body.samples");
        assert!(params("Hello {{1}}!", &["Ana"]).is_empty());
        assert!(params("No variables.", &[]).is_empty());
        assert_eq!(params("{{1}} hello.", &["Ana"]), [text]);
        assert_eq!(params("Hello {{1}}", &["Ana"]), [text]);
        assert_eq!(params("Hello {{1}} {{2}}!", &["a", "b"]), [text]);
        assert_eq!(params("Hello {{1}}{{2}}!", &["a", "b"]), [text]);
        assert_eq!(params("Hello {{2}}!", &["a"]), [text]);
        assert_eq!(params("Hello {{name}}!", &["a"]), [text]);
        assert_eq!(params("Hello {{1}}!", &[]), [examples]);
        assert_eq!(params("Hello {{1}}!", &[" "]), [examples]);
    }

    #[test]
    fn the_network_gives_back_what_it_was_given() {
        let components = TemplateComponents {
            header: Some(TemplateHeader {
                format: TemplateHeaderFormat::Text,
                text: Some("Order {{1}}".to_owned()),
                sample: Some("4711".to_owned()),
            }),
            body: TemplateBody { text: "Hello {{1}}!".to_owned(), samples: vec!["Ana".to_owned()] },
            footer: Some("Bye".to_owned()),
            buttons: vec![
                TemplateButton {
                    kind: TemplateButtonType::Url,
                    text: "Track".to_owned(),
                    url: Some("https://example.com/{{1}}".to_owned()),
                    phone_number: None,
                    sample: Some("4711".to_owned()),
                },
                TemplateButton {
                    kind: TemplateButtonType::CopyCode,
                    text: "Copy".to_owned(),
                    url: None,
                    phone_number: None,
                    sample: Some("SAVE".to_owned()),
                },
            ],
        };
        components.check().unwrap();
        assert_eq!(TemplateComponents::from_network(&components.to_network()), components);
        assert_eq!(TemplateComponents::from_network(&json!("nonsense")), TemplateComponents::default());
    }

    #[test]
    fn braces_that_do_not_close_are_text() {
        assert_eq!(pieces("a {{ b"), [Piece::Text("a {{ b")]);
        assert_eq!(pieces("a {{ 1 }} b"), [Piece::Text("a "), Piece::Variable("1"), Piece::Text(" b")]);
    }
}
