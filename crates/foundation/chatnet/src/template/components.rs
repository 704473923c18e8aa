//! The components of a message template, with conversion to and from the network's format.

use model::string_enum;
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

impl TemplateComponents {
    /// Returns the components in the network's format.
    #[must_use]
    pub fn to_network(&self) -> Value {
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

    /// Parses components in the network's format. Ignores those that are not understood.
    #[must_use]
    pub fn from_network(components: &Value) -> Self {
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

impl TemplateButton {
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
        assert_eq!(TemplateComponents::from_network(&components.to_network()), components);
        assert_eq!(TemplateComponents::from_network(&json!("nonsense")), TemplateComponents::default());
    }
}
