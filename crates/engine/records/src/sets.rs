//! Sets of records that are not collections: the one that a workspace has of each kind.

use crate::indexes::{self, table, uniques};
use crate::schema::collections;
use crate::shape::{self, CollectionSettings, CollectionStatus, IndexKind, IndexOrigin, Kind, Shape, Shapes};
use diesel::prelude::*;
use fields::filter::subject;
use fields::{Field, FieldType, Part, Subject};
use model::{Cause, Code, CollectionId, FieldId, JsonText, Result, WorkspaceId};
use std::sync::Arc;
use store::{Read, Tx};

/// The shape of a workspace's set, for reading its records. One to which nothing was written is empty.
///
/// # Errors
/// When the database fails.
pub fn for_read(
    read: &mut Read,
    shapes: &Shapes,
    workspace: WorkspaceId,
    kind: &'static Kind,
) -> Result<Arc<Shape>> {
    match shape::for_read(read, shapes, workspace, kind.set_of(workspace)) {
        Err(error) if error.code() == Code::NotFound => {
            Shape::built_in(read, shapes, workspace, kind).map(Arc::new)
        }
        found => found,
    }
}

/// The shape of the records that a relation or contact field points to; `None` if their collection is gone, and for fields of
/// other types.
///
/// # Errors
/// When the database fails.
pub fn target_of(
    read: &mut Read,
    shapes: &Shapes,
    workspace: WorkspaceId,
    field: &Field,
) -> Result<Option<Arc<Shape>>> {
    if let Some(kind) = shapes.named_by(field.kind) {
        return for_read(read, shapes, workspace, kind).map(Some);
    }
    let target = field.options.target_collection_id.filter(|_| field.kind == FieldType::Relation);
    let Some(target) = target else { return Ok(None) };
    match shape::for_read(read, shapes, workspace, target) {
        Ok(target) => Ok(Some(target)),
        Err(error) if error.code() == Code::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The shape of a workspace's set whose records are about to be changed: it stays as it is until the transaction ends.
///
/// # Errors
/// When the database fails.
pub fn for_write(
    tx: &mut Tx,
    shapes: &Shapes,
    workspace: WorkspaceId,
    kind: &'static Kind,
) -> Result<Arc<Shape>> {
    let set = kind.set_of(workspace);
    if !shapes.is_complete(set) {
        ensure(tx, shapes, workspace, kind)?;
    }
    shape::for_write(tx, shapes, workspace, set)
}

/// A workspace's set, by the id that everything takes which is given a collection. It is made when it is first needed, and
/// so are the indexes that its kind declares.
///
/// # Errors
/// When the database fails.
pub fn ensure(
    tx: &mut Tx,
    shapes: &Shapes,
    workspace: WorkspaceId,
    kind: &'static Kind,
) -> Result<CollectionId> {
    // Looked at first without a lock: making the set begins with the exclusive one.
    let shape = for_read(tx, shapes, workspace, kind)?;
    if !shape.is_stored() || has_new_indexes(&shape)? {
        make(tx, shapes, workspace, kind)?;
    } else {
        shapes.note_complete(tx, shape.collection);
    }
    Ok(kind.set_of(workspace))
}

/// Makes the set and its indexes, unless another transaction has done so meanwhile.
fn make(tx: &mut Tx, shapes: &Shapes, workspace: WorkspaceId, kind: &'static Kind) -> Result<()> {
    let set = kind.set_of(workspace);
    shape::lock_for_change(tx, workspace, [set])?;
    if !for_read(tx, shapes, workspace, kind)?.is_stored() {
        let now = tx.now();
        // Names of collections are folded to lower case where they must differ, and slugs have no space.
        let name_key = format!("KIND {}", kind.number);
        diesel::insert_into(collections::table)
            .values((
                collections::id.eq(set),
                collections::workspace_id.eq(workspace),
                collections::name.eq(kind.set_noun),
                collections::name_key.eq(&name_key),
                collections::slug.eq(&name_key),
                collections::position.eq(0),
                collections::status.eq(CollectionStatus::Active),
                collections::settings.eq(JsonText::of(&CollectionSettings::default())),
                collections::shape_version.eq(shape::new_version(tx)),
                collections::item_count.eq(0),
                collections::item_count_at.eq(now),
                collections::version.eq(1),
                collections::created_by.eq(Cause::system("records").actor),
                collections::created_at.eq(now),
                collections::updated_at.eq(now),
            ))
            .execute(tx.connection())?;
    }
    let shape = shape::within_change(tx, shapes, workspace, set)?;
    // Where records of an earlier version clash, the index has failed, and writes go on.
    uniques::settle_after(tx, &shape)?;
    for (kind, parts) in lacking(&shape)? {
        table::begin(tx, &shape, kind, &parts, IndexOrigin::User)?;
    }
    shape::bump(tx, set)
}

/// Whether the service declares indexes that an earlier version of it did not, so that the set lacks them.
fn has_new_indexes(shape: &Shape) -> Result<bool> {
    let is_unique = |field: FieldId| {
        let only = [Part { subject: Subject::Field(field), desc: false }];
        shape.indexes.iter().any(|index| index.kind == IndexKind::Unique && index.parts == only)
    };
    let mut built_in = shape.fields.iter().filter(|field| field.is_built_in() && field.unique);
    Ok(built_in.any(|field| !is_unique(field.id)) || !lacking(shape)?.is_empty())
}

/// The indexes that the kind declares and the set does not have.
fn lacking(shape: &Shape) -> Result<Vec<(IndexKind, Vec<Part>)>> {
    let mut lacking = Vec::new();
    for text in shape.kind.indexes {
        let mut parts = text
            .split(',')
            .map(|part| {
                let name = part.strip_prefix('-');
                let key = name.unwrap_or(part);
                let subject = match shape.field(key) {
                    Some(field) => Subject::Field(field.id),
                    None => subject(shape, key, "indexes")?,
                };
                Ok(Part { subject, desc: name.is_some() })
            })
            .collect::<Result<Vec<_>>>()?;
        let kind = indexes::kind_for(shape, &mut parts);
        if !shape.indexes.iter().any(|index| index.kind == kind && index.parts == parts) {
            lacking.push((kind, parts));
        }
    }
    Ok(lacking)
}
