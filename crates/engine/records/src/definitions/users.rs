//! What needs a field: told before it is deleted or changed, so that somebody can decide.

use crate::schema::{collection_fields, collections};
use crate::shape::Shape;
use diesel::prelude::*;
use fields::formula::Formula;
use fields::{Field, FieldOptions, FieldType};
use model::{CollectionId, FieldId, Result};
use serde_json::{Value, json};
use store::Tx;

/// The computed fields that look at a field, in all collections of the workspace.
pub fn computed(tx: &mut Tx, shape: &Shape, field: &Field) -> Result<Vec<Value>> {
    let mut users = Vec::new();
    for other in shape.fields.iter().filter(|other| reads(other, &field.key)) {
        users.push(entry(other.id, shape.collection, &other.key, other.kind));
    }
    // Those that look from other collections, over a relation that points here.
    for row in lookers(tx, shape)? {
        let Some(kind) = FieldType::parse(&row.kind) else { continue };
        let options: FieldOptions = row.options.parse()?;
        if options.field.as_deref() != Some(&field.key) {
            continue;
        }
        let target = target_of(tx, row.collection_id, options.relation.as_deref())?;
        if target == Some(shape.collection) {
            users.push(entry(row.id, row.collection_id, &row.field_key, kind));
        }
    }
    Ok(users)
}

/// All that needs a field.
pub fn all(tx: &mut Tx, shape: &Shape, field: &Field) -> Result<Vec<Value>> {
    let mut users = computed(tx, shape, field)?;
    for keys in shape.settings.unique_keys.iter().filter(|keys| keys.contains(&field.key)) {
        users.push(json!({ "object": "unique_key", "fields": keys }));
    }
    if let (Some(id), Some(target)) = (field.options.reverse_field_id, field.options.target_collection_id) {
        users.push(json!({
            "object": "field", "id": id, "collection_id": target, "why": "the other end of the relation",
        }));
    }
    Ok(users)
}

fn entry(id: FieldId, collection: CollectionId, key: &str, kind: FieldType) -> Value {
    json!({ "object": "field", "id": id, "collection_id": collection, "field_key": key, "why": kind.as_str() })
}

/// Whether a field of the same collection is computed from the field with this key.
fn reads(other: &Field, key: &str) -> bool {
    match other.kind {
        FieldType::Formula => other
            .options
            .expression
            .as_deref()
            .and_then(|text| Formula::parse(text).ok())
            .is_some_and(|formula| formula.fields().contains(key)),
        FieldType::Rollup | FieldType::Lookup => other.options.relation.as_deref() == Some(key),
        _ => false,
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = collection_fields)]
struct Looker {
    id: FieldId,
    collection_id: CollectionId,
    field_key: String,
    kind: String,
    options: model::JsonText,
}

/// The rollups and lookups of live collections.
fn lookers(tx: &mut Tx, shape: &Shape) -> Result<Vec<Looker>> {
    Ok(collection_fields::table
        .inner_join(collections::table.on(collections::id.eq(collection_fields::collection_id)))
        .filter(collections::workspace_id.eq(shape.workspace))
        .filter(collections::trashed_at.is_null())
        .filter(collection_fields::trashed_at.is_null())
        .filter(collection_fields::kind.eq_any([FieldType::Rollup.as_str(), FieldType::Lookup.as_str()]))
        .order(collection_fields::id)
        .select(Looker::as_select())
        .load(tx.connection())?)
}

fn target_of(tx: &mut Tx, collection: CollectionId, relation: Option<&str>) -> Result<Option<CollectionId>> {
    let Some(relation) = relation else { return Ok(None) };
    let options: Option<model::JsonText> = collection_fields::table
        .filter(collection_fields::collection_id.eq(collection))
        .filter(collection_fields::field_key.eq(relation))
        .filter(collection_fields::trashed_at.is_null())
        .select(collection_fields::options)
        .get_result(tx.connection())
        .optional()?;
    Ok(options
        .map(|text| text.parse::<FieldOptions>())
        .transpose()?
        .and_then(|options| options.target_collection_id))
}

/// The relation fields of other live collections that point to this one.
pub fn pointing_here(tx: &mut Tx, shape: &Shape) -> Result<Vec<Value>> {
    let rows: Vec<Looker> = collection_fields::table
        .inner_join(collections::table.on(collections::id.eq(collection_fields::collection_id)))
        .filter(collections::workspace_id.eq(shape.workspace))
        .filter(collections::id.ne(shape.collection))
        .filter(collections::trashed_at.is_null())
        .filter(collection_fields::trashed_at.is_null())
        .filter(collection_fields::kind.eq(FieldType::Relation.as_str()))
        .order(collection_fields::id)
        .select(Looker::as_select())
        .load(tx.connection())?;
    let mut found = Vec::new();
    for row in rows {
        let options: FieldOptions = row.options.parse()?;
        if options.target_collection_id == Some(shape.collection) {
            found.push(entry(row.id, row.collection_id, &row.field_key, FieldType::Relation));
        }
    }
    Ok(found)
}
