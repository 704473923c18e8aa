//! Deleting a field, and finding out what would miss it.

use super::define;
use super::dependents::{self, Source};
use super::events::{FieldData, FieldEvent};
use super::model::CollectionField;
use super::rewrite::{self, Begun, RewritePlan, Step};
use super::users;
use crate::Author;
use crate::indexes::table;
use crate::indexes::uniques;
use crate::publish::{publish, removed};
use crate::schema::{collection_fields, collections};
use crate::shape::{self, CollectionSettings, Shape, Shapes};
use diesel::prelude::*;
use fields::Field;
use model::{Code, CollectionId, Error, FieldId, JsonText, Result};
use serde_json::{Value, json};
use store::Tx;

/// Deletes a field with its values, and gives the work that follows. `other_users` are what else would miss it, such as
/// views.
///
/// # Errors
/// `not_found`, `invalid_state`; `field_in_use` unless `force`.
pub fn delete(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    collection: CollectionId,
    id: FieldId,
    force: bool,
    other_users: impl FnOnce(&mut Tx, &Shape) -> Result<Vec<Value>>,
) -> Result<Vec<Begun>> {
    let before = shape::within_change(tx, shapes, author.workspace, collection)?;
    let gone = gone(tx, shapes, author, &before, id)?;
    let mut locked = dependents::collections_of(tx, author.workspace, &gone)?;
    locked.extend(gone.iter().map(|(collection, _)| *collection).chain([collection]));
    shape::lock_for_change(tx, author.workspace, locked.iter().copied())?;
    let row = shape::for_change(tx, author.workspace, collection)?;
    row.refuse_archived()?;
    let shape = shape::within_change(tx, shapes, author.workspace, collection)?;
    let field = shape.field_by_id(id).ok_or_else(|| Error::not_found("field"))?;
    let mut users = users::all(tx, &shape, field)?;
    users.extend(other_users(tx, &shape)?);
    if !users.is_empty() && !force {
        let message = format!(
            "`{}` is used by {} other objects. Send `force=true` to delete it anyway.",
            field.key,
            users.len()
        );
        return Err(Error::new(Code::FieldInUse, message).with("details", json!({ "used_by": users })));
    }
    let mut begun = Vec::new();
    begun.extend(take_out(tx, shapes, author, &shape, field)?);
    if let (Some(other), Some(target)) = (field.options.reverse_field_id, field.options.target_collection_id)
    {
        begun.extend(take_out_mirror(tx, shapes, author, target, other)?);
    }
    begun.extend(dependents::follow(tx, shapes, author, gone, &locked)?);
    Ok(begun)
}

/// A field and the other end of its relation: what goes together.
fn gone(tx: &mut Tx, shapes: &Shapes, author: &Author, shape: &Shape, id: FieldId) -> Result<Vec<Source>> {
    let Some(field) = shape.field_by_id(id) else { return Ok(Vec::new()) };
    let mut gone = vec![(shape.collection, field.key.clone())];
    let options = &field.options;
    if let (Some(other), Some(target)) = (options.reverse_field_id, options.target_collection_id) {
        match shape::within_change(tx, shapes, author.workspace, target) {
            Err(error) if error.code() == Code::NotFound => {}
            shape => gone.extend(shape?.field_by_id(other).map(|field| (target, field.key.clone()))),
        }
    }
    Ok(gone)
}

/// The other end of a relation goes with it: its values were the same links.
fn take_out_mirror(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    target: CollectionId,
    id: FieldId,
) -> Result<Option<Begun>> {
    match shape::for_change(tx, author.workspace, target) {
        Err(error) if error.code() == Code::NotFound => return Ok(None),
        other => other?,
    };
    let shape = shape::within_change(tx, shapes, author.workspace, target)?;
    match shape.field_by_id(id) {
        Some(field) => take_out(tx, shapes, author, &shape, field),
        None => Ok(None),
    }
}

fn take_out(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    shape: &Shape,
    field: &Field,
) -> Result<Option<Begun>> {
    let (collection, now) = (shape.collection, tx.now());
    let gone = CollectionField::of(shape, field, None);
    diesel::update(collection_fields::table.find(field.id))
        .set(collection_fields::trashed_at.eq(now))
        .execute(tx.connection())?;
    table::drop_of_field(tx, collection, field.id)?;
    forget_in_settings(tx, shape, field)?;
    let was_primary = shape.primary == Some(field.id);
    if was_primary {
        let others: Option<FieldId> = define::first_primary_but(&shape.fields, field.id);
        diesel::update(collections::table.find(collection))
            .set(collections::primary_field_id.eq(others))
            .execute(tx.connection())?;
    }
    shape::bump(tx, collection)?;
    let mut after = shape::within_change(tx, shapes, author.workspace, collection)?;
    if uniques::settle(tx, &after, &[])? {
        shape::bump(tx, collection)?;
        after = shape::within_change(tx, shapes, author.workspace, collection)?;
    }
    let plan = RewritePlan {
        steps: vec![Step::Remove { key: field.key.clone() }],
        search: field.kind.is_searchable(),
        titles: was_primary,
        ..RewritePlan::default()
    };
    let begun = rewrite::begin(tx, &after, Some(field.id), &plan)?;
    let path = format!("fields.{}", field.key);
    let event = FieldEvent::Deleted(FieldData { field: &gone, collection_id: collection });
    publish(tx, author, collection, &removed(&path, &gone)?, &event)?;
    Ok(begun)
}

/// Unique keys without the field would say something else, so they go.
fn forget_in_settings(tx: &mut Tx, shape: &Shape, field: &Field) -> Result<()> {
    let mut settings: CollectionSettings = shape.settings.clone();
    let before = settings.unique_keys.len();
    settings.unique_keys.retain(|keys| !keys.contains(&field.key));
    if settings.unique_keys.len() < before {
        diesel::update(collections::table.find(shape.collection))
            .set((
                collections::settings.eq(JsonText::of(&settings)),
                collections::version.eq(collections::version + 1),
            ))
            .execute(tx.connection())?;
    }
    Ok(())
}
