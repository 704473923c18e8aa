//! Creates collections with their fields.

use super::events::{CollectionData, CollectionEvent};
use super::model::{Collection, NewCollection};
use super::{groups, queries};
use diesel::prelude::*;
use fields::FieldType;
use fields::text;
use model::{CollectionId, Error, FieldError, JsonText, Result};
use records::Author;
use records::count::ItemCount;
use records::definitions::{self, Definition, NewField};
use records::indexes::uniques;
use records::publish::{added, publish};
use records::schema::collections;
use records::shape::{self, CollectionRow, CollectionSettings, CollectionStatus, Shapes};
use std::collections::BTreeSet;
use store::{LockLevel, Tx};

/// Creates a collection with its fields.
///
/// # Errors
/// `validation_error`, `duplicate_value`, `limit_reached`.
pub fn create(tx: &mut Tx, shapes: &Shapes, author: &Author, new: NewCollection) -> Result<Collection> {
    let definitions = defined(new.fields)?;
    let mut settings = CollectionSettings::default();
    if let Some(patch) = new.settings {
        patch.apply(&mut settings);
    }
    let workspace = author.workspace;
    queries::lock_names(tx, workspace)?;
    let name = new.name.trim();
    queries::refuse_taken_name(tx, workspace, name, None)?;
    let slug = match new.slug {
        Some(slug) => slug,
        None => queries::free_slug(tx, workspace, name)?,
    };
    queries::refuse_taken_slug(tx, workspace, &slug, None)?;
    if let Some(group) = new.group_id {
        groups::expect(tx, workspace, group)?;
    }
    let behind = queries::next_position(tx, workspace)?;
    let now = tx.now();
    let row = (
        collections::workspace_id.eq(workspace),
        collections::group_id.eq(new.group_id),
        collections::name.eq(name),
        collections::name_key.eq(text::name_key(name)),
        collections::slug.eq(&slug),
        collections::description.eq(new.description.as_deref()),
        collections::icon.eq(new.icon.as_deref()),
        collections::color.eq(new.color.as_deref()),
        collections::position.eq(new.position.unwrap_or(behind)),
        collections::status.eq(CollectionStatus::Active),
        collections::settings.eq(JsonText::of(&settings)),
        collections::shape_version.eq(shape::new_version(tx)),
        collections::item_count.eq(0),
        collections::item_count_at.eq(now),
        collections::version.eq(1),
        collections::created_by.eq(&author.cause.actor),
        collections::created_at.eq(now),
        collections::updated_at.eq(now),
    );
    let row: CollectionRow = diesel::insert_into(collections::table)
        .values(row)
        .returning(collections::all_columns)
        .get_result(tx.connection())?;
    tx.note_created(LockLevel::Collection, row.id.0);
    shape::lock_for_change(tx, workspace, definitions.iter().filter_map(|one| one.options.mirrored_in()))?;
    insert_fields(tx, shapes, author, row.id, definitions)?;
    choose_primary(tx, shapes, author, row.id, new.primary_field.as_deref())?;
    let mut shape = shape::within_change(tx, shapes, workspace, row.id)?;
    uniques::keys(&shape, &settings.unique_keys)
        .map_err(|mistake| Error::invalid(mistake.param, mistake.message))?;
    if uniques::settle(tx, &shape, &[])? {
        shape = shape::within_change(tx, shapes, workspace, row.id)?;
    }
    let row = queries::find(tx, workspace, row.id)?;
    let counted = ItemCount { items: 0, exact_at: Some(now) };
    let collection = queries::with_count(tx, row, &shape, counted)?;
    let event = CollectionEvent::Created(CollectionData { collection: &collection });
    publish(tx, author, collection.id, &added("collection", &collection)?, &event)?;
    Ok(collection)
}

/// Checks the given fields, or returns the default: a text field `name`.
fn defined(given: Option<Vec<NewField>>) -> Result<Vec<Definition>> {
    let given = given.filter(|fields| !fields.is_empty()).unwrap_or_else(|| {
        vec![NewField {
            field_key: Some("name".to_owned()),
            label: Some("Name".to_owned()),
            kind: FieldType::Text,
            description: None,
            required: false,
            unique: false,
            default: None,
            options: None,
        }]
    });
    // Keys that are derived from labels must not collide with the given keys.
    let mut taken: BTreeSet<String> = given.iter().filter_map(|field| field.field_key.clone()).collect();
    let mut seen = BTreeSet::new();
    let (mut definitions, mut wrong) = (Vec::new(), Vec::new());
    for (place, field) in given.into_iter().enumerate() {
        let path = format!("fields[{place}].");
        if let Some(key) = field.field_key.as_ref().filter(|key| !seen.insert((*key).clone())) {
            let rule = format!("must not be `{key}`, which is the key of another field");
            wrong.push(FieldError::new(format!("{path}field_key"), rule));
            continue;
        }
        match definitions::define(field, |key| taken.contains(key), &path) {
            Ok(definition) => {
                taken.insert(definition.key.clone());
                definitions.push(definition);
            }
            Err(mut mistakes) => wrong.append(&mut mistakes),
        }
    }
    Error::all_invalid(wrong).map_or(Ok(definitions), Err)
}

/// Inserts the fields of a new collection, computed ones last, because they refer to others.
fn insert_fields(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    collection: CollectionId,
    definitions: Vec<Definition>,
) -> Result<()> {
    let numbered = definitions.into_iter().enumerate();
    let (computed, plain): (Vec<_>, Vec<_>) = numbered.partition(|(_, one)| one.kind.is_computed());
    for (place, mut definition) in plain.into_iter().chain(computed) {
        let shape = shape::within_change(tx, shapes, author.workspace, collection)?;
        definitions::resolve(tx, shapes, author, &shape, &mut definition, &format!("fields[{place}]."))?;
        let position = i64::try_from(place).unwrap_or(i64::MAX);
        let row = definitions::insert(tx, author.workspace, collection, &definition, position)?;
        definitions::mirror(tx, shapes, author, &row)?;
    }
    Ok(())
}

/// Sets the primary field of a new collection: the given one, or the one that is the best title.
pub(super) fn choose_primary(
    tx: &mut Tx,
    shapes: &Shapes,
    author: &Author,
    collection: CollectionId,
    wanted: Option<&str>,
) -> Result<()> {
    let shape = shape::within_change(tx, shapes, author.workspace, collection)?;
    let primary = match wanted {
        Some(key) => Some(definitions::expect_primary(&shape, key)?),
        None => definitions::first_primary(&shape.fields),
    };
    diesel::update(collections::table.find(collection))
        .set(collections::primary_field_id.eq(primary))
        .execute(tx.connection())?;
    Ok(())
}
