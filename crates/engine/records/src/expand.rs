//! What fields of items point to, in full: items, contacts, members of the team and files.

use crate::print::{Expanded, Printer, pointed_to};
use crate::rows::ItemRow;
use crate::rows::live_by_ids;
use crate::sets;
use crate::shape::{Shape, Shapes};
use fields::{Field, FieldType};
use files::{Files, among};
use model::{ApiKey, Error, FileId, ItemId, MemberId, Result, Scope};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use store::Read;

/// Who expands, and what shows files.
#[derive(Clone)]
pub(crate) struct Expander {
    pub(crate) key: Arc<ApiKey>,
    pub(crate) files: Arc<Files>,
}

impl fmt::Debug for Expander {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expander").finish_non_exhaustive()
    }
}

impl Expander {
    /// Reads the objects that a field of some items points to, all of them at once. `None` if their collection is gone.
    ///
    /// # Errors
    /// 400 `validation_error` for a field that points to nothing, 403 `missing_scope` for a key that cannot read the objects
    /// where they are.
    pub(crate) fn expand(
        &self,
        read: &mut Read,
        shapes: &Shapes,
        shape: &Shape,
        field: &Field,
        found: &[&ItemRow],
    ) -> Result<Option<Expanded>> {
        let scope = match field.kind {
            FieldType::Relation => Scope::ItemsRead,
            FieldType::Contact => Scope::ContactsRead,
            FieldType::User => Scope::ConversationsRead,
            FieldType::File => Scope::FilesRead,
            _ => {
                let rule = format!(
                    "contains `{}`, whose values are not relations, contacts, users or files",
                    field.key
                );
                return Err(Error::invalid("expand", rule));
            }
        };
        self.key.expect_scope(scope)?;
        let mut ids = BTreeSet::new();
        for row in found {
            ids.extend(pointed_to(row, &field.key)?);
        }
        let ids: Vec<i64> = ids.into_iter().collect();
        let objects = match field.kind {
            FieldType::User => members(read, shapes, shape, &ids)?,
            FieldType::File => self.files(read, shape, &ids)?,
            _ => match sets::target_of(read, shapes, shape.workspace, field)? {
                Some(target) => current_records(read, shapes, field, &target, &ids)?,
                None => return Ok(None),
            },
        };
        Ok(Some(Expanded { key: field.key.clone(), objects }))
    }

    fn files(&self, read: &mut Read, shape: &Shape, ids: &[i64]) -> Result<BTreeMap<i64, Box<RawValue>>> {
        let ids: Vec<FileId> = ids.iter().copied().map(FileId).collect();
        let now = read.now();
        let shown = among(read, shape.workspace, &ids)?.into_iter().map(|row| {
            let file = self.files.show(&row, now)?;
            Ok((row.id.0, to_raw_value(&file).map_err(Error::internal)?))
        });
        shown.collect()
    }
}

/// Records of the engine, and for those that were merged into others the others: a locked item still has the old ids.
fn current_records(
    read: &mut Read,
    shapes: &Shapes,
    field: &Field,
    target: &Shape,
    ids: &[i64],
) -> Result<BTreeMap<i64, Box<RawValue>>> {
    let named: Vec<ItemId> = ids.iter().copied().map(ItemId).collect();
    let survivors = shapes.merged().survivors(read, field.kind, target.workspace, &named)?;
    let wanted: BTreeSet<i64> =
        named.iter().map(|id| survivors.get(id).map_or(id.0, |survivor| survivor.0)).collect();
    let mut objects = records(read, target, &wanted.into_iter().collect::<Vec<_>>())?;
    for (merged, survivor) in survivors {
        if let Some(object) = objects.get(&survivor.0).cloned() {
            objects.insert(merged.0, object);
        }
    }
    Ok(objects)
}

/// Records of the engine: items and contacts.
fn records(read: &mut Read, target: &Shape, ids: &[i64]) -> Result<BTreeMap<i64, Box<RawValue>>> {
    let printer = Printer::whole(target);
    let shown = live_by_ids(read, target, ids)?.into_iter().map(|row| {
        let mut text = String::with_capacity(row.data.as_str().len() + 512);
        printer.print(&row, &mut text)?;
        Ok((row.id.0, RawValue::from_string(text).map_err(Error::internal)?))
    });
    shown.collect()
}

fn members(
    read: &mut Read,
    shapes: &Shapes,
    shape: &Shape,
    ids: &[i64],
) -> Result<BTreeMap<i64, Box<RawValue>>> {
    let ids: Vec<MemberId> = ids.iter().copied().map(MemberId).collect();
    let shown = shapes.members(read, shape.workspace, &ids)?.into_iter().map(|member| {
        let object = json!({
            "id": member.id, "object": "team_member", "name": member.name, "email": member.email,
        });
        Ok((member.id.0, to_raw_value(&object).map_err(Error::internal)?))
    });
    shown.collect()
}
