//! A decision: as JSON from programs or as a form from a page, and the pages.

use action_links::LONGEST_NOTE;
use action_links::page::{moment, page};
use fields::json_schema::Schema;
use input::parse_json;
use maud::{Markup, html};
use model::{Error, Result, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use url::form_urlencoded;

/// The beginning of the names of fields of the form on the page.
const FIELD: &str = "form.";
/// The most characters of the name of the person.
const LONGEST_NAME: usize = 100;

/// What is stored with a wait for a decision.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ApprovalDetails {
    /// What is to be decided.
    pub text: String,
    /// A JSON Schema of the form.
    #[serde(default)]
    pub form: Option<Value>,
    /// The link.
    pub url: String,
}

/// What a person has decided.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowDecision {
    is_approved: bool,
    /// The form that was filled in.
    pub form: Option<Value>,
    /// Who decided, as stated by that person.
    pub by: Option<String>,
    pub note: Option<String>,
}

impl FlowDecision {
    /// The word for it.
    pub fn word(&self) -> &'static str {
        if self.is_approved { "approved" } else { "rejected" }
    }

    /// Reads a JSON object: `decision`, `form`, `by` and `note`.
    ///
    /// # Errors
    /// `validation_error`.
    pub fn from_json(bytes: &[u8], schema: Option<&Value>) -> Result<Self> {
        let Value::Object(fields) = parse_json(bytes, "body")? else {
            return Err(Error::invalid("body", "must be a JSON object"));
        };
        Self::from_fields(&fields, schema)
    }

    /// Reads what the form of the page sends.
    ///
    /// # Errors
    /// `validation_error`.
    pub fn from_page(bytes: &[u8], schema: Option<&Value>) -> Result<Self> {
        let (mut fields, mut form) = (Map::new(), Map::new());
        for (name, text) in form_urlencoded::parse(bytes) {
            if text.is_empty() {
                continue;
            }
            let known = name.strip_prefix(FIELD).map(str::to_owned);
            let before = match known {
                Some(field) => {
                    let value = typed(schema, &field, &text);
                    form.insert(field, value)
                }
                None => fields.insert(name.clone().into_owned(), Value::from(text.into_owned())),
            };
            if before.is_some() {
                return Err(Error::invalid(name, "was sent twice"));
            }
        }
        if schema.is_some() {
            fields.insert("form".to_owned(), Value::Object(form));
        }
        Self::from_fields(&fields, schema)
    }

    fn from_fields(fields: &Map<String, Value>, schema: Option<&Value>) -> Result<Self> {
        let known = ["decision", "form", "by", "note"];
        if let Some(name) = fields.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(Error::invalid(name, "is not a field of this request"));
        }
        let is_approved = match fields.get("decision").map(Value::as_str) {
            Some(Some("approved")) => true,
            Some(Some("rejected")) => false,
            Some(_) => return Err(Error::invalid("decision", "must be `approved` or `rejected`")),
            None => return Err(Error::invalid("decision", "is required")),
        };
        let form = fields.get("form").filter(|form| !form.is_null());
        let form = match (schema, form) {
            (None, Some(_)) => return Err(Error::invalid("form", "is not asked for")),
            (Some(schema), form) if is_approved => {
                let form = form.cloned().unwrap_or_else(|| json!({}));
                if let Some(mismatch) = Schema::new(schema.clone()).mismatch(&form) {
                    return Err(Error::invalid("form", format_args!("must fit the schema: {mismatch}")));
                }
                Some(form)
            }
            (_, form) => form.cloned(),
        };
        Ok(Self {
            is_approved,
            form,
            by: text(fields.get("by"), "by", LONGEST_NAME)?,
            note: text(fields.get("note"), "note", LONGEST_NOTE)?,
        })
    }
}

fn text(value: Option<&Value>, name: &str, longest: usize) -> Result<Option<String>> {
    let text = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => text.replace("\r\n", "\n"),
        Some(_) => return Err(Error::invalid(name, "must be a text")),
    };
    if text.contains('\0') {
        return Err(Error::invalid(name, "must not contain the NUL character"));
    }
    let text = text.trim();
    if text.chars().count() > longest {
        return Err(Error::invalid(name, format_args!("must have at most {longest} characters")));
    }
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

/// The fields of a form on the page: those on top of its schema.
fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// The value of a field, by the type that the schema states. What does not fit stays text, which the schema refuses.
fn typed(schema: Option<&Value>, field: &str, said: &str) -> Value {
    let wanted = schema.and_then(|schema| schema.get("properties")?.get(field)?.get("type")?.as_str());
    let parsed = match wanted {
        Some("number" | "integer") => serde_json::from_str(said).ok().filter(Value::is_number),
        Some("boolean") => match said {
            "true" | "on" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        Some("object" | "array") => serde_json::from_str(said).ok(),
        _ => None,
    };
    parsed.unwrap_or_else(|| Value::from(said))
}

/// The page that asks.
pub fn question_page(
    workspace: &str,
    livemode: bool,
    details: &ApprovalDetails,
    until: Option<Timestamp>,
) -> Markup {
    let content = html! {
        h1 { "Approval needed" }
        p.quiet {
            "A flow of " b { (workspace) } " waits for your decision"
            @if let Some(until) = until { " until " (moment(until)) }
            "."
        }
        @if !livemode { p.test { "This is a test: nothing is really done." } }
        pre { (details.text) }
        form method="post" {
            @if let Some(schema) = &details.form {
                @for (name, field) in properties(schema) { (field_of(name, field)) }
            }
            h2 { label for="by" { "Your name " span.quiet { "(optional)" } } }
            input id="by" name="by" maxlength=(LONGEST_NAME);
            h2 { label for="note" { "A note " span.quiet { "(optional)" } } }
            textarea id="note" name="note" rows="3" maxlength=(LONGEST_NOTE) {}
            // The first button is the one that the Enter key means.
            div.buttons {
                button.refuse name="decision" value="rejected" { "Reject" }
                button.approve name="decision" value="approved" { "Approve" }
            }
        }
    };
    page("Approval needed", &content)
}

/// A field of the form.
fn field_of(name: &str, field: &Value) -> Markup {
    let shown = |key: &str| field.get(key).and_then(Value::as_str);
    let title = shown("title").unwrap_or(name);
    let input_name = format!("{FIELD}{name}");
    let choices: Vec<&str> =
        field.get("enum").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    html! {
        h2 { label for=(input_name) { (title) } }
        @if let Some(about) = shown("description") { p.quiet { (about) } }
        @if !choices.is_empty() {
            select id=(input_name) name=(input_name) {
                option value="" { "" }
                @for choice in &choices { option value=(choice) { (choice) } }
            }
        } @else if shown("type") == Some("boolean") {
            select id=(input_name) name=(input_name) {
                option value="" { "" }
                option value="true" { "Yes" }
                option value="false" { "No" }
            }
        } @else if matches!(shown("type"), Some("number" | "integer")) {
            input id=(input_name) name=(input_name) type="number" step="any";
        } @else {
            textarea id=(input_name) name=(input_name) rows="2" {}
        }
    }
}

/// The page after a decision.
pub fn decided_page(decision: &FlowDecision) -> Markup {
    let title = if decision.is_approved { "Approved" } else { "Rejected" };
    let content = html! {
        h1 { (title) }
        p.quiet { "The flow continues. You can close this page." }
    };
    page(title, &content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object", "required": ["amount"], "additionalProperties": false,
            "properties": { "amount": { "type": "number" }, "fast": { "type": "boolean" }, "why": { "type": "string" } },
        })
    }

    #[test]
    fn a_page_and_a_program_send_the_same() {
        let schema = schema();
        let page = b"decision=approved&form.amount=12.5&form.fast=true&form.why=&by=Ana&note=";
        let json = br#"{"decision":"approved","form":{"amount":12.5,"fast":true},"by":"Ana"}"#;
        let decided = FlowDecision::from_page(page, Some(&schema)).unwrap();
        assert_eq!(decided, FlowDecision::from_json(json, Some(&schema)).unwrap());
        assert_eq!(decided.form, Some(json!({ "amount": 12.5, "fast": true })));
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_name() {
        let schema = schema();
        for (body, param) in [
            ("[]", "body"),
            ("{}", "decision"),
            (r#"{"decision":"yes"}"#, "decision"),
            (r#"{"decision":"approved"}"#, "form"),
            (r#"{"decision":"approved","form":{"amount":"much"}}"#, "form"),
            (r#"{"decision":"approved","form":{"amount":1,"more":1}}"#, "form"),
            (r#"{"decision":"rejected","by":1}"#, "by"),
            (r#"{"decision":"rejected","note":"\u0000"}"#, "note"),
            (r#"{"decision":"rejected","other":1}"#, "other"),
        ] {
            let error = FlowDecision::from_json(body.as_bytes(), Some(&schema)).unwrap_err();
            assert_eq!(error.param_name(), Some(param), "{body}");
        }
        let error = FlowDecision::from_json(br#"{"decision":"approved","form":{}}"#, None).unwrap_err();
        assert_eq!(error.param_name(), Some("form"));
        // A rejection needs no form.
        assert!(FlowDecision::from_page(b"decision=rejected&form.amount=", Some(&schema)).is_ok());
    }
}
