//! The JSON Schema of a collection's items, with annotations on how values compare.

use super::queries;
use fields::decimal::MOST_INTEGER;
use fields::filter::Op;
use fields::{Cardinality, Family, Field, FieldOptions, FieldType};
use model::{Caller, CollectionId, Result};
use operation::{Json, Path, State, operation};
use records::shape::{self, Shape, Shapes};
use serde::Serialize;
use serde_json::{Map, Number, Value, json};
use store::Read;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A JSON Schema (2020-12) of the `data` of items.
#[derive(Debug, Clone, Serialize)]
pub struct ItemSchema(Value);

impl PartialSchema for ItemSchema {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .description(Some("A JSON Schema (2020-12) of the `data` of items."))
            .examples([json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Products", "type": "object",
                "properties": { "name": { "type": "string", "title": "Name", "x-svc-type": "text", "x-svc-field-id": 1 } },
                "required": ["name"], "additionalProperties": false,
            })])
            .into()
    }
}

impl ToSchema for ItemSchema {}

/// The collection's item shape as JSON Schema
///
/// Returns a JSON Schema (2020-12) of the `data` of an item, made from the collection's fields. `x-svc-type` is the
/// type of a field; `x-svc-compare` states how its values are compared and ordered, and which filter operators it
/// supports.
#[operation(get "/collections/{collectionId}/schema", scope = "collections:read")]
pub fn get_collection_schema(
    read: &mut Read,
    caller: &Caller,
    Path(collection_id): Path<CollectionId>,
    shapes: State<Shapes>,
) -> Result<Json<ItemSchema>> {
    let row = queries::find(read, caller.workspace_id(), collection_id)?;
    let shape = shape::for_read(read, &shapes.0, caller.workspace_id(), collection_id)?;
    Ok(Json(ItemSchema(schema_of(&shape, &row.name, row.description.as_deref()))))
}

fn schema_of(shape: &Shape, name: &str, description: Option<&str>) -> Value {
    let properties: Map<String, Value> =
        shape.fields.iter().map(|field| (field.key.clone(), property(field))).collect();
    let required: Vec<&str> =
        shape.fields.iter().filter(|field| field.is_demanded()).map(|field| field.key.as_str()).collect();
    let mut unique: Vec<Vec<&str>> =
        shape.fields.iter().filter(|field| field.unique).map(|field| vec![field.key.as_str()]).collect();
    for keys in &shape.settings.unique_keys {
        unique.push(keys.iter().map(String::as_str).collect());
    }
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
        "x-svc-collection-id": shape.collection,
        "x-svc-primary-field": shape.primary().map(|field| &field.key),
        "x-svc-unique": unique,
    });
    if let (Some(text), Some(object)) = (description, schema.as_object_mut()) {
        object.insert("description".to_owned(), text.into());
    }
    schema
}

fn property(field: &Field) -> Value {
    let kind = field.options.result_type.filter(|_| field.kind.is_computed()).unwrap_or(field.kind);
    let mut schema = value_schema(field, kind);
    let mut set = |name: &str, value: Value| {
        schema.insert(name.to_owned(), value);
    };
    set("title", field.label.clone().into());
    if let Some(text) = &field.description {
        set("description", text.clone().into());
    }
    if let Some(value) = &field.default {
        set("default", value.clone());
    }
    if field.kind.is_read_only() {
        set("readOnly", true.into());
    }
    if field.archived {
        set("deprecated", true.into());
    }
    set("x-svc-type", field.kind.as_str().into());
    set("x-svc-field-id", json!(field.id));
    set("x-svc-compare", comparison(field.family()));
    Value::Object(schema)
}

/// Returns the JSON Schema for values of a type.
fn value_schema(field: &Field, kind: FieldType) -> Map<String, Value> {
    let options = &field.options;
    let formatted = |format: &str| {
        Map::from_iter([("type".to_owned(), json!("string")), ("format".to_owned(), json!(format))])
    };
    match kind {
        FieldType::Text | FieldType::Email | FieldType::Url | FieldType::Phone => text_schema(field, 1_000),
        FieldType::LongText => text_schema(field, 100_000),
        FieldType::Number | FieldType::Currency | FieldType::Percent | FieldType::Duration => {
            number_schema(options)
        }
        FieldType::Rating => {
            let mut schema = Map::from_iter([("type".to_owned(), json!("integer"))]);
            limits(&mut schema, Some(&0.into()), Some(options.max.as_ref().unwrap_or(&5.into())));
            schema
        }
        FieldType::Integer | FieldType::AutoNumber => integer_schema(options),
        FieldType::Boolean => Map::from_iter([("type".to_owned(), json!("boolean"))]),
        FieldType::Date => formatted("date"),
        FieldType::Datetime | FieldType::CreatedAt | FieldType::UpdatedAt => formatted("date-time"),
        FieldType::Time => Map::from_iter([
            ("type".to_owned(), json!("string")),
            ("pattern".to_owned(), json!("^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$")),
        ]),
        FieldType::Select => choices(field),
        FieldType::MultiSelect => {
            list(Value::Object(choices(field)), options.choices().len().try_into().unwrap_or(200))
        }
        FieldType::Tags => list(json!({ "type": "string", "minLength": 1, "maxLength": 60 }), 100),
        FieldType::Relation => {
            let most = if options.cardinality() == Cardinality::One { 1 } else { 25 };
            let mut schema = list(json!({ "type": "integer", "minimum": 1 }), most);
            schema.insert("x-svc-target-collection-id".to_owned(), json!(options.target_collection_id));
            schema
        }
        FieldType::Contact | FieldType::User | FieldType::File => {
            list(json!({ "type": "integer", "minimum": 1 }), options.max_items.unwrap_or(100))
        }
        FieldType::CreatedBy => Map::from_iter([("type".to_owned(), json!("string"))]),
        FieldType::Json => match &options.json_schema {
            // A nested `allOf` keeps the field's own schema apart, because it may contain `$defs`.
            Some(schema) => Map::from_iter([("allOf".to_owned(), json!([schema]))]),
            None => Map::new(),
        },
        FieldType::Formula | FieldType::Rollup | FieldType::Lookup => Map::new(),
    }
}

fn text_schema(field: &Field, longest: i64) -> Map<String, Value> {
    let options = &field.options;
    let mut schema = Map::from_iter([
        ("type".to_owned(), json!("string")),
        ("maxLength".to_owned(), json!(options.max_length.unwrap_or(longest))),
    ]);
    let demanded = field.is_demanded();
    if let Some(pattern) = &options.pattern {
        let or_empty = if demanded { "" } else { "?" };
        schema.insert("pattern".to_owned(), format!("^(?:{pattern}){or_empty}$").into());
    }
    if demanded {
        // White space alone is no value, even if the field's own pattern accepts it.
        schema.insert("allOf".to_owned(), json!([{ "pattern": r"\S" }]));
    }
    schema
}

fn number_schema(options: &FieldOptions) -> Map<String, Value> {
    let mut schema = Map::from_iter([("type".to_owned(), json!("number"))]);
    limits(&mut schema, options.min.as_ref(), options.max.as_ref());
    if let Some(places) = options.precision {
        schema.insert("x-svc-precision".to_owned(), places.into());
    }
    if let Some(currency) = &options.currency {
        schema.insert("x-svc-currency".to_owned(), currency.clone().into());
    }
    schema
}

fn integer_schema(options: &FieldOptions) -> Map<String, Value> {
    let mut schema = Map::from_iter([
        ("type".to_owned(), json!("integer")),
        ("minimum".to_owned(), json!(-MOST_INTEGER)),
        ("maximum".to_owned(), json!(MOST_INTEGER)),
    ]);
    limits(&mut schema, options.min.as_ref(), options.max.as_ref());
    schema
}

fn limits(schema: &mut Map<String, Value>, min: Option<&Number>, max: Option<&Number>) {
    for (name, limit) in [("minimum", min), ("maximum", max)] {
        if let Some(limit) = limit {
            schema.insert(name.to_owned(), limit.clone().into());
        }
    }
}

fn list(items: Value, most: i64) -> Map<String, Value> {
    Map::from_iter([
        ("type".to_owned(), json!("array")),
        ("items".to_owned(), items),
        ("uniqueItems".to_owned(), json!(true)),
        ("minItems".to_owned(), json!(1)),
        ("maxItems".to_owned(), json!(most.max(1))),
    ])
}

fn choices(field: &Field) -> Map<String, Value> {
    let keys: Vec<&str> = field.options.choices().iter().map(|choice| choice.key.as_str()).collect();
    let labels: Vec<&str> = field.options.choices().iter().map(|choice| choice.label.as_str()).collect();
    let mut schema = Map::from_iter([("type".to_owned(), json!("string"))]);
    // An empty `enum` would match nothing, and some drafts of JSON Schema forbid it.
    if !keys.is_empty() {
        schema.insert("enum".to_owned(), json!(keys));
        schema.insert("x-svc-enum-labels".to_owned(), json!(labels));
    }
    schema
}

/// Describes the comparison of values in words (see docs/data.md).
fn comparison(family: Family) -> Value {
    let (equality, order) = match family {
        Family::Text => (
            "same code points after Unicode NFC",
            Some(
                "folded form (NFKC, lower case, accents kept), then code points; the first 256 bytes decide",
            ),
        ),
        Family::Number => ("same decimal value", Some("by value")),
        Family::Boolean => ("same value", Some("false before true")),
        Family::Date => ("same day", Some("by the calendar")),
        Family::Datetime => ("same instant", Some("by instant")),
        Family::Time => ("same time of day", Some("by the clock")),
        Family::Select => ("same choice", Some("by the place of the choice in the list")),
        Family::Choices | Family::Ids => ("contains the element", None),
        Family::Json => ("same JSON, whatever the order of its keys", None),
    };
    let operators: Vec<&str> = Op::ALL.into_iter().filter(|op| op.fits(family)).map(Op::as_str).collect();
    json!({ "equality": equality, "order": order, "nulls": "last", "operators": operators })
}
