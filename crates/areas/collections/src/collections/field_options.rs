//! Operations on single choices of select fields.

use fields::option_rules::MOST_CHOICES;
use fields::{Choice, Field, FieldType};
use model::{Code, CollectionId, Error, FieldId, OptionId, Patch, Result};
use operation::{Body, Created, Cx, Deleted, ExpectedVersion, Json, Path, Query, State, operation};
use records::definitions::change::{FieldTarget, run};
use records::definitions::{CollectionField, FieldPatch};
use records::shape::Shapes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

/// A choice of a select field.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(example = json!({ "key": "books", "label": "Books", "color": "blue", "position": 6 }))]
pub struct FieldOption {
    /// The id of the choice.
    pub id: OptionId,
    /// Always `field_option`.
    pub object: &'static str,
    /// The id of the field.
    pub field_id: FieldId,
    /// The key that items store. It never changes.
    pub key: String,
    /// The label for people.
    pub label: String,
    /// A colour, such as `#ff8800` or `green`.
    pub color: Option<String>,
    /// The position among the choices, from 0.
    pub position: usize,
    /// Whether the choice is archived: items keep it, but new values cannot use it.
    pub archived: bool,
}

/// A choice to add.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "label": "Books", "color": "blue" }))]
pub struct NewFieldOption {
    /// The label for people.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    label: String,
    /// The key that items store; derived from the label if not given. It can never be changed.
    #[schema(pattern = "^[a-z0-9][a-z0-9_-]{0,62}$")]
    #[serde(default)]
    key: Option<String>,
    /// A colour, such as `#ff8800` or `green`.
    #[schema(pattern = "^(#[0-9a-fA-F]{6}|[a-z]{2,20})$")]
    #[serde(default)]
    color: Option<String>,
    /// The position among the choices, from 0; last if not given.
    #[schema(minimum = 0, maximum = 200)]
    #[serde(default)]
    position: Option<usize>,
}

/// A change of a choice. Fields that are not sent stay unchanged.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({ "label": "Toys and games" }))]
pub struct FieldOptionPatch {
    /// The label for people.
    #[schema(min_length = 1, max_length = 120, pattern = r"\S")]
    #[serde(default)]
    label: Option<String>,
    /// A colour, such as `#ff8800` or `green`.
    #[schema(value_type = Option<String>, pattern = "^(#[0-9a-fA-F]{6}|[a-z]{2,20})$")]
    #[serde(default)]
    color: Patch<String>,
    /// The position among the choices, from 0.
    #[schema(minimum = 0, maximum = 200)]
    #[serde(default)]
    position: Option<usize>,
    /// Whether the choice is archived: items keep it, but new values cannot use it.
    #[serde(default)]
    archived: Option<bool>,
}

/// Whether to do it all the same.
#[derive(Debug, Clone, Copy, Deserialize, IntoParams)]
pub struct ForceQuery {
    /// `true` also removes it from the objects that use it.
    #[serde(default)]
    pub(super) force: Option<bool>,
}

/// Add a choice to a select field
///
/// Adds a choice to the field's list. A label or key that another choice has is a 409 `duplicate_value`.
#[operation(post "/collections/{collectionId}/fields/{fieldId}/options", scope = "collections:write")]
pub async fn create_field_option(
    cx: &Cx,
    Path(collection_id): Path<CollectionId>,
    Path(field_id): Path<FieldId>,
    Body(new): Body<NewFieldOption>,
    State(shapes): State<Shapes>,
) -> Result<Created<FieldOption>> {
    let label = new.label.trim().to_owned();
    let change =
        FieldTarget { collection: collection_id, field: field_id, expected: ExpectedVersion::default() };
    let field = run(cx, &shapes, change, move |field| {
        let mut choices = choices_of(field)?;
        if choices.len() >= MOST_CHOICES {
            return Err(Error::new(
                Code::LimitReached,
                format!("A field has at most {MOST_CHOICES} choices."),
            ));
        }
        if let Some(key) = &new.key {
            refuse_taken(&choices, "key", "key", |choice| choice.key == *key)?;
        }
        refuse_taken(&choices, "label", "label", is_called(&label))?;
        let fresh = Choice {
            id: OptionId(0),
            key: new.key.clone().unwrap_or_default(),
            label: label.clone(),
            color: new.color.clone(),
            archived: false,
        };
        let place = new.position.unwrap_or(choices.len()).min(choices.len());
        choices.insert(place, fresh);
        Ok(patch_of(&choices, false))
    })
    .await?;
    let made = field.options.choices().iter().max_by_key(|choice| choice.id).map(|choice| choice.id);
    option_of(&field, made).map(Created)
}

/// Rename or recolour a choice
///
/// Changes the label, colour or position of a choice, or archives it. Its key, which items store, does not change.
#[operation(patch "/collections/{collectionId}/fields/{fieldId}/options/{optionId}", scope = "collections:write")]
pub async fn update_field_option(
    cx: &Cx,
    Path(collection_id): Path<CollectionId>,
    Path(field_id): Path<FieldId>,
    Path(option_id): Path<OptionId>,
    Body(patch): Body<FieldOptionPatch>,
    State(shapes): State<Shapes>,
) -> Result<Json<FieldOption>> {
    let change =
        FieldTarget { collection: collection_id, field: field_id, expected: ExpectedVersion::default() };
    let field = run(cx, &shapes, change, move |field| {
        let mut choices = choices_of(field)?;
        let place = place_of(&choices, option_id)?;
        let mut choice = choices.remove(place);
        if let Some(label) = &patch.label {
            refuse_taken(&choices, "label", "label", is_called(label))?;
            label.trim().clone_into(&mut choice.label);
        }
        patch.color.clone().apply(&mut choice.color);
        choice.archived = patch.archived.unwrap_or(choice.archived);
        let place = patch.position.unwrap_or(place).min(choices.len());
        choices.insert(place, choice);
        Ok(patch_of(&choices, false))
    })
    .await?;
    option_of(&field, Some(option_id)).map(Json)
}

/// Remove a choice
///
/// A choice that items use is a 409 `resource_in_use`. With `force=true` it is removed from those items.
#[operation(delete "/collections/{collectionId}/fields/{fieldId}/options/{optionId}", scope = "collections:write")]
pub async fn delete_field_option(
    cx: &Cx,
    Path(collection_id): Path<CollectionId>,
    Path(field_id): Path<FieldId>,
    Path(option_id): Path<OptionId>,
    Query(query): Query<ForceQuery>,
    State(shapes): State<Shapes>,
) -> Result<Deleted<FieldOption>> {
    let change =
        FieldTarget { collection: collection_id, field: field_id, expected: ExpectedVersion::default() };
    run(cx, &shapes, change, move |field| {
        let mut choices = choices_of(field)?;
        let place = place_of(&choices, option_id)?;
        choices.remove(place);
        Ok(patch_of(&choices, query.force == Some(true)))
    })
    .await?;
    Ok(Deleted::of("field_option", option_id))
}

fn choices_of(field: &Field) -> Result<Vec<Choice>> {
    if matches!(field.kind, FieldType::Select | FieldType::MultiSelect) {
        return Ok(field.options.choices().to_vec());
    }
    Err(Error::new(Code::InvalidState, "Only `select` and `multi_select` fields have choices.")
        .with("details", serde_json::json!({ "type": field.kind })))
}

fn place_of(choices: &[Choice], id: OptionId) -> Result<usize> {
    choices.iter().position(|choice| choice.id == id).ok_or_else(|| Error::not_found("option"))
}

fn is_called(label: &str) -> impl Fn(&Choice) -> bool + use<> {
    let wanted = fields::text::fold(label.trim());
    move |choice| fields::text::fold(&choice.label) == wanted
}

/// Checks that no other choice is the same in this respect.
///
/// # Errors
/// `duplicate_value`.
fn refuse_taken(
    choices: &[Choice],
    param: &str,
    what: &str,
    is_same: impl Fn(&Choice) -> bool,
) -> Result<()> {
    choices.iter().find(|choice| is_same(choice)).map_or(Ok(()), |holder| {
        Err(Error::duplicate(param, format!("Another choice of the field has this {what}."), holder.id))
    })
}

fn patch_of(choices: &[Choice], force: bool) -> FieldPatch {
    let choices = serde_json::to_value(choices).unwrap_or(Value::Null);
    let options = Map::from_iter([("choices".to_owned(), choices)]);
    FieldPatch { options: Some(options), force, ..FieldPatch::default() }
}

fn option_of(field: &CollectionField, id: Option<OptionId>) -> Result<FieldOption> {
    let found = field.options.choices().iter().enumerate().find(|(_, choice)| Some(choice.id) == id);
    let (position, choice) = found.ok_or_else(|| Error::not_found("option"))?;
    Ok(FieldOption {
        id: choice.id,
        object: "field_option",
        field_id: field.id,
        key: choice.key.clone(),
        label: choice.label.clone(),
        color: choice.color.clone(),
        position,
        archived: choice.archived,
    })
}
