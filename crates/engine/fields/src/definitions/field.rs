//! A field: its definition, ready for use.

use crate::definitions::options::FieldOptions;
use crate::expression::Formula;
use crate::values::kind::{Family, FieldType};
use model::{FieldId, Timestamp};
use regex::Regex;
use serde_json::Value;
use std::sync::OnceLock;

/// Gives the form in which a text is kept, or the rule that it breaks.
pub type TextForm = fn(&str) -> Result<String, &'static str>;

/// A field, ready for use.
#[derive(Debug)]
pub struct Field {
    /// The id of the field.
    pub id: FieldId,
    /// What records call it.
    pub key: String,
    /// The label for people.
    pub label: String,
    /// The type.
    pub kind: FieldType,
    /// A description for people.
    pub description: Option<String>,
    /// Whether a record must have a value.
    pub required: bool,
    /// Whether no two live records may have the same value.
    pub unique: bool,
    /// What a new record gets when it says nothing.
    pub default: Option<Value>,
    /// The options of the field's type.
    pub options: FieldOptions,
    /// Its place among the fields.
    pub position: i64,
    /// Whether the object is archived: existing values are kept, but it is not used for new ones.
    pub archived: bool,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
    /// Whether only operations of its own change it, so that bodies that name values may not.
    pub managed: bool,
    /// Whether callers never see it: queries cannot name it, search ignores it, and lists of changes leave it out.
    pub hidden: bool,
    /// Whether a workspace can change the choices, for a field that the service defines. Those of its own fields it always can.
    pub open_choices: bool,
    /// The form in which a text is kept, for fields that the service defines, or why it is none.
    pub form: Option<TextForm>,
    /// The country of the business, as an ISO 3166 code: that of telephone numbers without `+` where the options name none.
    pub home_country: Option<String>,
    /// What is compiled of its options.
    pub compiled: Compiled,
}

/// What is compiled of a field's options, each when it is first needed.
#[derive(Debug, Default)]
pub struct Compiled {
    pattern: OnceLock<Option<Regex>>,
    json_schema: OnceLock<Option<jsonschema::Validator>>,
    formula: OnceLock<Option<Formula>>,
}

impl Field {
    /// A field that the service defines, number `number` of its kind of records: it is stored nowhere, and has a negative
    /// id.
    pub fn built_in(number: u16, key: &str, label: &str, kind: FieldType, options: FieldOptions) -> Self {
        let id = FieldId(-i64::from(number));
        Self { id, label: label.to_owned(), ..Self::draft(key, kind, options) }
    }

    /// Whether the service defines it.
    pub fn is_built_in(&self) -> bool {
        self.id.0 < 0
    }

    /// Whether a workspace can change the definition: of its own fields everything, of one of the service's the choices.
    pub fn is_changeable(&self) -> bool {
        !self.is_built_in() || self.open_choices
    }

    /// Takes the choices that a workspace has given to a field that the service defines.
    pub fn take_choices(&mut self, stored: Self) {
        self.options = stored.options;
        self.version = stored.version;
        self.created_at = stored.created_at;
        self.updated_at = stored.updated_at;
    }

    /// Whether values that callers send may not name it.
    pub fn is_read_only(&self) -> bool {
        self.managed || self.kind.is_read_only()
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
            managed: false,
            hidden: false,
            open_choices: false,
            form: None,
            home_country: None,
            compiled: Compiled::default(),
        }
    }

    /// The country of telephone numbers without `+`, as an ISO 3166 code.
    pub fn phone_country(&self) -> Option<&str> {
        self.options.default_country.as_deref().or(self.home_country.as_deref())
    }

    /// Whether callers must give every record a value.
    pub fn is_demanded(&self) -> bool {
        self.required && !self.is_read_only() && !self.archived
    }

    /// How values compare: for a computed field as its result does.
    pub fn family(&self) -> Family {
        self.options.result_type.filter(|_| self.kind.is_computed()).unwrap_or(self.kind).own_family()
    }

    /// The regular expression that the whole value must match. One that does not compile was refused when it was set.
    pub fn pattern(&self) -> Option<&Regex> {
        let compile = |pattern: &String| Regex::new(&format!("^(?:{pattern})$")).ok();
        self.compiled.pattern.get_or_init(|| self.options.pattern.as_ref().and_then(compile)).as_ref()
    }

    /// The JSON Schema that values must fit. One that does not compile was refused when it was set.
    pub fn json_schema(&self) -> Option<&jsonschema::Validator> {
        let compile = |schema: &Value| jsonschema::draft202012::new(schema).ok();
        self.compiled.json_schema.get_or_init(|| self.options.json_schema.as_ref().and_then(compile)).as_ref()
    }

    /// The parsed expression of a formula. One that does not parse was refused when it was set.
    pub fn formula(&self) -> Option<&Formula> {
        let parse = |text: &String| Formula::parse(text).ok();
        let expression = self.options.expression.as_ref().filter(|_| self.kind == FieldType::Formula);
        self.compiled.formula.get_or_init(|| expression.and_then(parse)).as_ref()
    }
}
