//! Validation of placeholders in instructions and in fixed arguments of tools.

use input::nearest;
use model::{Code, Error, Result, WorkspaceId};
use operation::{Describe, FromInput, Input};
use ports::{BUSINESS_FACTS, People, Placeholder, WorkspaceVariables, placeholders, whole_placeholder};
use serde_json::{Map, Value};
use std::cell::OnceCell;
use std::sync::Arc;
use store::Read;

/// The roots of placeholders. `contact` and `channel` have values only in a run that answers over a channel.
pub const ROOTS: [&str; 5] = ["contact", "channel", "business", "now", "vars"];
/// The keys of the root `now`.
pub const PARTS_OF_NOW: [&str; 3] = ["date", "time", "weekday"];

/// The services for checking placeholders.
#[derive(Clone)]
pub struct PlaceholderServices {
    people: Arc<People>,
    variables: Arc<WorkspaceVariables>,
}

impl FromInput for PlaceholderServices {
    fn from_input(input: &Input<'_>, _: &'static str) -> Result<Self> {
        Ok(Self { people: input.services.get()?, variables: input.services.get()? })
    }

    fn describe(_: &mut Describe, _: &'static str) {}
}

impl PlaceholderServices {
    pub(super) fn checks(&self, workspace: WorkspaceId) -> PlaceholderChecks<'_> {
        let Self { people, variables } = self;
        PlaceholderChecks { people, variables, workspace, fields: OnceCell::new() }
    }
}

/// A checker of placeholders for one workspace.
pub(super) struct PlaceholderChecks<'a> {
    people: &'a People,
    variables: &'a WorkspaceVariables,
    workspace: WorkspaceId,
    /// The keys of contact fields, loaded when first needed.
    fields: OnceCell<Vec<String>>,
}

impl PlaceholderChecks<'_> {
    /// Checks that each placeholder of a text has a source and that none refers to a secret, because prompts and
    /// calls are stored and shown. Variables need not exist yet.
    ///
    /// # Errors
    /// `unknown_variable`, or `validation_error` for a secret, both at `param`.
    pub(super) fn check(&self, read: &mut Read, text: &str, param: &str) -> Result<()> {
        let mut keys = Vec::new();
        for placeholder in placeholders(text) {
            let Placeholder { root, key, .. } = placeholder;
            match root {
                "vars" if !key.is_empty() => keys.push(key),
                "contact" if key != "id" => self.expect_field(read, &placeholder, param)?,
                "contact" => {}
                "channel" => expect(&placeholder, &["id"], param)?,
                "business" => expect(&placeholder, &BUSINESS_FACTS, param)?,
                "now" if key.is_empty() => {}
                "now" => expect(&placeholder, &PARTS_OF_NOW, param)?,
                "vars" => return Err(unknown(&placeholder, None, param)),
                _ => {
                    let near = nearest(root, ROOTS.into_iter()).map(|near| format!("{near}.{key}"));
                    return Err(unknown(&placeholder, near, param));
                }
            }
        }
        if keys.is_empty() {
            return Ok(());
        }
        match self.variables.secrets(read, self.workspace, &keys)?.first() {
            None => Ok(()),
            Some(key) => {
                let rule =
                    format!("must not refer to the secret `{key}`: secrets are only for headers of tools");
                Err(Error::invalid(param, rule))
            }
        }
    }

    /// Checks the texts of fixed arguments.
    ///
    /// # Errors
    /// The errors of [`Self::check`], at the argument.
    pub(super) fn check_fixed(&self, read: &mut Read, fixed: &Map<String, Value>) -> Result<()> {
        for (name, value) in fixed {
            for text in texts(value) {
                self.check(read, text, &format!("fixed_arguments.{name}"))?;
            }
        }
        Ok(())
    }

    fn expect_field(&self, read: &mut Read, placeholder: &Placeholder<'_>, param: &str) -> Result<()> {
        let fields = match self.fields.get() {
            Some(fields) => fields,
            None => {
                let fields = self.people.fields(read, self.workspace)?;
                self.fields.get_or_init(|| fields.into_iter().map(|field| field.key).collect())
            }
        };
        let mut keys = fields.iter().map(String::as_str);
        if keys.clone().any(|key| key == placeholder.key) {
            return Ok(());
        }
        let bare = keys.clone().find(|key| key.strip_prefix('$') == Some(placeholder.key));
        let near = bare.or_else(|| nearest(placeholder.key, keys.by_ref()));
        Err(unknown(placeholder, near.map(|near| format!("contact.{near}")), param))
    }
}

/// Checks that the value of a header refers to variables only, which may be secrets.
///
/// # Errors
/// `unknown_variable`.
pub(super) fn check_header(name: &str, value: &str) -> Result<()> {
    match placeholders(value).iter().find(|placeholder| placeholder.root != "vars") {
        None => Ok(()),
        Some(placeholder) => {
            let path = placeholder.path();
            let message = format!(
                "Nothing fills `{{{{{}}}}}` in a header: it can refer only to variables, such as `{{{{vars.key}}}}`.",
                path.escape_debug()
            );
            Err(Error::new(Code::UnknownVariable, message).param(format!("http.headers.{name}")))
        }
    }
}

/// Returns whether a fixed argument is a single placeholder. The type of its value is known only in a run.
pub(super) fn is_placeholder(value: &Value) -> bool {
    value.as_str().and_then(whole_placeholder).is_some_and(|placeholder| ROOTS.contains(&placeholder.root))
}

fn expect(placeholder: &Placeholder<'_>, keys: &[&str], param: &str) -> Result<()> {
    if keys.contains(&placeholder.key) {
        return Ok(());
    }
    let near = nearest(placeholder.key, keys.iter().copied()).or_else(|| keys.first().copied());
    Err(unknown(placeholder, near.map(|near| format!("{}.{near}", placeholder.root)), param))
}

fn unknown(placeholder: &Placeholder<'_>, near: Option<String>, param: &str) -> Error {
    let path = placeholder.path();
    let path = path.escape_debug();
    let near = near.map(|near| format!(" Did you mean `{{{{{near}}}}}`?")).unwrap_or_default();
    let message = format!(
        "Nothing fills `{{{{{path}}}}}`: a placeholder is `contact.id` or a field of contacts such as `contact.$name`, `channel.id`, \
         `business.name`, `now`, or a variable such as `vars.key`.{near}"
    );
    Error::new(Code::UnknownVariable, message).param(param)
}

/// Returns all texts within a value.
pub fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts).collect(),
        Value::Object(members) => members.values().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
