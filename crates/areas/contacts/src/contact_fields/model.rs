//! Request bodies and responses of the operations on contact fields.

use fields::{FieldOptions, FieldType};
use model::{Error, FieldError, FieldId, Patch, Result, Timestamp};
use records::definitions::rewrite::Progress;
use records::definitions::{CollectionField, ConversionReport, FieldPatch, NewField};
use records::shape::IndexStatus;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

/// Returns whether a contact field can have this type. Computed types and relations to items are excluded, as are
/// types that show a member of the contact itself, such as its creation time.
fn suits_contacts(kind: FieldType) -> bool {
    let shown_beside = [FieldType::CreatedAt, FieldType::UpdatedAt, FieldType::CreatedBy];
    !kind.is_computed() && kind != FieldType::Relation && !shown_beside.contains(&kind)
}

/// The schema of `type`: the enum of field types without the types that contacts cannot have.
fn contact_field_type() -> RefOr<Schema> {
    let mut schema = FieldType::schema();
    if let RefOr::T(Schema::Object(object)) = &mut schema {
        let others = FieldType::ALL.into_iter().filter(|kind| !suits_contacts(*kind));
        let others: Vec<&str> = others.map(FieldType::as_str).collect();
        if let Some(words) = &mut object.enum_values {
            words.retain(|word| !word.as_str().is_some_and(|word| others.contains(&word)));
        }
        if let Some(text) = &mut object.description {
            let is_of_other = |line: &str| others.iter().any(|word| line.starts_with(&format!("- `{word}`")));
            *text = text.lines().filter(|line| !is_of_other(line)).collect::<Vec<_>>().join("\n");
        }
    }
    schema
}

/// A field that the workspace has defined for its contacts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({
    "field_key": "plan", "label": "Plan", "type": "select",
    "options": { "choices": [{ "id": 1, "key": "basic", "label": "Basic" }, { "id": 2, "key": "gold", "label": "Gold", "color": "yellow" }] },
    "default": "basic", "position": 0, "version": 1,
}))]
pub struct ContactField {
    /// The id of the field.
    pub id: FieldId,
    /// Always `contact_field`.
    pub object: &'static str,
    /// The field's key in the `data` of contacts. It never changes.
    pub field_key: String,
    /// The label for people.
    pub label: String,
    /// The type.
    #[serde(rename = "type")]
    #[schema(schema_with = contact_field_type)]
    pub kind: FieldType,
    /// A description for people.
    pub description: Option<String>,
    /// Whether a contact must have a value. Text that contains only white space is no value.
    pub required: bool,
    /// Whether the value must be unique among live contacts.
    pub unique: bool,
    /// For a unique field, the status of its index. Until it is `ready`, existing contacts may have duplicate values;
    /// `failed` means that some do.
    pub unique_status: Option<IndexStatus>,
    /// Whether an index speeds up filters and sorts by the field.
    pub indexed: bool,
    /// The value of new contacts that send none.
    #[schema(value_type = Option<Value>, required = true)]
    pub default: Option<Value>,
    /// The options of the field's type.
    pub options: FieldOptions,
    /// The position among the fields, from 0.
    pub position: i64,
    /// Whether the object is archived: existing values are kept, but it is not used for new ones.
    pub archived: bool,
    /// Whether the service sets the value.
    pub system: bool,
    /// The progress of a type change while existing values are converted.
    pub converting: Option<Progress>,
    /// The effect of a type change on contacts. Only in responses to such a change or its `dry_run`.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversion: Option<ConversionReport>,
    /// The version, incremented with every change.
    pub version: i64,
    /// When the object was created.
    pub created_at: Timestamp,
    /// When the object was last changed.
    pub updated_at: Timestamp,
}

impl From<CollectionField> for ContactField {
    fn from(field: CollectionField) -> Self {
        Self {
            id: field.id,
            object: "contact_field",
            field_key: field.field_key,
            label: field.label,
            kind: field.kind,
            description: field.description,
            required: field.required,
            unique: field.unique,
            unique_status: field.unique_status,
            indexed: field.indexed,
            default: field.default,
            options: field.options,
            position: field.position,
            archived: field.archived,
            system: field.system,
            converting: field.converting,
            conversion: field.conversion,
            version: field.version,
            created_at: field.created_at,
            updated_at: field.updated_at,
        }
    }
}

/// A contact field to define.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "label": "Loyalty tier", "type": "select", "options": { "choices": [{ "label": "Basic" }, { "label": "Gold", "color": "yellow" }] },
}))]
pub struct NewContactField {
    /// The field's key in the `data` of contacts; derived from the label if not given. It can never be changed. `id`,
    /// `created_at`, `updated_at`, `created_by`, `version`, `position` and `external_key` are reserved.
    #[schema(pattern = "^[a-z][a-z0-9_]{0,62}$")]
    #[serde(default)]
    field_key: Option<String>,
    /// The label for people; the key if not given, or the name of the type, such as `Long text`, if neither is given.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    label: Option<String>,
    #[serde(rename = "type")]
    #[schema(schema_with = contact_field_type)]
    kind: FieldType,
    /// A description for people.
    #[schema(max_length = 1000)]
    #[serde(default)]
    description: Option<String>,
    /// Whether a contact must have a value. Text that contains only white space is no value.
    #[serde(default)]
    required: bool,
    /// Whether the value must be unique among live contacts.
    #[serde(default)]
    unique: bool,
    /// The value of new contacts that send none, in the form in which contacts store it.
    #[schema(value_type = Option<Value>)]
    #[serde(default)]
    default: Option<Value>,
    /// The options of the field's type.
    #[serde(default)]
    options: Option<FieldOptions>,
}

impl From<NewContactField> for NewField {
    fn from(new: NewContactField) -> Self {
        Self {
            field_key: new.field_key,
            label: new.label,
            kind: new.kind,
            description: new.description,
            required: new.required,
            unique: new.unique,
            default: new.default,
            options: new.options,
        }
    }
}

/// A change of a contact field. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "label": "Tier", "description": "From the loyalty programme." }))]
pub struct ContactFieldPatch {
    /// The label for people.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    label: Option<String>,
    #[serde(default, rename = "type")]
    #[schema(schema_with = contact_field_type)]
    kind: Option<FieldType>,
    /// A description for people.
    #[schema(value_type = Option<String>, max_length = 1000)]
    #[serde(default)]
    description: Patch<String>,
    /// Whether a contact must have a value. Text that contains only white space is no value. Contacts without a value get
    /// the default.
    #[serde(default)]
    required: Option<bool>,
    /// Whether the value must be unique among live contacts.
    #[serde(default)]
    unique: Option<bool>,
    /// The value of new contacts that send none. `null` removes it.
    #[schema(value_type = Option<Value>)]
    #[serde(default)]
    default: Patch<Value>,
    /// The options of the field's type. Options that are not sent stay unchanged, and `null` resets one. `choices`
    /// replaces the whole list; existing choices are identified by `id` or `key`.
    #[schema(value_type = Option<FieldOptions>)]
    #[serde(default)]
    options: Option<Map<String, Value>>,
    /// Whether the object is archived: existing values are kept, but it is not used for new ones.
    #[serde(default)]
    archived: Option<bool>,
    /// Whether to report the effect on contacts without changing anything.
    #[serde(default)]
    dry_run: bool,
    /// Whether to change the field even if values are lost.
    #[serde(default)]
    force: bool,
    /// The expected version. If the field has another version, the request is rejected with 409 `version_conflict`.
    #[schema(minimum = 1)]
    #[serde(default)]
    pub(super) version: Option<i64>,
}

impl ContactFieldPatch {
    /// Accepts a change of a system field only if it changes nothing but the choices and leaves at least one that is
    /// not archived.
    ///
    /// # Errors
    /// `validation_error`, with all members of the body that cannot be changed.
    pub(super) fn expect_choices_only(&self, key: &str) -> Result<()> {
        let sent = [
            ("label", self.label.is_some()),
            ("type", self.kind.is_some()),
            ("description", !matches!(self.description, Patch::Keep)),
            ("required", self.required.is_some()),
            ("unique", self.unique.is_some()),
            ("default", !matches!(self.default, Patch::Keep)),
            ("archived", self.archived.is_some()),
        ];
        let rule = format!("cannot be changed for the system field `{key}`; only `options.choices` can");
        let mut mistakes: Vec<FieldError> = sent
            .into_iter()
            .filter(|(_, is_sent)| *is_sent)
            .map(|(name, _)| FieldError::new(name, rule.clone()))
            .collect();
        let choices = self.options.as_ref().and_then(|options| options.get("choices"));
        let can_be_used = |choice: &Value| choice.get("archived") != Some(&Value::Bool(true));
        let some_can = |choices: &Value| choices.as_array().is_some_and(|all| all.iter().any(can_be_used));
        if choices.is_some_and(|choices| !some_can(choices)) {
            mistakes.push(FieldError::new(
                "options.choices",
                "must have at least one choice that is not archived",
            ));
        }
        Error::all_invalid(mistakes).map_or(Ok(()), Err)
    }
}

impl From<ContactFieldPatch> for FieldPatch {
    fn from(patch: ContactFieldPatch) -> Self {
        Self {
            label: patch.label,
            kind: patch.kind,
            description: patch.description,
            required: patch.required,
            unique: patch.unique,
            default: patch.default,
            options: patch.options,
            archived: patch.archived,
            dry_run: patch.dry_run,
            force: patch.force,
            version: patch.version,
        }
    }
}

/// Whether to delete a field that is used.
#[derive(Debug, Clone, Copy, Deserialize, IntoParams)]
pub struct ContactFieldDeletion {
    /// `true` deletes the field even if segments use it.
    #[serde(default)]
    #[param(required = false)]
    pub(super) force: bool,
}
