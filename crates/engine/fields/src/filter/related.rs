//! Conditions on the records that a field points to, such as `bike.brand`.

use super::comparison::{Comparison, name_of, subject};
use super::op::Op;
use crate::definitions::set::FieldSet;
use crate::definitions::subject::Subject;
use crate::values::kind::FieldType;
use model::{Error, FieldId, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A condition on the records that a field points to. It holds if one of them meets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Related {
    /// The field that points to them.
    pub through: FieldId,
    /// The name of their field that is compared.
    #[serde(rename = "field")]
    pub name: String,
    /// How.
    pub op: Op,
    /// With what.
    pub value: Value,
    /// Where the caller wrote the value, for messages.
    #[serde(skip)]
    pub param: String,
    /// Where the caller wrote the names, for messages.
    #[serde(skip)]
    pub at: String,
}

impl Related {
    /// The names as callers write them: `bike.brand`.
    pub fn path(&self, fields: &FieldSet) -> String {
        format!("{}.{}", name_of(Subject::Field(self.through), fields), self.name)
    }

    /// The comparison that a record must meet that the field points to. `target` has the fields of these records.
    ///
    /// # Errors
    /// 400 `validation_error` for a field that they do not have.
    pub fn comparison(&self, fields: &FieldSet, target: &FieldSet) -> Result<Comparison> {
        let subject = Subject::named(target, &self.name).ok_or_else(|| {
            let near = target.nearest(&self.name);
            let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            let through = name_of(Subject::Field(self.through), fields);
            let name: String = self.name.chars().take(63).collect();
            let rule = format!("names `{name}`, which is not a field that `{through}` points to{hint}");
            Error::invalid(self.at.as_str(), rule)
        })?;
        Ok(Comparison { subject, op: self.op, value: self.value.clone(), param: self.param.clone() })
    }
}

/// What the name in a condition means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compared {
    /// A field or a column of the record itself.
    Own(Subject),
    /// A field of the records that a field points to.
    Related {
        /// The field that points to them.
        through: FieldId,
        /// The name of their field.
        name: String,
    },
}

impl Compared {
    /// Reads a name such as `brand` or `bike.brand`.
    ///
    /// # Errors
    /// 400 `validation_error` about `param`: there is no such field, it points to no records, or the name has more than two
    /// parts.
    pub fn named(fields: &FieldSet, name: &str, param: &str) -> Result<Self> {
        let (first, rest) = match (Subject::named(fields, name), name.split_once('.')) {
            (Some(own), _) => return Ok(Self::Own(own)),
            (None, Some(parts)) => parts,
            (None, None) => return subject(fields, name, param).map(Self::Own),
        };
        let shown: String = first.chars().take(63).collect();
        let Some(field) = fields.named(first) else {
            let hint = fields.nearest(first).map(|near| format!("; did you mean `{near}`?"));
            let hint = hint.unwrap_or_default();
            let rule = format!("begins with `{shown}`, which is not a field of this {}{hint}", fields.noun());
            return Err(Error::invalid(param, rule));
        };
        if !matches!(field.kind, FieldType::Relation | FieldType::Contact) {
            let rule = format!("begins with `{shown}`, which is not a field of type `relation` or `contact`");
            return Err(Error::invalid(param, rule));
        }
        if rest.is_empty() || rest.contains('.') {
            return Err(Error::invalid(
                param,
                "must have two names, such as `supplier.city`: it reaches one step",
            ));
        }
        Ok(Self::Related { through: field.id, name: rest.to_owned() })
    }
}
