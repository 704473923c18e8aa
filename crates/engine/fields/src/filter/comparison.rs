//! Comparisons of a record's own fields and columns, and how callers name those.

use super::op::Op;
use crate::definitions::set::FieldSet;
use crate::definitions::subject::Subject;
use model::{Error, FieldId, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is compared, how, and with what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// What is compared.
    #[serde(rename = "field")]
    pub subject: Subject,
    /// How.
    pub op: Op,
    /// With what: text, a number, a boolean, a list of these for `in`; any JSON for a field that holds JSON.
    pub value: Value,
    /// Where the caller wrote it, for messages.
    #[serde(skip)]
    pub param: String,
}

/// What callers call a subject, also one that is gone.
pub fn name_of(subject: Subject, fields: &FieldSet) -> String {
    match (subject.name(fields), subject) {
        (Some(name), _) => name.to_owned(),
        (None, Subject::Field(FieldId(id))) => format!("#{id}"),
        (None, Subject::System(system)) => fields.name_of_column(system).to_owned(),
    }
}

/// What a caller means by `name`.
///
/// # Errors
/// 400 `validation_error` about `param`, with the name that was probably meant.
pub fn subject(fields: &FieldSet, name: &str, param: impl Into<String>) -> Result<Subject> {
    Subject::named(fields, name).ok_or_else(|| {
        let hint = fields.nearest(name).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Error::invalid(param, format_args!("is not a field of this {}{hint}", fields.noun()))
    })
}
