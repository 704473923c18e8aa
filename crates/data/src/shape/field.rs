//! A field of a collection.

use super::{Family, FieldOptions, FieldType};
use crate::compute::formula::Formula;
use diesel::prelude::*;
use model::{CollectionId, FieldId, JsonText, Result, Timestamp, WorkspaceId};
use regex::Regex;
use serde_json::Value;
use std::sync::OnceLock;
use store::schema::collection_fields;

/// A field as it is stored.
#[derive(Debug, Clone, Queryable, Selectable)]
#[diesel(table_name = collection_fields)]
#[expect(missing_docs, reason = "the columns are those of `Field`")]
pub struct FieldRow {
    pub id: FieldId,
    pub workspace_id: WorkspaceId,
    pub collection_id: CollectionId,
    pub field_key: String,
    pub label: String,
    pub kind: String,
    pub description: Option<String>,
    pub required: bool,
    pub is_unique: bool,
    pub default_value: Option<JsonText>,
    pub options: JsonText,
    pub position: i64,
    pub archived: bool,
    pub next_number: i64,
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub trashed_at: Option<Timestamp>,
}

/// A field, ready for use. What is compiled of its options is compiled when first needed.
#[derive(Debug)]
pub struct Field {
    /// The field.
    pub id: FieldId,
    /// What items call it.
    pub key: String,
    /// What people read.
    pub label: String,
    /// Its type.
    pub kind: FieldType,
    /// What it is for.
    pub description: Option<String>,
    /// Whether an item must have a value.
    pub required: bool,
    /// Whether no two live items may have the same value.
    pub unique: bool,
    /// What a new item gets when it says nothing.
    pub default: Option<Value>,
    /// What its type was told.
    pub options: FieldOptions,
    /// Its place among the fields.
    pub position: i64,
    /// Whether it is kept for what it holds only.
    pub archived: bool,
    /// Raised with every change.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    pattern: OnceLock<Option<Regex>>,
    json_schema: OnceLock<Option<jsonschema::Validator>>,
    formula: OnceLock<Option<Formula>>,
}

impl Field {
    /// Reads a stored field.
    ///
    /// # Errors
    /// When what is stored is damaged.
    pub fn of(row: FieldRow) -> Result<Self> {
        let kind = FieldType::parse(&row.kind)
            .ok_or_else(|| model::Error::internal(format!("field {} has an unknown type", row.id)))?;
        Ok(Self {
            id: row.id,
            key: row.field_key,
            label: row.label,
            kind,
            description: row.description,
            required: row.required,
            unique: row.is_unique,
            default: row.default_value.map(|value| value.parse()).transpose()?,
            options: row.options.parse()?,
            position: row.position,
            archived: row.archived,
            version: row.version,
            created_at: row.created_at,
            updated_at: row.updated_at,
            pattern: OnceLock::new(),
            json_schema: OnceLock::new(),
            formula: OnceLock::new(),
        })
    }

    /// A field that is not stored yet, against which values can be checked.
    pub fn draft(key: &str, kind: FieldType, options: FieldOptions) -> Self {
        let never = Timestamp::from_millis(0);
        Self {
            id: FieldId(0),
            key: key.to_owned(),
            label: String::new(),
            kind,
            description: None,
            required: false,
            unique: false,
            default: None,
            options,
            position: 0,
            archived: false,
            version: 0,
            created_at: never,
            updated_at: never,
            pattern: OnceLock::new(),
            json_schema: OnceLock::new(),
            formula: OnceLock::new(),
        }
    }

    /// Whether callers must give every item a value.
    pub fn is_demanded(&self) -> bool {
        self.required && !self.kind.is_read_only() && !self.archived
    }

    /// How values compare: for a computed field as its result does.
    pub fn family(&self) -> Family {
        self.options.result_type.filter(|_| self.kind.is_computed()).unwrap_or(self.kind).own_family()
    }

    /// The regular expression that the whole value must match. One that does not compile was refused when it was set.
    pub fn pattern(&self) -> Option<&Regex> {
        let compile = |pattern: &String| Regex::new(&format!("^(?:{pattern})$")).ok();
        self.pattern.get_or_init(|| self.options.pattern.as_ref().and_then(compile)).as_ref()
    }

    /// The JSON Schema that values must fit. One that does not compile was refused when it was set.
    pub fn json_schema(&self) -> Option<&jsonschema::Validator> {
        let compile = |schema: &Value| jsonschema::draft202012::new(schema).ok();
        self.json_schema.get_or_init(|| self.options.json_schema.as_ref().and_then(compile)).as_ref()
    }

    /// The parsed expression of a formula. One that does not parse was refused when it was set.
    pub fn formula(&self) -> Option<&Formula> {
        let parse = |text: &String| Formula::parse(text).ok();
        let expression = self.options.expression.as_ref().filter(|_| self.kind == FieldType::Formula);
        self.formula.get_or_init(|| expression.and_then(parse)).as_ref()
    }
}
