//! From what a caller says of a field to what is stored.

use super::model::NewField;
use crate::schema::collection_fields;
use crate::shape::{FieldRow, Shape};
use diesel::prelude::*;
use fields::field_keys;
use fields::option_rules::{self, settle_choices};
use fields::value::{self, Mode};
use fields::{Field, FieldOptions, FieldType};
use model::{CollectionId, FieldError, FieldId, JsonText, Result, WorkspaceId};
use serde_json::Value;
use store::Tx;

/// A field that was checked, as far as it can be without looking at others.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// The field's key in items.
    pub key: String,
    /// The label for people.
    pub label: String,
    /// The type.
    pub kind: FieldType,
    /// A description for people.
    pub description: Option<String>,
    /// Whether an item must have a value.
    pub required: bool,
    /// Whether values are unique.
    pub unique: bool,
    /// What a new item gets.
    pub default: Option<Value>,
    /// The options of the field's type.
    pub options: FieldOptions,
    /// Whether the object is archived: existing values are kept, but it is not used for new ones.
    pub archived: bool,
    /// The next number of an `auto_number` field, and the next id of a choice.
    pub next_number: i64,
}

impl Definition {
    /// What a stored field is.
    pub fn of(field: &Field, next_number: i64) -> Self {
        Self {
            key: field.key.clone(),
            label: field.label.clone(),
            kind: field.kind,
            description: field.description.clone(),
            required: field.required,
            unique: field.unique,
            default: field.default.clone(),
            options: field.options.clone(),
            archived: field.archived,
            next_number,
        }
    }

    /// A field to check values against.
    pub fn draft(&self) -> Field {
        Field::draft(&self.key, self.kind, self.options.clone())
    }

    /// Checks options, default and flags against the type, each mistake below `path` (`fields[2].`, or nothing), and
    /// gives choices their ids. `stored` are the choices that the field has already.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn settle(&mut self, stored: &[fields::Choice], path: &str) -> Result<(), Vec<FieldError>> {
        let mut wrong = option_rules::mistakes(self.kind, &self.options, &format!("{path}options"));
        if !wrong.is_empty() {
            return Err(wrong);
        }
        if let Some(choices) = self.options.choices.as_mut()
            && let Err(mistake) =
                settle_choices(choices, stored, &mut self.next_number, &format!("{path}options"))
        {
            return Err(vec![mistake]);
        }
        let mut refuse = |name: &str, rule: String| {
            wrong.push(FieldError::new(format!("{path}{name}"), rule));
        };
        if self.required && self.kind.is_read_only() {
            refuse("required", "is not for a field that the service sets".to_owned());
        }
        if self.unique && !can_be_unique(self.kind) {
            refuse("unique", format!("is not for the type `{}`", self.kind.as_str()));
        }
        if let Some(default) = self.default.take() {
            match self.checked_default(&default) {
                Ok(value) => self.default = value,
                Err(rule) => refuse("default", rule),
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// The default in the form in which items hold it.
    fn checked_default(&self, default: &Value) -> Result<Option<Value>, String> {
        if self.kind.is_read_only() || self.kind.is_reference() {
            return Err(format!("is not for the type `{}`", self.kind.as_str()));
        }
        if self.unique && !default.is_null() {
            return Err("is not for a unique field".to_owned());
        }
        if self.required && value::is_blank(self.kind, default) {
            return Err("must not be blank, because the field is required".to_owned());
        }
        value::check(&self.draft(), default, Mode::Strict).map_err(|problem| problem.message)
    }
}

/// Whether values of a type can be unique: those that are one value, and not computed.
pub(crate) fn can_be_unique(kind: FieldType) -> bool {
    !kind.is_computed()
        && !kind.is_reference()
        && !matches!(
            kind,
            FieldType::MultiSelect
                | FieldType::Tags
                | FieldType::Json
                | FieldType::CreatedAt
                | FieldType::UpdatedAt
                | FieldType::CreatedBy
        )
}

/// Whether a field can be the title of items: everything that is one value and can be read.
pub(crate) fn can_be_primary(kind: FieldType) -> bool {
    !kind.is_reference() && !matches!(kind, FieldType::Json | FieldType::MultiSelect | FieldType::Tags)
}

/// Reads a new field. `taken` tells which keys other fields have.
///
/// # Errors
/// All that is wrong, below `path`.
pub fn define(
    new: NewField,
    taken: impl Fn(&str) -> bool,
    path: &str,
) -> Result<Definition, Vec<FieldError>> {
    let label = new.label.as_deref().or(new.field_key.as_deref());
    let label = label.map_or_else(|| new.kind.label(), |label| label.trim().to_owned());
    let key = match new.field_key {
        Some(key) if field_keys::is_reserved(&key) => {
            let rule = format!("must not be `{key}`, which is reserved");
            return Err(vec![FieldError::new(format!("{path}field_key"), rule)]);
        }
        Some(key) => key,
        None => field_keys::free_key(&label, "field", |key| field_keys::is_reserved(key) || taken(key)),
    };
    let mut definition = Definition {
        label,
        key,
        kind: new.kind,
        description: new.description,
        required: new.required,
        unique: new.unique,
        default: new.default,
        options: new.options.unwrap_or_default(),
        archived: false,
        next_number: 1,
    };
    if matches!(definition.kind, FieldType::Select | FieldType::MultiSelect) {
        definition.options.choices.get_or_insert_default();
    }
    let options = &definition.options;
    let found_by_service = [
        ("reverse_field_id", options.reverse_field_id.is_some()),
        ("result_type", options.result_type.is_some()),
        ("result_error", options.result_error.is_some()),
    ];
    let read_only = |name: &str| {
        FieldError::new(format!("{path}options.{name}"), "is read-only: the service determines it")
    };
    let sent: Vec<FieldError> = found_by_service
        .into_iter()
        .filter(|(_, is_sent)| *is_sent)
        .map(|(name, _)| read_only(name))
        .collect();
    if !sent.is_empty() {
        return Err(sent);
    }
    definition.settle(&[], path)?;
    Ok(definition)
}

/// Stores a new field.
pub fn insert(
    tx: &mut Tx,
    workspace: WorkspaceId,
    collection: CollectionId,
    definition: &Definition,
    position: i64,
) -> Result<FieldRow> {
    let now = tx.now();
    let row = (
        collection_fields::workspace_id.eq(workspace),
        collection_fields::collection_id.eq(collection),
        collection_fields::field_key.eq(&definition.key),
        collection_fields::label.eq(&definition.label),
        collection_fields::kind.eq(definition.kind.as_str()),
        collection_fields::description.eq(&definition.description),
        collection_fields::required.eq(definition.required),
        collection_fields::is_unique.eq(definition.unique),
        collection_fields::default_value.eq(definition.default.as_ref().map(JsonText::of)),
        collection_fields::options.eq(JsonText::of(&definition.options)),
        collection_fields::position.eq(position),
        collection_fields::archived.eq(definition.archived),
        collection_fields::next_number.eq(definition.next_number),
        collection_fields::version.eq(1),
        collection_fields::created_at.eq(now),
        collection_fields::updated_at.eq(now),
    );
    Ok(diesel::insert_into(collection_fields::table)
        .values(row)
        .returning(collection_fields::all_columns)
        .get_result(tx.connection())?)
}

/// The row of a field of the workspace or of one that the service defines, by its key.
#[diesel::dsl::auto_type(no_type_alias)]
pub(crate) fn row_of_key<'a>(shape: &'a Shape, key: &'a str) -> _ {
    let collection: CollectionId = shape.collection;
    let workspace: WorkspaceId = shape.workspace;
    collection_fields::table
        .filter(collection_fields::collection_id.eq(collection))
        .filter(collection_fields::workspace_id.eq(workspace))
        .filter(collection_fields::field_key.eq(key))
}

/// Stores a changed field, as its next version. A field that the service defines gets a row with its first change.
pub(crate) fn store(
    tx: &mut Tx,
    shape: &Shape,
    id: FieldId,
    definition: &Definition,
    version: i64,
) -> Result<()> {
    let is_built_in = shape.field_by_id(id).is_some_and(Field::is_built_in);
    let id = if is_built_in { row_of_built_in(tx, shape, definition)? } else { id };
    let now = tx.now();
    diesel::update(collection_fields::table.find(id))
        .set((
            collection_fields::label.eq(&definition.label),
            collection_fields::kind.eq(definition.kind.as_str()),
            collection_fields::description.eq(&definition.description),
            collection_fields::required.eq(definition.required),
            collection_fields::is_unique.eq(definition.unique),
            collection_fields::default_value.eq(definition.default.as_ref().map(JsonText::of)),
            collection_fields::options.eq(JsonText::of(&definition.options)),
            collection_fields::archived.eq(definition.archived),
            collection_fields::next_number.eq(definition.next_number),
            collection_fields::version.eq(version),
            collection_fields::updated_at.eq(now),
        ))
        .execute(tx.connection())?;
    Ok(())
}

fn row_of_built_in(tx: &mut Tx, shape: &Shape, definition: &Definition) -> Result<FieldId> {
    let row = row_of_key(shape, &definition.key).select(collection_fields::id);
    match row.get_result(tx.connection()).optional()? {
        Some(id) => Ok(id),
        None => Ok(insert(tx, shape.workspace, shape.collection, definition, 0)?.id),
    }
}

/// The field that makes the best title: the first line of text, else the first that can be read.
pub fn first_primary(fields: &[Field]) -> Option<FieldId> {
    first_primary_but(fields, FieldId(0))
}

/// The same, where one field is about to go.
pub(crate) fn first_primary_but(fields: &[Field], gone: FieldId) -> Option<FieldId> {
    let mut left = fields.iter().filter(|field| field.id != gone);
    let text = left.clone().find(|field| field.kind == FieldType::Text);
    text.or_else(|| left.find(|field| can_be_primary(field.kind))).map(|field| field.id)
}
