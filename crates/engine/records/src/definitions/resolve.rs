//! What a field needs of other fields and collections: the target of a relation, what a computed field looks at.

use super::define::{Definition, define, insert};
use super::events::{FieldData, FieldEvent};
use super::model::{CollectionField, NewField};
use crate::Author;
use crate::compute::{self, Candidate};
use crate::publish::{added, publish};
use crate::schema::{collection_fields, collections};
use crate::shape::{self, FieldRow, Shape, Shapes};
use diesel::prelude::*;
use fields::Problem;
use fields::{Cardinality, FieldOptions, FieldType};
use model::{Code, CollectionId, Error, FieldId, Result};
use std::sync::Arc;
use store::{Read, Tx};

/// The most fields of a collection.
pub(crate) const MOST_FIELDS: i64 = 500;

/// Checks what a definition says of other things, each mistake below `path`, and completes it.
///
/// # Errors
/// `validation_error`.
pub fn resolve(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    shape: &Arc<Shape>,
    definition: &mut Definition,
    path: &str,
) -> Result<()> {
    if definition.kind == FieldType::Relation {
        return expect_target(tx, author, definition, path);
    }
    if definition.kind.is_computed() {
        return compute(tx, shapes, shape, definition, path);
    }
    Ok(())
}

/// Whether what a computed field computes can be computed, and of which type it is.
fn compute(
    tx: &mut Tx,
    shapes: &Shapes,
    shape: &Arc<Shape>,
    definition: &mut Definition,
    path: &str,
) -> Result<()> {
    let candidate = Candidate { key: &definition.key, kind: definition.kind, options: &definition.options };
    let problem = match compute::check(tx, shapes, shape, candidate)? {
        Ok(Some(result)) => {
            definition.options.result_type = Some(result);
            definition.options.result_error = None;
            return Ok(());
        }
        Ok(None) => Problem::new("unsupported", format!("cannot be `{}` here", definition.kind.as_str())),
        Err(problem) => problem,
    };
    let place = match (problem.code, definition.kind) {
        ("unsupported", _) => "type",
        (_, FieldType::Formula) => "options.expression",
        ("invalid_field", _) => "options.field",
        ("invalid_aggregate", _) => "options.aggregate",
        _ => "options.relation",
    };
    Err(Error::all_invalid(vec![problem.at(format!("{path}{place}"))])
        .unwrap_or_else(|| Error::internal("one mistake is none")))
}

fn expect_target(tx: &mut Tx, author: &Author, definition: &Definition, path: &str) -> Result<()> {
    let param = format!("{path}options.target_collection_id");
    let Some(target) = definition.options.target_collection_id else {
        return Err(Error::invalid(param, "is required"));
    };
    let there: Option<CollectionId> = collections::table
        .filter(collections::id.eq(target))
        // Sets of other kinds are no collections.
        .filter(collections::id.gt(CollectionId(0)))
        .filter(collections::workspace_id.eq(author.workspace))
        .filter(collections::trashed_at.is_null())
        .select(collections::id)
        .get_result(tx.connection())
        .optional()?;
    there.map_or_else(|| Err(Error::invalid(param, "is not a collection of this workspace")), |_| Ok(()))
}

/// Makes the field that points back, where a new relation field asks for one.
///
/// # Errors
/// `validation_error` at `options.reverse_field_key`, `duplicate_value`, `limit_reached`.
pub fn mirror(tx: &mut Tx, shapes: &Shapes, author: &Author, row: &FieldRow) -> Result<()> {
    let mut options: FieldOptions = row.options.parse()?;
    let (Some(key), Some(target)) = (options.reverse_field_key.take(), options.target_collection_id) else {
        return Ok(());
    };
    let param = "options.reverse_field_key";
    // Locked already, with the collection of the field ([`FieldOptions::mirrored_in`]).
    let held = shape::for_change(tx, author.workspace, target)?;
    held.refuse_archived()?;
    let shape = shape::within_change(tx, shapes, author.workspace, target)?;
    refuse_taken_key(tx, target, &key, param)?;
    refuse_many(&shape, 1)?;
    let new = NewField {
        field_key: Some(key),
        label: None,
        kind: FieldType::Relation,
        description: None,
        required: false,
        unique: false,
        default: None,
        options: Some(FieldOptions {
            target_collection_id: Some(row.collection_id),
            cardinality: Some(Cardinality::Many),
            ..FieldOptions::default()
        }),
    };
    let mut back = define(new, |_| false, "").map_err(|mistakes| {
        let rule = mistakes.into_iter().next().map(|mistake| mistake.message).unwrap_or_default();
        Error::invalid(param, rule)
    })?;
    back.options.reverse_field_id = Some(row.id);
    let position = next_position(&shape);
    let made = insert(tx, author.workspace, target, &back, position)?;
    options.reverse_field_id = Some(made.id);
    set_options(tx, row.id, &options)?;
    shape::bump(tx, target)?;
    publish_new(tx, shapes, author, target, made.id)
}

fn set_options(tx: &mut Tx, id: FieldId, options: &FieldOptions) -> Result<()> {
    diesel::update(collection_fields::table.find(id))
        .set(collection_fields::options.eq(model::JsonText::of(options)))
        .execute(tx.connection())?;
    Ok(())
}

/// The event and the activity of a field that was just created.
pub(crate) fn publish_new(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    collection: CollectionId,
    id: FieldId,
) -> Result<()> {
    let shape = shape::within_change(tx, shapes, author.workspace, collection)?;
    let Some(field) = shape.field_by_id(id) else { return Ok(()) };
    let path = format!("fields.{}", field.key);
    let field = CollectionField::of(&shape, field, None);
    let event = FieldEvent::Created(FieldData { field: &field, collection_id: collection });
    publish(tx, author, collection, &added(&path, &field)?, &event)
}

/// Where the next field goes.
pub fn next_position(shape: &Shape) -> i64 {
    shape.fields.iter().map(|field| field.position + 1).max().unwrap_or(0)
}

/// # Errors
/// `duplicate_value` where another field has this key, also one whose values are still being taken out of items.
pub(crate) fn refuse_taken_key(
    read: &mut Read,
    collection: CollectionId,
    key: &str,
    param: &str,
) -> Result<()> {
    let holder: Option<FieldId> = collection_fields::table
        .filter(collection_fields::collection_id.eq(collection))
        .filter(collection_fields::field_key.eq(key))
        .select(collection_fields::id)
        .get_result(read.connection())
        .optional()?;
    match holder {
        None => Ok(()),
        Some(holder) => Err(Error::duplicate(param, "Another field has this key.", holder)),
    }
}

/// # Errors
/// `limit_reached`.
pub fn refuse_many(shape: &Shape, more: i64) -> Result<()> {
    let there = shape.fields.iter().filter(|field| !field.is_built_in()).count();
    if i64::try_from(there).unwrap_or(i64::MAX) + more > MOST_FIELDS {
        return Err(Error::new(
            Code::LimitReached,
            format!("A {} has at most {MOST_FIELDS} fields.", shape.kind.set_noun),
        ));
    }
    Ok(())
}

/// The keys that fields of a collection have, also of those that are on their way out.
pub fn has_key(shape: &Shape, key: &str) -> bool {
    shape.column(key).is_some() || shape.field(key).is_some() || shape.leaving.iter().any(|gone| gone == key)
}
