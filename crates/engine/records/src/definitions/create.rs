//! Creating a field, whoever asks for it.

use super::define::{Definition, define, insert};
use super::dependents::{self, Source};
use super::model::NewField;
use super::resolve::{has_key, mirror, next_position, publish_new, refuse_many, refuse_taken_key, resolve};
use super::rewrite::{self, Begun, RewritePlan, Step};
use crate::Author;
use crate::count;
use crate::indexes::uniques;

use crate::schema::collections;
use crate::shape;
use crate::shape::{FieldRow, Shape, Shapes};
use diesel::prelude::*;
use fields::{FieldOptions, FieldType};
use model::{Code, CollectionId, Error, FieldId, Result};
use serde_json::json;
use store::Tx;

/// Creates a field and publishes it; gives with it what items that are there already still lack
/// ([`rewrite::finish_all_soon`]).
///
/// # Errors
/// `validation_error`, `duplicate_value`, `limit_reached`, `not_found`, and `invalid_state` for an archived collection.
pub fn create(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    collection: CollectionId,
    new: NewField,
) -> Result<(FieldId, Vec<Begun>)> {
    let mut come = coming(tx, shapes, author, collection, &new)?;
    let mut locked = dependents::collections_of(tx, author.workspace, &come)?;
    locked.extend(new.options.as_ref().and_then(FieldOptions::mirrored_in).into_iter().chain([collection]));
    shape::lock_for_change(tx, author.workspace, locked.iter().copied())?;
    let row = shape::for_change(tx, author.workspace, collection)?;
    row.refuse_archived()?;
    let shape = shape::within_change(tx, shapes, author.workspace, collection)?;
    refuse_many(&shape, 1)?;
    if let Some(key) = &new.field_key {
        if key == shape.kind.external_key {
            return Err(Error::invalid("field_key", format_args!("must not be `{key}`, which is reserved")));
        }
        refuse_taken_key(tx, collection, key, "field_key")?;
    }
    let mut definition = define(new, |key| has_key(&shape, key), "")
        .map_err(|mistakes| Error::all_invalid(mistakes).unwrap_or_else(|| Error::internal("no mistakes")))?;
    resolve(tx, shapes, author, &shape, &mut definition, "")?;
    let fill = filling(tx, &definition, &shape)?;
    let made = insert(tx, author.workspace, collection, &definition, next_position(&shape))?;
    if shape.primary.is_none() {
        adopt_primary(tx, collection, &made)?;
    }
    shape::bump(tx, collection)?;
    mirror(tx, shapes, author, &made)?;
    let mut shape = shape::within_change(tx, shapes, author.workspace, collection)?;
    if uniques::settle(tx, &shape, &[])? {
        shape::bump(tx, collection)?;
        shape = shape::within_change(tx, shapes, author.workspace, collection)?;
    }
    let mut begun: Vec<Begun> = rewrite::begin(tx, &shape, Some(made.id), &fill)?.into_iter().collect();
    publish_new(tx, shapes, author, collection, made.id)?;
    // Computed fields may have missed a field of this key.
    come.push((collection, made.field_key));
    begun.extend(dependents::follow(tx, shapes, author, come, &locked)?);
    Ok((made.id, begun))
}

/// The keys that a new field and the other end of its relation get, as far as they can be told before the collection is
/// locked.
fn coming(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    collection: CollectionId,
    new: &NewField,
) -> Result<Vec<Source>> {
    let shape = shape::within_change(tx, shapes, author.workspace, collection)?;
    let defined = define(new.clone(), |key| has_key(&shape, key), "");
    let mut come: Vec<Source> =
        defined.ok().map(|definition| (collection, definition.key)).into_iter().collect();
    if let Some(options) = &new.options {
        come.extend(options.mirrored_in().zip(options.reverse_field_key.clone()));
    }
    Ok(come)
}

/// What a new field gives to items that are there already: the default of a required one, and what the service sets.
fn filling(tx: &mut Tx, definition: &Definition, shape: &Shape) -> Result<RewritePlan> {
    let mut plan = RewritePlan::default();
    match (&definition.default, definition.required) {
        (Some(value), true) => {
            plan.steps.push(Step::Fill { key: definition.key.clone(), value: value.clone() });
        }
        (None, true) => {
            let items = count::all_up_to(tx, shape.collection, count::EXACT)?;
            if items > 0 {
                return Err(lacking(shape, items));
            }
        }
        _ => {}
    }
    plan.sets = definition.kind.is_read_only();
    Ok(plan)
}

/// Records have no value where one is required now.
pub fn lacking(shape: &Shape, items: i64) -> Error {
    let message = format!("{items} {}s have no value. Set a default for them.", shape.kind.noun);
    Error::new(Code::InvalidState, message).param("required").with("details", json!({ "count": items }))
}

fn adopt_primary(tx: &mut Tx, collection: CollectionId, made: &FieldRow) -> Result<()> {
    let fits = FieldType::parse(&made.kind).is_some_and(super::can_be_primary);
    if fits {
        diesel::update(collections::table.find(collection))
            .set(collections::primary_field_id.eq(made.id))
            .execute(tx.connection())?;
    }
    Ok(())
}
