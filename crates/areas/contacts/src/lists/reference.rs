//! Reference data of contacts: system fields, filter operators, pipeline stages, sources, and the format of telephone
//! numbers.

use crate::edit::model::{NormalizedPhone, PhoneQuestion};
use crate::record::find::contacts;
use crate::record::system_fields::{SOURCES, STAGE};
use business::Calendar;
use fields::filter::Op;
use fields::{Choice, FieldType, phone};
use model::{Caller, Result};
use operation::{Body, Json, Rows, State, operation};
use ports::BusinessCalendar;
use records::shape::Shapes;
use serde::Serialize;
use store::Read;
use utoipa::ToSchema;

/// A system field of contacts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "key": "$phone", "label": "Phone", "type": "phone", "unique": true, "choices": [] }))]
pub struct ContactSystemField {
    /// The key in `data`.
    pub key: String,
    /// Always `contact_system_field`.
    pub object: &'static str,
    /// The label for people.
    pub label: String,
    /// The type.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Whether no two contacts can have the same value.
    pub unique: bool,
    /// Whether other operations set the value, so that `data` cannot.
    pub read_only: bool,
    /// For a select field, the choices in order.
    pub choices: Vec<KeyAndLabel>,
}

/// A choice of a system field.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "key": "qualified", "label": "Qualified" }))]
pub struct KeyAndLabel {
    /// The key, as `data` has it.
    pub key: String,
    /// The label for people.
    pub label: String,
    /// Whether the choice is archived: contacts keep it, but new values cannot use it.
    pub archived: bool,
}

/// An operator of contact filters.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "op": "eq", "filters": true }))]
pub struct ContactFilterOperator {
    /// The operator.
    pub op: Op,
    /// Always `contact_filter_operator`.
    pub object: &'static str,
    /// Whether the conditions of `filters` support it. `filter_tree` and `filter` support all.
    pub filters: bool,
}

/// A stage of the opportunity pipeline.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "key": "new", "label": "New", "color": "green", "position": 0 }))]
pub struct PipelineStage {
    /// The key, as `$stage` has it.
    pub key: String,
    /// Always `pipeline_stage`.
    pub object: &'static str,
    /// The label for people.
    pub label: String,
    /// The colour of the label, if it has one.
    pub color: Option<String>,
    /// The place in the pipeline, from 0.
    pub position: i64,
    /// Whether the stage is archived: contacts keep it, but no other contact can get it.
    pub archived: bool,
}

/// Where a contact can come from.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "key": "referral", "label": "Referral" }))]
pub struct ContactSource {
    /// The key, as `$source` has it.
    pub key: &'static str,
    /// Always `contact_source`.
    pub object: &'static str,
    /// The label for people.
    pub label: &'static str,
}

/// The system keys (prefixed with $) and their types
///
/// Lists the fields that every workspace has. The choices of `$stage` are those that the workspace gives it. Fields of its
/// own are listed by `GET /variables/contact-fields`.
#[operation(get "/contacts/system-fields", scope = any_key)]
pub fn list_contact_system_fields(
    read: &mut Read,
    caller: &Caller,
    shapes: State<Shapes>,
) -> Result<Rows<ContactSystemField>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let labelled = |choice: &Choice| KeyAndLabel {
        key: choice.key.clone(),
        label: choice.label.clone(),
        archived: choice.archived,
    };
    let visible = shape.fields.iter().filter(|field| field.is_built_in() && !field.hidden);
    let fields = visible.map(|field| ContactSystemField {
        object: "contact_system_field",
        choices: field.options.choices().iter().map(labelled).collect(),
        read_only: field.is_read_only(),
        key: field.key.clone(),
        label: field.label.clone(),
        kind: field.kind,
        unique: field.unique,
    });
    Ok(Rows(fields.collect()))
}

/// The operators that contact filters take
///
/// Conditions in `filters` compare texts and support `eq` and `neq` only. `GET /items/filter-operators` lists which
/// operators the other filters support for each field type.
#[operation(get "/contacts/filter-operators", scope = any_key)]
pub fn list_contact_filter_operators() -> Result<Rows<ContactFilterOperator>> {
    let operator = |op| ContactFilterOperator {
        op,
        object: "contact_filter_operator",
        filters: matches!(op, Op::Eq | Op::Neq),
    };
    Ok(Rows(Op::ALL.into_iter().map(operator).collect()))
}

/// The stages of the opportunity pipeline in order
///
/// These are the choices of the system field `$stage`. `PATCH /variables/contact-fields/$stage` changes them.
#[operation(get "/contacts/pipeline-stages", scope = any_key)]
pub fn list_pipeline_stages(
    read: &mut Read,
    caller: &Caller,
    shapes: State<Shapes>,
) -> Result<Rows<PipelineStage>> {
    let shape = contacts(read, &shapes.0, caller)?;
    let choices = shape.field(STAGE).map(|field| field.options.choices()).unwrap_or_default();
    let stage = |(position, choice): (i64, &Choice)| PipelineStage {
        key: choice.key.clone(),
        object: "pipeline_stage",
        label: choice.label.clone(),
        color: choice.color.clone(),
        position,
        archived: choice.archived,
    };
    Ok(Rows((0..).zip(choices).map(stage).collect()))
}

/// Where a contact can come from
///
/// These are the choices of the system field `$source`.
#[operation(get "/contacts/sources", scope = any_key)]
pub fn list_contact_sources() -> Result<Rows<ContactSource>> {
    let source =
        |(key, label): &(&'static str, &'static str)| ContactSource { key, object: "contact_source", label };
    Ok(Rows(SOURCES.iter().map(source).collect()))
}

/// A phone number in international form, or why it is none
///
/// Always answers 200: `valid` says whether it is a number that contacts can have. Numbers in a form that their country used
/// before, such as mobile numbers of Brazil and Mexico, are converted.
#[operation(post "/contacts/normalize-phone", scope = any_key)]
pub fn normalize_phone(
    read: &mut Read,
    caller: &Caller,
    Body(question): Body<PhoneQuestion>,
) -> Result<Json<NormalizedPhone>> {
    let country = match question.country {
        Some(country) => Some(country),
        None => Calendar.country(read, caller.workspace_id())?,
    };
    let country = country.and_then(|code| code.parse().ok());
    let normalized = phone::international(&question.phone, country);
    let (phone, reason) = match normalized {
        Ok(phone) => (Some(phone), None),
        Err(problem) => (None, Some(format!("The number {}.", problem.message))),
    };
    let country = phone.as_deref().and_then(phone::country_of);
    Ok(Json(NormalizedPhone { object: "normalized_phone", valid: phone.is_some(), phone, country, reason }))
}
